package procedures_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/internal/vfs/vfstest"
	"corpus-git/layout"
	"corpus-git/procedures"
	"corpus-git/project"
	"corpus-git/sls/host"
)

// someUsers are the accounts of a simulated machine.
type someUsers map[string]int

func (u someUsers) User(n string) (host.User, error) {
	if id, ok := u[n]; ok {
		return host.User{Name: n, UID: id, GID: id}, nil
	}
	return host.User{}, fmt.Errorf("%w: %s", host.ErrNoAccount, n)
}

func (u someUsers) Group(n string) (host.Group, error) {
	if id, ok := u[n]; ok {
		return host.Group{Name: n, GID: id}, nil
	}
	return host.Group{}, fmt.Errorf("%w: %s", host.ErrNoAccount, n)
}

func (u someUsers) UserByID(int) (host.User, error) { return host.User{}, host.ErrNoAccount }

func (u someUsers) GroupByID(int) (host.Group, error) { return host.Group{}, host.ErrNoAccount }

func (u someUsers) GroupsOf(host.User) ([]int, error) { return nil, nil }

// noRepo has a working copy whose index never needs a refresh.
type noRepo struct{ procedures.Repository }

func (noRepo) Refresh(context.Context, string) error { return nil }

// always returns the same repository, whichever is requested.
func always(r procedures.Repository) func(project.Name, project.Repo) procedures.Repository {
	return func(project.Name, project.Repo) procedures.Repository { return r }
}

type heard struct{ events []event.Event }

func (h *heard) Append(e event.Event) uint64 {
	h.events = append(h.events, e)
	return uint64(len(h.events))
}

func permissionsOf(t *testing.T, rules *py.Dict) (*project.Cfg, error) {
	t.Helper()
	section := py.NewDict("user", "app", "group", "app")
	if rules != nil {
		section.SetStr("permissions", rules)
	}
	return project.BuildCfg(t.Context(), project.CfgInputs{
		Name: "app", Layout: layout.Root("/srv").Project("app"),
		Sample: func(context.Context) (*py.Dict, error) { return py.NewDict("makina-projects.app", section), nil },
	})
}

// permEnv is a deployment that comes to fixperms, on some file system, as root or not.
func permEnv(t *testing.T, f vfs.FS, root layout.Root, rules *py.Dict, asRoot bool) *procedures.Env {
	t.Helper()
	cfg, err := permissionsOf(t, rules)
	require.NoError(t, err)
	euid := 1000
	if asRoot {
		euid = 0
	}
	users := someUsers{"app": 1000, "root": 0, "www": 33, "ops": 44}
	return &procedures.Env{
		Tools:    &procedures.Tools{FS: f, Root: root, Repository: always(noRepo{}), Accounts: true, Host: &host.Host{EUID: euid, Users: users}, Now: time.Now},
		Paths:    root.Project("app"),
		Prepared: &procedures.Prepared{Cfg: cfg},
		Report:   &heard{}, Deployment: project.Deployment{Project: "app"},
	}
}

func permWorld(t *testing.T) *vfstest.Mem {
	t.Helper()
	m := vfstest.NewMem(time.Unix(1_700_000_000, 0))
	f := m.FS()
	p := layout.Root("/srv").Project("app")
	for _, d := range []string{p.Live() + "/bin", p.Live() + "/var/up/deep", p.Data(), p.Pillar()} {
		require.NoError(t, vfs.MkdirAll(f, d, 0o755))
	}
	for name, mode := range map[string]uint32{"page": 0o644, "bin/run": 0o755, "var/up/a": 0o644, "var/up/deep/b": 0o600, "var/up/deep/tool": 0o700} {
		require.NoError(t, vfs.WriteFileAtomic(f, p.Live()+"/"+name, []byte(name), mode))
	}
	require.NoError(t, f.Symlink("/etc/passwd", p.Live()+"/link"))
	require.NoError(t, f.Mknod(p.Live()+"/fifo", syscall.S_IFIFO|0o600, 0))
	require.NoError(t, vfs.WriteFileAtomic(f, "/srv/outside", []byte("x"), 0o600))
	require.NoError(t, f.Link("/srv/outside", p.Live()+"/stolen"))
	require.NoError(t, f.Link(p.Live()+"/page", p.Live()+"/var/page"))
	require.NoError(t, vfs.WriteFileAtomic(f, p.Pillar()+"/init.sls", []byte("x"), 0o644))
	require.NoError(t, f.SyncFS("/"))
	return m
}

