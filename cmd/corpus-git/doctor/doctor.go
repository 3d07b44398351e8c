// Package doctor checks the machine, the state and the projects, and reports problems with a hint or a fix. Checking changes nothing.
package doctor

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"corpus-git/cmd/corpus-git/control"
	"corpus-git/internal/audit"
	"corpus-git/internal/db"
	"corpus-git/internal/humanize"
	"corpus-git/layout"
	"corpus-git/notify"
	"corpus-git/pipeline"
	"corpus-git/project/config"
	"corpus-git/project/registry"
	"corpus-git/project/status"
	"corpus-git/receive/sshd"
	"corpus-git/sls/choose"
)

// Doctor runs the checks. Database, Registry and Status are nil if no state could be opened or none is needed.
type Doctor struct {
	Config *config.Config
	// Env is the environment that salt-call is searched in.
	Env      []string
	Database *sql.DB
	Registry *registry.Registry
	Status   *status.Source
	// Addresses reads where a running server listens.
	Addresses func(layout.State) (pid int, listens string, err error)
}

// Run returns the findings.
func (d Doctor) Run(ctx context.Context) []Finding {
	var out []Finding
	add := adderTo(&out)
	root, state := layout.Root(d.Config.Root), layout.State(d.Config.StateDir)
	d.directory(add, "root", root.Path(), 0)
	d.directory(add, "state", state.Path(), 0o077)
	d.space(add, root.Path(), state.Path())
	d.server(add, state)
	d.hostKeys(add, state)
	d.database(ctx, add, state)
	d.programs(add)
	if d.Config.Accounts == "off" {
		add("user", "skipped", "", "accounts is off: no users and groups are created for projects, owners are not changed")
	} else if os.Geteuid() == 0 {
		add("user", "ok", "", "root: users, groups and owners of projects are managed")
	} else {
		add("user", "skipped", "run as root to manage users and owners", "not root: no users and groups are created for projects, owners are not changed, steps run as you")
	}
	d.stateOwners(add, state)
	d.refs(ctx, add, root)
	d.locks(add, root)
	d.leftovers(ctx, add, root, state)
	d.hubs(ctx, add, state)
	return out
}

func (d Doctor) directory(add adder, name, path string, closed os.FileMode) {
	fi, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		add(name, "warning", "corpus-git serve  and  corpus-git project create  create it", "%s does not exist yet", path)
	case err != nil:
		add(name, "failed", "", "%v", err)
	case !fi.IsDir():
		add(name, "failed", "move it away", "%s is not a directory", path)
	case fi.Mode().Perm()&closed != 0:
		add(name, "failed", "chmod 700 "+path, "%s is accessible to other users (mode %04o)", path, fi.Mode().Perm()).
			setFix(func() error { return os.Chmod(path, fi.Mode().Perm()&^closed) }, "make %s accessible to its owner only", path)
	default:
		f, err := os.CreateTemp(path, ".doctor-")
		if err != nil {
			add(name, "failed", "run as the user who owns it", "%s cannot be written to: %v", path, err)
			return
		}
		_ = f.Close()
		_ = os.Remove(f.Name())
		add(name, "ok", "", "%s", path)
	}
}

// low is the free space below which archives are refused.
const low = 512 << 20

func (d Doctor) space(add adder, dirs ...string) {
	for _, dir := range dirs {
		free, err := status.Free(dir)
		switch {
		case err != nil:
			add("disk", "failed", "", "%s: %v", dir, err)
		case free == 0:
			continue
		case free < low:
			add("disk", "failed", "remove something, or prune archives:  corpus-git archives prune PROJECT", "%s free for %s", humanize.Bytes(free), dir)
		default:
			add("disk", "ok", "", "%s free for %s", humanize.Bytes(free), dir)
		}
	}
}

func (d Doctor) server(add adder, state layout.State) {
	c, err := control.Dial(state.Socket())
	switch {
	case err == nil:
		_ = c.Close()
		pid, listens, aerr := d.Addresses(state)
		if aerr != nil {
			add("server", "warning", "", "it is running, but %s cannot be read", state.Addresses())
			return
		}
		add("server", "ok", "", "runs (process %d), listens on %s", pid, listens)
	case errors.Is(err, control.ErrNoServer):
		add("server", "warning", "start it:  systemctl start corpus-git , or  corpus-git serve", "not running; commands access the state directly")
	default:
		add("server", "failed", "run as the user of the server", "%v", err)
	}
}

