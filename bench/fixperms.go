package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"corpus-git/internal/event"
	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/procedures"
	"corpus-git/project"
	"corpus-git/sls/host"
)

const permRounds = 7

// benchFixperms runs the fixperms procedure over a tree of 70,000 files and folders that are all right, beside
// find -printf '%m %u %g' on the same tree, which is a stat walk; then beside the way of the original's scripts, which sets
// everything again: find with chown and chmod in batches.
func benchFixperms(l *lab) error {
	disk, release, err := l.privateDisk()
	if err != nil {
		return err
	}
	defer release()
	root := layout.Root(filepath.Join(disk, "srv"))
	b := &archiveBench{dir: disk, p: root.Project("app")}
	if err := b.plant(); err != nil {
		return err
	}
	fmt.Printf("tree: %d files, %d folders\n", len(b.files), treeFolders)
	env, err := fixpermsEnv(root)
	if err != nil {
		return err
	}
	ctx := context.Background()
	ours := func() error { return procedures.Fixperms{}.Run(ctx, env) }
	if err := ours(); err != nil { // the first makes everything right
		return err
	}
	if err := b.settle(false); err != nil {
		return err
	}
	nothing := func(int) error { return nil }
	if _, err := compare(permRounds, nothing, "fixperms, all right", ours, "find -printf '%m %u %g'", func() error {
		return exec.Command("find", b.p.Live(), "-printf", "%m %u %g\n").Run()
	}); err != nil {
		return err
	}
	if s, _ := env.TakeSummary(); s == "" {
		return fmt.Errorf("fixperms says nothing")
	}
	owner := fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid())
	if _, err := compare(3, nothing, "fixperms, all right", ours, "find -exec chown, chmod -- {} +", func() error {
		for _, args := range [][]string{
			{"-exec", "chown", "-h", owner, "--", "{}", "+"},
			{"-type", "d", "-exec", "chmod", "g+s", "--", "{}", "+"},
			{"-type", "f", "-exec", "chmod", "u+rw", "--", "{}", "+"},
		} {
			if err := exec.Command("find", append([]string{b.p.Live()}, args...)...).Run(); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	wrong := func(i int) error {
		for j := i % 100; j < len(b.files); j += 100 {
			if err := os.Chmod(b.files[j], 0o600); err != nil {
				return err
			}
		}
		return nil
	}
	if env, err = fixpermsEnv(root, "permissions", py.NewDict("project", py.NewDict("files", "0644"))); err != nil {
		return err
	}
	_, err = compare(permRounds, wrong, "fixperms, 1 % had drifted", ours, "find -printf '%m %u %g'", func() error {
		return exec.Command("find", b.p.Live(), "-printf", "%m %u %g\n").Run()
	})
	return err
}

// fixpermsEnv returns a deployment that owns its files as whoever runs the benchmark.
func fixpermsEnv(root layout.Root, cfgKeys ...any) (*procedures.Env, error) {
	p := root.Project("app")
	cfg, err := project.BuildCfg(context.Background(), project.CfgInputs{
		Name: "app", Layout: p,
		Sample: func(context.Context) (*py.Dict, error) {
			return py.NewDict("makina-projects.app", py.NewDict(cfgKeys...)), nil
		},
	})
	if err != nil {
		return nil, err
	}
	return &procedures.Env{
		Tools: &procedures.Tools{
			FS: vfs.OS{}, Root: root, Repository: func(project.Name, project.Repo) procedures.Repository { return noIndex{} }, Accounts: true, Now: time.Now,
			Host: &host.Host{EUID: unix.Geteuid(), Users: me{}},
		},
		Paths: p, Prepared: &procedures.Prepared{Cfg: cfg}, Report: unheard{}, Deployment: project.Deployment{Project: "app"},
	}, nil
}

// me says that every account is the one of this process.
type me struct{}

func (me) User(n string) (host.User, error) {
	return host.User{Name: n, UID: os.Geteuid(), GID: os.Getegid()}, nil
}
func (me) Group(n string) (host.Group, error)  { return host.Group{Name: n, GID: os.Getegid()}, nil }
func (m me) UserByID(int) (host.User, error)   { return m.User("") }
func (m me) GroupByID(int) (host.Group, error) { return m.Group("") }
func (me) GroupsOf(host.User) ([]int, error)   { return []int{os.Getegid()}, nil }

// noIndex has a working copy of no repository.
type noIndex struct{ procedures.Repository }

func (noIndex) Refresh(context.Context, string) error { return nil }

type unheard struct{}

func (unheard) Append(event.Event) uint64 { return 0 }