// perms lists mode and owners below /srv/projects/app.
func perms(t *testing.T, f vfs.FS, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	var walk func(string)
	walk = func(p string) {
		st, err := f.Lstat(p)
		require.NoError(t, err)
		xs, err := f.Xattrs(p)
		require.NoError(t, err)
		s := fmt.Sprintf("%04o %d:%d", st.Perm(), st.UID, st.GID)
		for _, x := range xs {
			s += fmt.Sprintf(" %s=%x", x.Name, x.Value)
		}
		out[strings.TrimPrefix(p, root+"/")] = s
		if st.IsDir() {
			names, err := f.ReadDir(p)
			require.NoError(t, err)
			for _, n := range names {
				walk(p + "/" + n)
			}
		}
	}
	walk(root)
	return out
}

const permRoot = "/srv/projects/app"

func TestFixpermsByDefaultAndByRule(t *testing.T) {
	rules := py.NewDict(
		"project/var", py.NewDict("group", "www"),
		"project/var/up", py.NewDict("user", "www", "dirs", "2770", "files", "0660"),
		"project/var/up/deep", py.NewDict("files", "keep", "user", int64(7)),
		"project/bin/run", py.NewDict("files", "0640"),
		"pillar", py.NewDict("user", "keep", "dirs", "0700", "files", "0600"),
	)
	for _, c := range []struct {
		name  string
		rules *py.Dict
		root  bool
		want  map[string]string
	}{
		{"by default", nil, true, map[string]string{
			"project": "2755 1000:1000", "project/page": "0644 1000:1000", "project/var/page": "0644 1000:1000", "project/bin/run": "0755 1000:1000",
			"project/var/up": "2755 1000:1000", "data": "2755 1000:1000", "pillar": "0770 0:1000", "pillar/init.sls": "0660 0:1000",
			"project/link": "0777 0:0", "project/fifo": "0600 0:0", "project/stolen": "0600 0:0",
		}},
		{"by rules", rules, true, map[string]string{
			"project": "2755 1000:1000", "project/page": "0644 1000:1000", "project/var": "2755 1000:33", "project/bin/run": "0750 1000:1000",
			"project/var/up": "2770 33:33", "project/var/up/a": "0660 33:33", "project/var/up/deep": "2770 7:33", "project/var/up/deep/b": "0600 7:33",
			"project/var/up/deep/tool": "0700 7:33", "pillar": "0700 0:1000", "pillar/init.sls": "0600 0:1000", "project/stolen": "0600 0:0",
		}},
		{"as an ordinary user", rules, false, map[string]string{
			"project": "0755 0:0", "project/var/up": "2770 0:0", "project/var/up/a": "0660 0:0", "project/bin/run": "0750 0:0", "data": "0755 0:0",
			"pillar": "0700 0:0", "pillar/init.sls": "0600 0:0",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := permWorld(t)
			env := permEnv(t, m.FS(), "/srv", c.rules, c.root)
			require.NoError(t, procedures.Fixperms{}.Run(t.Context(), env))
			got := perms(t, m.FS(), permRoot)
			for p, w := range c.want {
				require.Equal(t, w, got[p], p)
			}
			first, _ := env.TakeSummary()
			require.Contains(t, first, "fixed")
			before := m.Now()
			require.NoError(t, procedures.Fixperms{}.Run(t.Context(), env))
			again, lines := env.TakeSummary()
			require.NotContains(t, again, "fixed", "a second run finds nothing")
			require.Equal(t, before, m.Now(), "and writes nothing")
			require.Equal(t, got, perms(t, m.FS(), permRoot))
			if c.root {
				require.Equal(t, []string{"1 owner kept: hard links out of the tree, such as stolen"}, lines)
			}
		})
	}
}