func (d Doctor) hostKeys(add adder, state layout.State) {
	for _, path := range []string{state.HostKey(), state.HostKeyECDSA(), sshd.NextKey(state.HostKey()), sshd.NextKey(state.HostKeyECDSA())} {
		fi, err := os.Stat(path)
		next := path == sshd.NextKey(state.HostKey()) || path == sshd.NextKey(state.HostKeyECDSA())
		switch {
		case next && errors.Is(err, os.ErrNotExist): // nothing is being replaced
		case errors.Is(err, os.ErrNotExist):
			add("host key", "ok", "", "%s: does not exist yet; the next start creates it", path)
		case err != nil:
			add("host key", "failed", "", "%v", err)
		case fi.Mode().Perm()&0o077 != 0:
			add("host key", "failed", "chmod 600 "+path, "%s is readable for other users: the server will not start with it", path).
				setFix(func() error { return os.Chmod(path, 0o600) }, "make %s accessible to its owner only", path)
		default:
			add("host key", "ok", "", "%s", path)
		}
	}
}

func (d Doctor) database(ctx context.Context, add adder, state layout.State) {
	var base *sql.DB
	if d.Database != nil {
		base = d.Database
	} else {
		if _, err := os.Stat(state.Database()); errors.Is(err, os.ErrNotExist) {
			add("database", "ok", "", "not made yet")
			return
		}
		var err error
		if base, err = db.Open(ctx, state.Database()); err != nil {
			add("database", "failed", "", "%v", err)
			return
		}
		defer base.Close()
	}
	if err := db.Check(ctx, base); err != nil {
		add("database", "failed", "stop the server, keep a copy of it, and restore a backup:  corpus-git restore FILE", "%v", err)
		return
	}
	add("database", "ok", "", "intact")
	var tables int
	switch err := base.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'deployments'`).Scan(&tables); {
	case err != nil:
		add("history", "failed", "", "%v", err)
	case tables == 0: // of what is counted below it is the last that the first start makes
		add("history", "skipped", "", "no tables yet: the first start was interrupted; the next one creates them")
	default:
		d.history(ctx, add, state, base)
		d.notifications(ctx, add, base)
	}
}

// notifications reports pending and failed deliveries.
func (d Doctor) notifications(ctx context.Context, add adder, base *sql.DB) {
	c, err := notify.Count(ctx, base)
	sinks := len(d.Config.Notify.All())
	switch {
	case err != nil:
		add("notifications", "failed", "", "%v", err)
	case c == notify.Counts{} && sinks == 0:
		add("notifications", "skipped", "configure sinks to get notifications: docs/notifications.md", "no sinks")
	case c.GivenUp > 0:
		add("notifications", "warning", "see why:  corpus-git notify list --failed , and try again:  corpus-git notify retry", "%s given up, %s waiting", humanize.Count(c.GivenUp), humanize.Count(c.Waiting))
	default:
		add("notifications", "ok", "", "%s, %s waiting, %s delivered", humanize.Plural(sinks, "sink"), humanize.Count(c.Waiting), humanize.Count(c.Delivered))
	}
}

// history reports the size of the recorded history, which is limited by the keys history.*.
func (d Doctor) history(ctx context.Context, add adder, state layout.State, base *sql.DB) {
	deployments, err := pipeline.CountRecords(ctx, base)
	var entries int64
	if err == nil {
		entries, err = (&audit.Log{DB: base}).Count(ctx)
	}
	if err != nil {
		add("history", "failed", "", "%v", err)
		return
	}
	var database, logs int64
	for _, path := range []string{state.Database(), state.Database() + "-wal"} { // what was written last is in the second
		if fi, err := os.Stat(path); err == nil {
			database += fi.Size()
		}
	}
	files, _ := filepath.Glob(filepath.Join(state.Events("*"), "*"))
	for _, f := range files {
		if fi, err := os.Stat(f); err == nil {
			logs += fi.Size()
		}
	}
	undo := sizeOf(filepath.Dir(state.LiveUndo("x")))
	add("history", "ok", "", "%s, %s of logs, %s of undo logs; %s; database %s", humanize.Plural(deployments, "deployment"), humanize.Bytes(logs), humanize.Bytes(undo), humanize.Plural(entries, "audit entry", "audit entries"), humanize.Bytes(database))
}

// sizeOf returns the total size of the files below a directory; unreadable ones count as 0.
func sizeOf(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if fi, err := e.Info(); err == nil {
				n += fi.Size()
			}
		}
		return nil
	})
	return n
}

func (d Doctor) programs(add adder) {
	for _, p := range []struct{ name, without string }{
		{"git", "not needed to serve; the demo and people on this machine use it"},
		{"ssh", "not needed to serve; the demo uses it"},
	} {
		if path, err := exec.LookPath(p.name); err == nil {
			add(p.name, "ok", "", "%s", path)
		} else {
			add(p.name, "skipped", "", "not installed: %s", p.without)
		}
	}
	switch bin := choose.SaltCall(d.Config.SaltCall, d.Env); {
	case d.Config.Runner == "builtin":
		add("salt-call", "skipped", "", "not used: runner is builtin")
	case bin != "":
		add("salt-call", "ok", "", "%s", bin)
	case d.Config.Runner == "salt-call":
		add("salt-call", "failed", "install Salt, or set  runner: auto", "not found, and runner is salt-call")
	default:
		add("salt-call", "skipped", "install Salt for projects whose SLS files need more than the built-in runner", "not installed: the built-in runner applies all steps")
	}
}

func (d Doctor) leftovers(ctx context.Context, add adder, root layout.Root, state layout.State) {
	var found []string
	for _, pattern := range []string{
		filepath.Join(root.Projects(), "*", "git", "*.git", "objects", "incoming-*"),
		filepath.Join(root.Projects(), "*", "archives", ".tmp-*"),
		filepath.Join(state.Trash(), "*"),
		filepath.Join(root.Projects(), ".trash", "*"),
	} {
		more, _ := filepath.Glob(pattern)
		found = append(found, more...)
	}
	serving := true
	if c, err := control.Dial(state.Socket()); err == nil {
		_ = c.Close()
	} else {
		serving = !errors.Is(err, control.ErrNoServer)
	}
	if len(found) > 0 && !serving {
		add("leftovers", "warning", "the next start of the server removes them", "%s, such as %s", humanize.Plural(len(found), "temporary folder"), found[0])
	} else {
		add("leftovers", "ok", "", "none that need attention")
	}
	if d.Registry == nil {
		if serving {
			d.problems(ctx, add, state)
		}
		return
	}
	all, err := d.Registry.List(ctx)
	if err != nil {
		add("projects", "failed", "", "%v", err)
		return
	}
	half, err := d.Registry.Destroying(ctx)
	if err != nil {
		add("projects", "failed", "", "%v", err)
		return
	}
	for _, n := range half {
		add("project", "warning", "finish it:  corpus-git project destroy "+string(n)+" --yes", "%s is partly deleted", n)
	}
	missing := 0
	described, err := d.Status.Describe(ctx, all)
	if err != nil {
		add("projects", "failed", "", "%v", err)
	}
	addProblems(add, described)
	for _, p := range all {
		if p.Missing {
			missing++
			add("project", "failed", "restore it from a backup, or  corpus-git project destroy "+string(p.Name), "the folder of %s is missing", p.Name)
		}
	}
	add("projects", "ok", "", "%s", humanize.Plural(len(all)-missing, "project"))
}

// problems asks the running server for problems of the projects' repositories.
func (d Doctor) problems(ctx context.Context, add adder, state layout.State) {
	server, err := control.Dial(state.Socket())
	if err != nil {
		return // it has just ended, or is not ours: said above
	}
	defer server.Close()
	var out bytes.Buffer
	if code, err := server.Do(ctx, control.Request{Argv: []string{"project", "list", "--json"}}, nil, &out, io.Discard); err != nil || code != 0 {
		add("projects", "warning", "", "the server does not list them")
		return
	}
	var doc status.Projects
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		add("projects", "failed", "", "%v", err)
		return
	}
	addProblems(add, doc.Projects)
}

// addProblems adds problems of projects.
func addProblems(add adder, projects []status.Project) {
	for _, p := range projects {
		if p.Problem != "" {
			add("project", "warning", "corpus-git report "+string(p.Name), "%s: %s", p.Name, p.Problem)
		}
	}
}
