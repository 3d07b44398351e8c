package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"corpus-git/backup"
	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/fleet/broker"
	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/kv"
	"corpus-git/layout"
	"corpus-git/pipeline/records"
	"corpus-git/project"
	"corpus-git/project/registry"
	"corpus-git/project/status"
)

// backups adapts the server to package backup.
type backups struct {
	c        *core
	archives bool
	note     func(string)
}

// backup implements verbs.Backend.Backup.
func (c *core) backup(ctx context.Context, w io.Writer, what verbs.Backup, note func(string)) (backup.Contents, error) {
	return backup.Write(ctx, w, backups{c, what.Archives, note}, c.root, c.state, backup.Options{
		Archives: what.Archives, Data: what.Data, Program: Build().Release, Host: c.hostName(), Now: time.Now, Note: note,
	})
}

// betweenDeployments is the interval at which a running deployment is polled for its end.
const betweenDeployments = 50 * time.Millisecond

func (b backups) Hold(ctx context.Context, name string) (held backup.Held, err error) {
	n := project.Name(name)
	var release func()
	for said := false; ; {
		release, err = b.c.pipeline.Exclusive(ctx, n, "backup", project.Pusher{Key: "backup", From: "local"})
		if fault.KindOf(err) != fault.Busy || err == nil {
			break
		}
		if !said {
			b.note("waiting for the deployment of " + name + " to end")
			said = true
		}
		select {
		case <-ctx.Done():
			return held, ctx.Err()
		case <-time.After(betweenDeployments):
		}
	}
	if err != nil {
		return held, err
	}
	resume := b.c.archive(n).Pause()
	held.Release = func() {
		resume()
		release()
	}
	defer func() {
		if err != nil {
			held.Release()
		}
	}()
	if b.archives {
		if err := b.c.archive(n).Seal(ctx); err != nil {
			return held, err
		}
	}
	last, err := b.c.pipeline.Last(ctx, []project.Name{n})
	if err != nil {
		return held, err
	}
	held.Last = string(last[n].ID)
	for repo, c := range map[project.Repo]*string{project.Code: &held.Code, project.PillarRepo: &held.Pillar} {
		r := b.c.repos.Open(n, repo)
		if there, err := r.Exists(); err != nil || !there {
			continue // without remotes, or its folder is missing: the backup records what exists
		}
		_, commit, err := r.Live(ctx)
		if err != nil {
			return held, err
		}
		*c = string(commit)
	}
	return held, nil
}

func (b backups) Owns(ctx context.Context, name, id string) bool {
	rec, err := b.c.pipeline.Find(ctx, project.Name(name), id)
	return err == nil && string(rec.ID) == id && rec.Result != nil
}

func (b backups) Database(ctx context.Context, path string, held map[string]backup.Held) (names []string, err error) {
	if err := db.Copy(ctx, b.c.db, path); err != nil {
		return nil, err
	}
	d, err := db.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := d.Close(); err == nil {
			err = cerr
		}
	}()
	last := map[project.Name]project.ID{}
	for name, h := range held {
		last[project.Name(name)] = project.ID(h.Last)
	}
	if err := records.Trim(ctx, d, last); err != nil {
		return nil, err
	}
	reg, err := registry.Open(ctx, d, b.c.root, b.c.state, time.Now)
	if err != nil {
		return nil, err
	}
	all, err := reg.List(ctx)
	for _, p := range all {
		names = append(names, string(p.Name))
	}
	return names, err
}

// verifyCommand returns backup verify .
func (c *command) verifyCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "verify FILE", Short: "Verify a backup and show its contents",
		Long: "Compares every name, attribute and byte with the recorded checksums, and checks the database. - is standard input.",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			in := c.Stdin
			if args[0] != "-" {
				var err error
				if in, err = os.Open(args[0]); err != nil {
					return fault.New(fault.Usage, "", "%w", err)
				}
				defer in.Close()
			}
			ctx, stop := untilInterrupted()
			defer stop()
			got, err := backup.Verify(ctx, bufio.NewReaderSize(in, 1<<20), "", func(path string) error {
				d, err := db.Open(ctx, path)
				if err != nil {
					return err
				}
				defer d.Close()
				return db.Check(ctx, d)
			})
			if err != nil {
				return err
			}
			if asJSON {
				return verbs.WriteDocument(c.Stdout, struct {
					Version int             `json:"version"`
					Backup  backup.Contents `json:"backup"`
				}{status.Version, got})
			}
			fmt.Fprintf(c.Stdout, "made %s by corpus-git %s on %s, of %s\n", got.Made.Local().Format(time.DateTime), got.Program, got.Host, got.Root)
			for _, p := range got.Projects {
				fmt.Fprintf(c.Stdout, "  %-20s code %s, pillar %s, %s\n", p.Name, shortOrNone(p.Code), shortOrNone(p.Pillar), humanize.Bytes(p.Bytes))
			}
			for _, n := range got.Notes {
				fmt.Fprintf(c.Stdout, "note: %s\n", n)
			}
			fmt.Fprintf(c.Stdout, "intact: %s\n", got.Summary())
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON document")
	return cmd
}

func shortOrNone(commit string) string {
	if commit == "" {
		return "none"
	}
	return project.Commit(commit).Short()
}

func (c *command) restoreCommand() *cobra.Command {
	var o backup.RestoreOptions
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Restore a backup into an empty root",
		Long: "Reads FILE twice: once to verify it and to look up the accounts that own the files, and once to write. Nothing appears\n" +
			"under its final name before all of it is durable. The root and the state directory must be empty.",
		Example: "  corpus-git restore corpus-git.tar.zst\n  corpus-git restore --root /srv2 corpus-git.tar.zst",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := c.stateSettings().load()
			if err != nil {
				return err
			}
			ctx, stop := untilInterrupted()
			defer stop()
			open := func() (io.ReadCloser, error) {
				f, err := os.Open(args[0])
				if err != nil {
					return nil, fault.New(fault.Usage, "", "%w", err)
				}
				return f, nil
			}
			o.Settle = func(ctx context.Context, state layout.State) error {
				return errors.Join(kv.Restored(ctx, state.Database()), broker.Restored(state.NATS(), layout.State(cfg.StateDir).NATS()))
			}
			done, err := backup.Restore(ctx, open, layout.Root(cfg.Root), layout.State(cfg.StateDir), o)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.Stdout, "restored %s, as of %s, to %s\n", done.Summary(), done.Made.Local().Format(time.DateTime), cfg.Root)
			if done.Root != cfg.Root {
				fmt.Fprintf(c.Stdout, "the root was %s: redeploy projects whose files contain that path\n", done.Root)
			}
			if done.Unowned {
				fmt.Fprintln(c.Stdout, "owners and groups were not restored: this requires root")
			}
			if !done.Data {
				fmt.Fprintln(c.Stdout, "the backup does not contain data/: restore it before you deploy a project")
			}
			fmt.Fprintln(c.Stdout, "next:  corpus-git doctor , then  corpus-git serve")
			return nil
		},
	}
	cmd.Flags().BoolVar(&o.MissingToRoot, "missing-to-root", false, "give files of accounts that do not exist on this machine to root")
	return cmd
}

// toTerminal refuses to write a backup to a terminal.
func (c *command) toTerminal() error {
	if term.IsTerminal(int(c.Stdout.Fd())) { //nolint:gosec // a descriptor fits
		return fault.New(fault.Usage, "", "standard output is a terminal").WithHint("name a file:  corpus-git backup FILE")
	}
	return nil
}