// A daemon of root lost its pid file to the project's user, and the second deployment could not restart it: in data/ daemons keep
// what they own, unless a rule names an owner.
func TestDataKeepsWhatDaemonsOwn(t *testing.T) {
	for says, c := range map[string]struct {
		rules *py.Dict
		want  map[string]string
	}{
		"by default": {nil, map[string]string{
			"data": "2755 1000:1000", "data/run/daemon.pid": "0644 0:0", "data/run/notes": "0644 1000:1000", "data/run/sock": "0666 0:0", "data/run/fifo": "0600 5:5",
			"data/pg": "0700 33:33", "data/pg/base": "0600 33:33", "data/pg/conf": "0640 0:33", "data/pg/sub": "0755 0:0", "data/pg/sub/deep": "0644 0:0", "data/mine": "0600 1000:1000",
		}},
		"by rules": {py.NewDict("data/pg", py.NewDict("user", "www", "group", "www", "dirs", "0750", "files", "0640"), "data/run", py.NewDict("user", "keep")), map[string]string{
			"data/pg": "0750 33:33", "data/pg/conf": "0640 33:33", "data/pg/sub": "0750 33:33", "data/pg/sub/deep": "0640 33:33", "data/run/daemon.pid": "0644 0:1000", "data/run/sock": "0666 0:0",
		}},
		"a mode alone": {py.NewDict("data/pg", py.NewDict("files", "0400")), map[string]string{"data/pg": "0700 33:33", "data/pg/base": "0400 33:33", "data/pg/conf": "0400 0:33"}},
	} {
		t.Run(says, func(t *testing.T) {
			m := permWorld(t)
			f, data := m.FS(), layout.Root("/srv").Project("app").Data()
			file := func(name string, mode uint32, uid, gid int) {
				t.Helper()
				require.NoError(t, vfs.WriteFileAtomic(f, data+"/"+name, []byte("x"), mode))
				require.NoError(t, f.Lchown(data+"/"+name, uid, gid))
			}
			for name, owner := range map[string]int{"run": 0, "pg": 33} {
				require.NoError(t, vfs.MkdirAll(f, data+"/"+name, 0o755))
				require.NoError(t, f.Lchown(data+"/"+name, owner, owner))
			}
			require.NoError(t, f.Chmod(data+"/pg", 0o700))
			require.NoError(t, vfs.MkdirAll(f, data+"/pg/sub", 0o755))
			file("run/daemon.pid", 0o644, 0, 0)
			file("run/notes", 0o644, 0, 0)
			file("pg/base", 0o600, 33, 33)
			file("pg/conf", 0o640, 0, 33)
			file("pg/sub/deep", 0o644, 0, 0)
			file("mine", 0o600, 1000, 0)
			require.NoError(t, f.Mknod(data+"/run/sock", syscall.S_IFSOCK|0o666, 0))
			require.NoError(t, f.Mknod(data+"/run/fifo", syscall.S_IFIFO|0o600, 0))
			require.NoError(t, f.Lchown(data+"/run/fifo", 5, 5))
			env := permEnv(t, f, "/srv", c.rules, true)
			for range 2 {
				require.NoError(t, procedures.Fixperms{}.Run(t.Context(), env))
				got := perms(t, f, permRoot)
				for p, w := range c.want {
					require.Equal(t, w, got[p], p)
				}
			}
		})
	}
}

func TestFixpermsAccountsThatAreMissing(t *testing.T) {
	m := permWorld(t)
	env := permEnv(t, m.FS(), "/srv", py.NewDict("project/var", py.NewDict("user", "nginx")), true)
	require.NoError(t, procedures.Fixperms{Early: true}.Run(t.Context(), env))
	_, lines := env.TakeSummary()
	require.Contains(t, lines, "permissions:project/var: there is no user nginx yet")
	require.Equal(t, "2755 0:1000", perms(t, m.FS(), permRoot)["project/var"])
	err := procedures.Fixperms{}.Run(t.Context(), env)
	require.ErrorContains(t, err, "permissions:project/var: user nginx")
	require.Equal(t, fault.Failed, fault.KindOf(err))
}

func TestPlanShowsPermissions(t *testing.T) {
	m := permWorld(t)
	env := permEnv(t, m.FS(), "/srv", py.NewDict("project/var/up", py.NewDict("files", "0660")), true)
	before := perms(t, m.FS(), permRoot)
	n, err := procedures.Plan(t.Context(), env, project.Description{})
	require.NoError(t, err)
	require.Equal(t, before, perms(t, m.FS(), permRoot))
	var told event.Event
	for _, e := range env.Report.(*heard).events {
		if e.Procedure == procedures.NameFixperms {
			told = e
		}
	}
	require.Equal(t, fmt.Sprintf("fixperms  %d permissions would change", n), told.Text)
	require.Contains(t, told.Lines, "~ project/var/up/a  owner 0:0 to 1000:1000, mode 0644 to 0660")
	require.NoError(t, procedures.Fixperms{}.Run(t.Context(), env))
	n, err = procedures.Plan(t.Context(), env, project.Description{})
	require.NoError(t, err)
	require.Zero(t, n)
}

