package doctor

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/layout"
	"corpus-git/live"
	"corpus-git/procedures/accounts"
	"corpus-git/project"
	"corpus-git/project/registry"
)

// Projects checks what deployments maintain for each project: accounts, links, owners and modes; and accounts of deleted projects.
type Projects struct {
	Root layout.Root
	List func(ctx context.Context) ([]registry.Project, error)
	// Exclusive blocks deployments of a project until release is called; it is fault.Busy while one runs.
	Exclusive func(ctx context.Context, name project.Name) (release func(), err error)
	Upkeep    func(ctx context.Context, name project.Name, linked bool) (live.Upkeep, error)
	// Repair redeploys the live release with the procedures sync and fixperms only.
	Repair func(ctx context.Context, name project.Name) error
	Exec   execx.Commander
	// Destroyed reports whether this server has destroyed a project of that name, as other servers on the machine may have accounts too.
	Destroyed func(ctx context.Context, name string) (bool, error)
	// Passwd is /etc/passwd. Accounts is true if the server creates users and groups.
	Passwd   string
	Accounts bool
}

// Inspect checks all projects. It walks their trees.
func (p Projects) Inspect(ctx context.Context) (out []Finding) {
	add := adderTo(&out)
	all, err := p.List(ctx)
	if err != nil {
		add("projects", "failed", "", "%v", err)
		return out
	}
	used, known, good := map[string]bool{}, true, 0
	for _, at := range all {
		if at.Missing {
			known = false
			continue
		}
		u, err := p.one(ctx, at)
		switch {
		case fault.KindOf(err) == fault.Busy && err != nil:
			add("projects", "skipped", "try again later", "%s is being deployed", at.Name)
			known = false
		case err != nil:
			add("projects", "failed", "corpus-git plan "+string(at.Name), "%s: %v", at.Name, err)
			known = false
		default:
			used[u.User] = true
			used[string(at.Name)+"-user"] = true
			if len(u.Differs) == 0 {
				good++
			}
			for _, d := range u.Differs {
				f := add(d.Kind, "warning", "corpus-git deploy "+string(at.Name)+" --only sync,fixperms", "%s", d.Text)
				f.Fix, f.Once = "deploy "+string(at.Name)+" with sync and fixperms only", "deploy "+string(at.Name)
				f.Do = func(ctx context.Context) error { return p.Repair(ctx, at.Name) }
			}
		}
	}
	if good > 0 {
		add("projects", "ok", "", "accounts, links, owners and modes of %s", humanize.Plural(good, "project"))
	}
	if p.Accounts && os.Geteuid() == 0 {
		p.orphans(ctx, add, used, known)
	}
	return out
}

func (p Projects) one(ctx context.Context, at registry.Project) (live.Upkeep, error) {
	release, err := p.Exclusive(ctx, at.Name)
	if err != nil {
		return live.Upkeep{}, err
	}
	defer release()
	return p.Upkeep(ctx, at.Name, at.Linked)
}

// orphans finds accounts created by the server for projects that no longer exist. known is false if the account of some project could not be determined.
func (p Projects) orphans(ctx context.Context, add adder, used map[string]bool, known bool) {
	data, err := os.ReadFile(p.Passwd)
	if err != nil {
		add("orphan", "failed", "", "%v", err)
		return
	}
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		f := strings.Split(s.Text(), ":")
		if len(f) != 7 {
			continue
		}
		name, ours := strings.CutSuffix(f[0], "-user")
		uid, err := strconv.Atoi(f[2])
		if _, perr := project.ParseName(name); !ours || err != nil || perr != nil || uid == 0 || uid >= accounts.FirstOrdinaryUID || f[5] != "/home/"+f[0] || used[f[0]] {
			continue
		}
		if ours, err = p.Destroyed(ctx, name); err != nil {
			add("orphan", "failed", "", "%v", err)
			return
		}
		if !ours {
			continue
		}
		if !known {
			add("orphan", "skipped", "", "cannot tell whether a project uses the user %s, as not all projects could be read", f[0])
			continue
		}
		if _, err := os.Lstat(p.Root.Project(name).Dir()); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		by := "check its files, then run  userdel --remove " + f[0]
		switch why := inUse(f[5], uint32(uid)); {
		case why != "":
			add("orphan", "warning", by, "the user %s belongs to no project: %s", f[0], why)
		default:
			c := add("orphan", "warning", "userdel --remove "+f[0], "the user %s belongs to no project; its home has only its initial files", f[0])
			c.Fix, c.Once = "remove the user "+f[0]+" and "+f[5], "userdel "+f[0]
			c.Do = func(ctx context.Context) error { return p.remove(ctx, f[0], name+"-grp", f[5]) }
		}
	}
}

// inUse returns why an account cannot simply be removed, and "" if nothing speaks against it.
func inUse(home string, uid uint32) string {
	names, err := os.ReadDir(home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err.Error()
	}
	if fi, err := os.Lstat(home); err == nil && ownerOf(fi) != uid {
		return fmt.Sprintf("%s belongs to the number %d", home, ownerOf(fi)) // userdel would keep it
	}
	for _, n := range names {
		switch n.Name() {
		case ".bashrc", ".profile", ".bash_logout", ".ssh":
		default:
			return filepath.Join(home, n.Name()) + " is there"
		}
	}
	keys, err := os.ReadDir(filepath.Join(home, ".ssh"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err.Error()
	}
	for _, n := range keys {
		if n.Name() != "id_ed25519" && n.Name() != "id_ed25519.pub" {
			return filepath.Join(home, ".ssh", n.Name()) + " is there"
		}
	}
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		if fi, err := os.Stat(proc); err == nil && ownerOf(fi) == uid {
			return "process " + filepath.Base(proc) + " runs as it"
		}
	}
	return ""
}

// remove removes an account, its group and its home.
func (p Projects) remove(ctx context.Context, user, group, home string) error {
	for _, argv := range [][]string{{"userdel", "--remove", user}, {"groupdel", group}} {
		var out bytes.Buffer
		st, err := p.Exec.Run(ctx, execx.Cmd{Argv: argv, Dir: "/", Stdout: &out, Stderr: &out, Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}})
		// 6 of groupdel: userdel has removed it with the user.  12 of userdel: no mail spool was there.
		if err == nil && st.Exit != 0 && !(argv[0] == "groupdel" && st.Exit == 6) && !(argv[0] == "userdel" && st.Exit == 12 && gone(user)) {
			err = fault.New(fault.Failed, strings.Join(argv, " "), "exit status %d: %s", st.Exit, strings.TrimSpace(out.String()))
		}
		if err != nil {
			return err
		}
	}
	if _, err := os.Lstat(home); !errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Failed, "userdel --remove "+user, "the user is removed, but %s is still there", home).WithHint("look at what it has, then remove it")
	}
	return nil
}
