// Package resetperms is the hidden command reset-perms, which fixperms scripts of projects call in place of makina-states' reset-perms.py.
//
// It owns the command's options. The walk is procedures/permissions'. A crash leaves files of which some have the new owners and modes.
package resetperms

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"

	"corpus-git/internal/fault"
	"corpus-git/procedures/permissions"
	"corpus-git/sls/host"
)

// Command accepts the options of makina-states' reset-perms.py, for the fixperms scripts of projects. Options for POSIX ACLs are accepted and
// ignored.
func Command(stdout io.Writer, untilInterrupted func() (context.Context, context.CancelFunc)) *cobra.Command {
	var user, group, dmode, fmode string
	var excludes []string
	var onlyACLs, quiet, verbose, flat, ignored bool
	var acls []string
	r := &permissions.Reset{}
	cmd := &cobra.Command{
		Use: "reset-perms", Short: "Set owner and mode of files and folders recursively", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if onlyACLs {
				return nil
			}
			users := host.FileUsers{}
			var err error
			if r.UID, err = strconv.Atoi(user); err != nil {
				u, err := users.User(user)
				if err != nil {
					return fault.New(fault.Failed, "reset permissions", "user %s: %w", user, err)
				}
				r.UID = u.UID
			}
			if r.GID, err = strconv.Atoi(group); err != nil {
				g, err := users.Group(group)
				if err != nil {
					return fault.New(fault.Failed, "reset permissions", "group %s: %w", group, err)
				}
				r.GID = g.GID
			}
			r.OneLevel = flat
			for _, m := range []struct {
				to   *uint32
				text string
			}{{&r.DirMode, dmode}, {&r.FileMode, fmode}} {
				n, err := strconv.ParseUint(m.text, 8, 32)
				if err != nil || n > 0o7777 {
					return fault.New(fault.Usage, "reset permissions", "%q is not an octal mode", m.text)
				}
				*m.to = uint32(n)
			}
			for _, e := range excludes {
				re, err := regexp.Compile(e)
				if err != nil {
					return fault.New(fault.Usage, "reset permissions", "%w", err)
				}
				r.Excludes = append(r.Excludes, re)
			}
			ctx, stop := untilInterrupted()
			defer stop()
			err = r.Run(ctx)
			if verbose && !quiet {
				fmt.Fprintf(stdout, "%d changed\n", r.Changed)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVarP(&user, "user", "u", "root", "owner")
	f.StringVarP(&group, "group", "g", "root", "group")
	f.StringVar(&dmode, "dmode", "770", "mode of directories")
	f.StringVar(&fmode, "fmode", "770", "mode of files")
	f.StringArrayVarP(&r.Paths, "paths", "p", nil, "a path; can be repeated")
	f.StringArrayVarP(&excludes, "excludes", "e", nil, "skip paths that match this regular expression; can be repeated")
	f.BoolVarP(&flat, "no-recursive", "R", false, "do not recurse")
	f.BoolVarP(&onlyACLs, "only-acls", "o", false, "no effect, as ACLs are not supported")
	f.BoolVarP(&quiet, "quiet", "q", false, "print nothing")
	f.BoolVarP(&verbose, "verbose", "v", false, "print the number of changed files")
	f.BoolVarP(&ignored, "no-acls", "n", false, "ignored, as ACLs are not supported")
	f.BoolVarP(&ignored, "reset-acls", "k", false, "ignored")
	f.BoolVar(&ignored, "debug", false, "ignored")
	f.StringArrayVar(&acls, "users", nil, "ignored")
	f.StringArrayVar(&acls, "groups", nil, "ignored")
	return cmd
}
