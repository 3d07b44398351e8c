// Package mirrors implements the command mirror: it keeps and serves copies of other servers' repositories and files.
//
// It owns the command's flags, output and exit codes; package mirror does the work. It needs no server and no state directory. For what a crash leaves see
// package mirror.
package mirrors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"corpus-git/git/pack"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/mirror"
	"corpus-git/project"
	"corpus-git/project/status"
	"corpus-git/receive/signed"
	"corpus-git/receive/submodule"
)

// Surroundings is the environment of the command.
type Surroundings struct {
	Out io.Writer
	// Home is the directory whose .ssh contains the key and the known hosts for ssh, "" for none.
	Home string
	// Agent is the program's name and version, as clients of git and of HTTP say it.
	Agent string
	// Env is the environment of programs that it runs.
	Env []string
	// Limits are the limits on received packs.
	Limits func() (pack.Limits, error)
	// Log receives errors while the copies are served.
	Log zerolog.Logger
	// Document writes a --json document.
	Document func(w io.Writer, v any) error
	// Stop returns a context that ends when the process should exit.
	Stop func() (context.Context, context.CancelFunc)
}

type mirrors struct {
	Surroundings
	dir    string
	asJSON bool
}

// Command returns the command mirror.
func Command(s Surroundings) *cobra.Command {
	m := &mirrors{Surroundings: s}
	cmd := &cobra.Command{
		Use: "mirror", Short: "Mirror repositories and files of other servers",
		Long: "Keeps copies of repositories and files of other servers, for machines that cannot reach them. LIST names them;\n" +
			"it is repos.yaml in the current directory by default, and the versions are pinned in repos.lock next to it.",
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	cmd.PersistentFlags().StringVar(&m.dir, "dir", "", "directory of the copies (default: mirror, next to LIST)")
	cmd.AddCommand(m.sync(), m.verify(), m.list(), m.serve())
	return cmd
}

// open reads the list.
func (m *mirrors) open(args []string) (*mirror.Mirror, error) {
	name := "repos.yaml"
	if len(args) == 1 {
		name = args[0]
	}
	l, err := mirror.Read(name)
	if err != nil {
		return nil, err
	}
	dir := m.dir
	if dir == "" {
		dir = filepath.Join(filepath.Dir(name), "mirror")
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	limits, err := m.Limits()
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: http.DefaultTransport}
	return &mirror.Mirror{
		List: l, LockFile: mirror.LockName(name), Dir: dir, HTTP: client,
		Copier:   submodule.Copier{HTTP: *client, Home: m.Home, Agent: m.Agent, Limits: limits, ID: func() string { return string(project.NewID()) }},
		Verifier: signed.Verifier{Exec: execx.OS{}, Now: time.Now}, Env: m.Env,
	}, nil
}

// report prints outcomes and returns the error for them.
type report struct {
	m        *mirrors
	outcomes []mirror.Outcome
	counts   map[string]int
}

func (r *report) add(o mirror.Outcome) {
	r.outcomes = append(r.outcomes, o)
	r.counts[o.Change]++
	if r.m.asJSON {
		return
	}
	at := o.At
	if len(at) > 12 {
		at = at[:12]
	}
	line := fmt.Sprintf("%-5s %-40s %s", o.Kind, o.Path, o.Change)
	if o.Error != "" {
		line += ": " + o.Error
	} else {
		line += "  " + at
	}
	if o.SignedBy != "" {
		line += "  signed by " + o.SignedBy
	}
	fmt.Fprintln(r.m.Out, printable.Line(strings.TrimRight(line, " ")))
	if o.Hint != "" {
		fmt.Fprintf(r.m.Out, "      hint: %s\n", printable.Line(o.Hint))
	}
}

// end prints the summary; its error counts failures.
func (r *report) end(what string) error {
	if r.m.asJSON {
		if r.outcomes == nil {
			r.outcomes = []mirror.Outcome{}
		}
		if err := r.m.Document(r.m.Out, struct {
			Version int              `json:"version"`
			Entries []mirror.Outcome `json:"entries"`
		}{status.Version, r.outcomes}); err != nil {
			return err
		}
	} else {
		var parts []string
		for _, k := range []string{"copied", "updated", "unchanged", "failed"} {
			if n := r.counts[k]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, k))
			}
		}
		if len(parts) == 0 {
			parts = []string{"the list is empty"}
		}
		fmt.Fprintln(r.m.Out, strings.Join(parts, ", "))
	}
	if n := r.counts["failed"]; n > 0 {
		return fault.New(fault.Failed, what, "%s of %s", humanize.Plural(n, "entry", "entries"), humanize.Count(len(r.outcomes)))
	}
	return nil
}