// Every call fails once, in each of the ways in which disks fail. What fails is told with its path and a hint, no mode is
// one that nobody asked for, and another run comes to the end.
func TestFixpermsEveryCallMayFail(t *testing.T) {
	rules := py.NewDict("project/var/up", py.NewDict("user", "www", "dirs", "2770", "files", "0660", "acl", py.NewList("group:ops:rX", "default:group:ops:rX")))
	m := permWorld(t)
	before := perms(t, m.FS(), permRoot)
	require.NoError(t, procedures.Fixperms{}.Run(t.Context(), permEnv(t, m.FS(), "/srv", rules, true)))
	after := perms(t, m.FS(), permRoot)
	failed := 0
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EPERM, syscall.ENOENT, syscall.EBUSY} {
		for n := 1; ; n++ {
			m := permWorld(t)
			f := vfstest.New(m.FS(), vfstest.FailNth("", n, errno))
			err := procedures.Fixperms{}.Run(t.Context(), permEnv(t, f, "/srv", rules, true))
			says := fmt.Sprintf("call %d (%v) of %d: %v", n, errno, f.Count(), err)
			if f.Count() < n {
				require.NoError(t, err)
				break
			}
			if err != nil {
				failed++
				require.ErrorIs(t, err, errno, says)
				require.NotEmpty(t, fault.HintOf(err), says)
				require.Contains(t, err.Error(), permRoot, says)
			}
			for p, now := range perms(t, m.FS(), permRoot) {
				require.True(t, sane(before[p], now, after[p]), "%s: %s: %s, then %s, at last %s", says, p, before[p], now, after[p])
			}
			require.NoError(t, procedures.Fixperms{}.Run(t.Context(), permEnv(t, m.FS(), "/srv", rules, true)), says)
			require.Equal(t, after, perms(t, m.FS(), permRoot), says)
		}
	}
	require.Greater(t, failed, 100)
}

// sane reports that an entry is as it was, as it should be, or half way: never more open than one of the two.
func sane(before, now, after string) bool {
	bits := func(s string) uint32 {
		n, err := strconv.ParseUint(s[:4], 8, 32)
		if err != nil {
			panic(err)
		}
		return uint32(n)
	}
	return bits(now)&^(bits(before)|bits(after)) == 0
}

// A file that its owner swaps while root looks at it stays as it is, whatever has come in its place.
func TestFixpermsIsNotLedAstray(t *testing.T) {
	m := permWorld(t)
	f := m.FS()
	p := layout.Root("/srv").Project("app")
	swap := vfstest.New(f, func(_ int, o vfstest.Op) error {
		if o.Name == "open" && o.Path == "page2" {
			_ = f.Remove(p.Live() + "/page2")
			return f.Link("/srv/outside", p.Live()+"/page2")
		}
		return nil
	})
	require.NoError(t, vfs.WriteFileAtomic(f, p.Live()+"/page2", []byte("x"), 0o644))
	require.NoError(t, procedures.Fixperms{}.Run(t.Context(), permEnv(t, swap, "/srv", nil, true)))
	st, err := f.Lstat("/srv/outside")
	require.NoError(t, err)
	require.Zero(t, st.UID)
}

