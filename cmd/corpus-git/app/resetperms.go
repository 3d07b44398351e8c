package app

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"

	"corpus-git/internal/fault"
	"corpus-git/procedures/permissions"
	"corpus-git/sls/host"
)

// resetPermsCommand takes the options of makina-states' reset-perms.py, for the fixperms scripts of projects. Those that
// are about POSIX ACLs are taken and do nothing.
func (c *command) resetPermsCommand() *cobra.Command {
	var user, group, dmode, fmode string
	var excludes []string
	var onlyACLs, quiet, verbose, flat, ignored bool
	var acls []string
	r := &permissions.Reset{}
	cmd := &cobra.Command{
		Use: "reset-perms", Short: "Give files and folders below some paths one owner and mode", Hidden: true, Args: cobra.NoArgs,
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
				fmt.Fprintf(c.Stdout, "%d changed\n", r.Changed)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVarP(&user, "user", "u", "root", "owner")
	f.StringVarP(&group, "group", "g", "root", "group")
	f.StringVar(&dmode, "dmode", "770", "mode of folders")
	f.StringVar(&fmode, "fmode", "770", "mode of files")
	f.StringArrayVarP(&r.Paths, "paths", "p", nil, "a path; may be given several times")
	f.StringArrayVarP(&excludes, "excludes", "e", nil, "leave out paths that this regular expression matches; may be given several times")
	f.BoolVarP(&flat, "no-recursive", "R", false, "the paths themselves only")
	f.BoolVarP(&onlyACLs, "only-acls", "o", false, "do nothing: there are no ACLs to set")
	f.BoolVarP(&quiet, "quiet", "q", false, "say nothing")
	f.BoolVarP(&verbose, "verbose", "v", false, "say how many were changed")
	f.BoolVarP(&ignored, "no-acls", "n", false, "set no ACLs; this is always so")
	f.BoolVarP(&ignored, "reset-acls", "k", false, "ignored")
	f.BoolVar(&ignored, "debug", false, "ignored")
	f.StringArrayVar(&acls, "users", nil, "ignored: users of ACLs")
	f.StringArrayVar(&acls, "groups", nil, "ignored: groups of ACLs")
	return cmd
}