// each runs an operation for each entry, prints the outcomes, and returns the error for them.
func (m *mirrors) each(what string, args []string, run func(context.Context, *mirror.Mirror, func(mirror.Outcome)) error) error {
	mir, err := m.open(args)
	if err != nil {
		return err
	}
	ctx, end := m.Stop()
	defer end()
	r := &report{m: m, counts: map[string]int{}}
	if err := run(ctx, mir, r.add); err != nil {
		return err
	}
	return r.end(what)
}

func (m *mirrors) jsonFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&m.asJSON, "json", false, "print a JSON document")
}

func (m *mirrors) sync() *cobra.Command {
	var o mirror.Options
	cmd := &cobra.Command{
		Use: "sync [LIST]", Short: "Copy the repositories and files in the list",
		Long: "Copies what is missing, and pins each branch, tag and file to its current version. Pins do not change: a moved tag\n" +
			"or a replaced file is refused unless --update names it. An interrupted sync is resumed by the next one.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return m.each("mirror sync", args, func(ctx context.Context, mir *mirror.Mirror, done func(mirror.Outcome)) error {
				return mir.Sync(ctx, o, done)
			})
		},
	}
	cmd.Flags().IntVar(&o.Jobs, "jobs", 4, "how many entries to copy in parallel")
	cmd.Flags().StringArrayVar(&o.Update, "update", nil, "path of an entry whose pin is updated; can be repeated")
	cmd.Flags().BoolVar(&o.All, "update-all", false, "update all pins")
	m.jsonFlag(cmd)
	return cmd
}

func (m *mirrors) verify() *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify [LIST]", Short: "Verify all copies against their pins", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return m.each("mirror verify", args, func(ctx context.Context, mir *mirror.Mirror, done func(mirror.Outcome)) error {
				return mir.Verify(ctx, done)
			})
		},
	}
	m.jsonFlag(cmd)
	return cmd
}

func (m *mirrors) list() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list [LIST]", Short: "Show the pins", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			mir, err := m.open(args)
			if err != nil {
				return err
			}
			lock, err := mirror.ReadLock(mir.LockFile)
			if err != nil {
				return err
			}
			if m.asJSON {
				return m.Document(m.Out, lock)
			}
			for _, r := range mir.List.Repositories {
				at := "not copied yet"
				if old, ok := lock.Repositories[r.Path]; ok {
					at = old.Commit[:12]
				}
				fmt.Fprintf(m.Out, "git   %-40s %-14s %s\n", r.Path, at, printable.Line(r.Revision))
			}
			for _, f := range mir.List.Files {
				at := "not copied yet"
				if old, ok := lock.Files[f.Path]; ok {
					at = old.SHA256[:12] + "  " + humanize.Bytes(old.Size)
				}
				fmt.Fprintf(m.Out, "files %-40s %s\n", f.Path, at)
			}
			for _, p := range mir.List.Packages {
				at := "not copied yet"
				if old, ok := lock.Packages[p.Path]; ok {
					at = old.Release[:12]
				}
				fmt.Fprintf(m.Out, "packages %-37s %-14s %s\n", p.Path, at, printable.Line(strings.Join(append([]string{p.Suite + ":"}, p.Names...), " ")))
			}
			for _, f := range mir.List.Folders {
				fmt.Fprintf(m.Out, "folder %-39s %s\n", f.Path, printable.Line(f.From))
			}
			return nil
		},
	}
	m.jsonFlag(cmd)
	return cmd
}

// idle and header bound a connection to the mirror.
const (
	idle   = 2 * time.Minute
	header = 10 * time.Second
	grace  = 10 * time.Second
)

func (m *mirrors) serve() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use: "serve [LIST]", Short: "Serve the copies over HTTP, read-only",
		Long: "Serves the pinned versions: repositories at /git/PATH.git, files at /files/PATH, archives of packages at /packages/PATH/, folders at\n" +
			"/folders/PATH/. There is no access control.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			mir, err := m.open(args)
			if err != nil {
				return err
			}
			ctx, end := m.Stop()
			defer end()
			l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
			if err != nil {
				return fault.New(fault.Failed, "mirror serve", "%w", err).WithHint("choose another address with --listen")
			}
			s := &http.Server{Handler: mir.Handler(m.Log), ReadHeaderTimeout: header, IdleTimeout: idle}
			fmt.Fprintf(m.Out, "serving on http://%s\n", l.Addr())
			stop := context.AfterFunc(ctx, func() {
				late, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
				defer cancel()
				if s.Shutdown(late) != nil {
					_ = s.Close()
				}
			})
			defer stop()
			if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8417", "address")
	return cmd
}