func TestPermissionsAreChecked(t *testing.T) {
	for says, rules := range map[string]*py.Dict{
		"permissions:etc: must be a path that starts with project, data or pillar":         py.NewDict("etc", py.NewDict()),
		"permissions:project/../x: must be a path":                                         py.NewDict("project/../x", py.NewDict()),
		"permissions:project/.git: must be a path":                                         py.NewDict("project/.git", py.NewDict()),
		"permissions:project:mode: unknown key; use one of: user, group, dirs, files, acl": py.NewDict("project", py.NewDict("mode", "0644")),
		"permissions:project:files: must be four octal digits in quotes such as '0640'":    py.NewDict("project", py.NewDict("files", int64(640))),
		"permissions:project:dirs: must be four octal digits":                              py.NewDict("project", py.NewDict("dirs", "0888")),
		"permissions:project:user: must be a name, a number, or keep":                      py.NewDict("project", py.NewDict("user", "no such:one")),
		"permissions:project:acl: must be a list":                                          py.NewDict("project", py.NewDict("acl", "group:ops:rX")),
		"permissions:project:acl: an entry must be [default:]user:NAME:rwx":                py.NewDict("project", py.NewDict("acl", py.NewList("ops:rX"))),
		"permissions:project:acl: duplicate entry":                                         py.NewDict("project", py.NewDict("acl", py.NewList("user:ops:r", "user:ops:w"))),
		"permissions:project: must be a mapping of user, group, dirs, files, acl":          py.NewDict("project", "0644"),
		"permissions:data/x:user: must not be a mapping":                                   py.NewDict("data/x", py.NewDict("user", py.NewDict("a", "b"))),
	} {
		_, err := permissionsOf(t, rules)
		require.ErrorContains(t, err, says)
		require.Equal(t, fault.Failed, fault.KindOf(err))
		require.NotEmpty(t, fault.HintOf(err))
		pos, ok := fault.PosOf(err)
		require.True(t, ok)
		require.Equal(t, ".salt/PILLAR.sample", pos.File)
	}
}

// What the kernel takes for the access control list is what setfacl would have made.
func TestFixpermsSetsRealACLs(t *testing.T) {
	root := layout.Root(t.TempDir())
	p := root.Project("app")
	for _, name := range []string{"up/sub/file", "up/run", "plain"} {
		path := filepath.Join(p.Live(), name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("x"), 0o644))
	}
	require.NoError(t, os.Chmod(filepath.Join(p.Live(), "up/run"), 0o744))
	rules := py.NewDict("project/up", py.NewDict("dirs", "0750", "files", "0640", "acl", py.NewList("user:4711:rwX", "group:44:rX", "default:user:4711:rwx")))
	env := permEnv(t, vfs.OS{}, root, rules, false) // an ordinary user may set the lists of his own files
	err := procedures.Fixperms{}.Run(t.Context(), env)
	if errors.Is(err, syscall.EOPNOTSUPP) {
		t.Skip("the file system has no access control lists")
	}
	require.NoError(t, err)
	mode := func(rel string) string {
		st, err := vfs.OS{}.Lstat(filepath.Join(p.Live(), rel))
		require.NoError(t, err)
		return fmt.Sprintf("%04o", st.Perm())
	}
	require.Equal(t, "0770", mode("up"), "the group bits show the mask")
	require.Equal(t, "0770", mode("up/sub"))
	require.Equal(t, "0660", mode("up/sub/file"))
	require.Equal(t, "0770", mode("up/run"))
	if getfacl, err := exec.LookPath("getfacl"); err == nil {
		out, err := exec.Command(getfacl, "-npcE", filepath.Join(p.Live(), "up")).Output()
		require.NoError(t, err)
		require.Equal(t, "user::rwx\nuser:4711:rwx\ngroup::r-x\ngroup:44:r-x\nmask::rwx\nother::---\n"+
			"default:user::rwx\ndefault:user:4711:rwx\ndefault:group::r-x\ndefault:mask::rwx\ndefault:other::---\n\n", string(out))
	}
	xs, err := vfs.OS{}.Xattrs(filepath.Join(p.Live(), "plain"))
	require.NoError(t, err)
	require.Empty(t, xs)
	env.TakeSummary()
	require.NoError(t, procedures.Fixperms{}.Run(t.Context(), env))
	s, _ := env.TakeSummary()
	require.NotContains(t, s, "fixed")

	// A rule with no entries takes the lists away, and the mode is what the rule says again.
	rules = py.NewDict("project/up", py.NewDict("dirs", "0750", "files", "0640", "acl", py.NewList()))
	require.NoError(t, procedures.Fixperms{}.Run(t.Context(), permEnv(t, vfs.OS{}, root, rules, false)))
	require.Equal(t, "0750", mode("up"))
	require.Equal(t, "0640", mode("up/sub/file"))
	require.Equal(t, "0750", mode("up/run"))
	xs, err = vfs.OS{}.Xattrs(filepath.Join(p.Live(), "up/sub"))
	require.NoError(t, err)
	require.Empty(t, xs)
}
