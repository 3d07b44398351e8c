package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"corpus-git/internal/execx"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/grains"
	"corpus-git/sls/host"
	"corpus-git/sls/run"
	"corpus-git/sls/salt"
)

const (
	slsSteps    = 5
	slsPerStep  = 20 // states: 16 file.managed and 4 cmd.run
	slsSaltRuns = 3
	slsSome     = 1_000
	slsMany     = 10_000
	slsTimeout  = 4 * time.Minute // with Salt, for 10,000 files
)

// benchSLS applies 5 steps of 20 states with the built-in runner; with one salt-call for each step; with our driver,
// which feeds one Salt process step by step; and with one salt-call that is given all steps at once, which could not stop
// between two of them.
func benchSLS(l *lab) error {
	b, err := newSLSBench(l)
	if err != nil {
		return err
	}
	names, err := b.steps()
	if err != nil {
		return err
	}
	fmt.Printf("%d steps, %d states\n", slsSteps, slsSteps*slsPerStep)
	ours := b.run(b.builtin, names...)
	for _, peer := range []struct {
		name string
		run  func() error
	}{
		{"all steps in one salt-call", func() error { return b.together(names) }},
		{"our driver of one Salt process", b.run(b.process, names...)},
		{"one salt-call for each step", b.run(b.single, names...)},
	} {
		if _, err := compare(slsSaltRuns, b.clear, "corpus-git, built-in runner", ours, peer.name, b.clearThen(peer.run)); err != nil {
			return err
		}
	}
	return nil
}

// steps writes the steps and gives their names.
func (b *slsBench) steps() ([]string, error) {
	var names []string
	for i := range slsSteps {
		name := fmt.Sprintf("%d00_step", i+1)
		names = append(names, name)
		text := ""
		for j := range slsPerStep - 4 {
			text += fmt.Sprintf("%s-file-%d:\n  file.managed:\n    - name: %s/out/%s-%d\n    - makedirs: true\n    - contents: content {{ %d + %d }}\n", name, j, b.dir, name, j, i, j)
		}
		for j := range 4 {
			text += fmt.Sprintf("%s-cmd-%d:\n  cmd.run:\n    - name: 'true'\n", name, j)
		}
		if err := writeFile(filepath.Join(b.root, name+".sls"), text, 0o644); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// benchFiles applies one step of 1,000, then of 10,000 file states with the built-in runner and in one Salt process:
// all files new, then all of them right already.
func benchFiles(l *lab) error {
	b, err := newSLSBench(l)
	if err != nil {
		return err
	}
	for _, n := range []int{slsSome, slsMany} {
		text := fmt.Sprintf("{%% for i in range(%d) %%}\nf{{ i }}:\n  file.managed:\n    - name: %s/out/{{ i }}\n    - makedirs: true\n    - contents: number {{ i }}\n{%% endfor %%}\n", n, l.dir)
		if err := writeFile(filepath.Join(b.root, "many.sls"), text, 0o644); err != nil {
			return err
		}
		var ours [2]time.Duration
		for i := range 3 { // the first is not counted
			if err := b.clear(i); err != nil {
				return err
			}
			for j := range ours {
				if ours[j], err = timed(b.run(b.builtin, "many")); err != nil {
					return err
				}
			}
		}
		if err := b.clear(0); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), slsTimeout)
		r, end := b.process()
		for j, what := range []string{"new files", "files that are right"} {
			t, err := timed(func() error { return b.apply(ctx, r, "many") })
			switch {
			case ctx.Err() != nil:
				fmt.Printf("%6d %-22s corpus-git %9.1f ms   one Salt process: more than %s\n", n, what, ms(ours[j]), slsTimeout)
			case err != nil:
				cancel()
				return errors.Join(err, end())
			default:
				fmt.Printf("%6d %-22s corpus-git %9.1f ms   one Salt process %9.1f ms   ratio %.4f\n", n, what, ms(ours[j]), ms(t), ours[j].Seconds()/t.Seconds())
			}
		}
		cancel()
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}

// slsBench holds what both runners share.
type slsBench struct {
	*lab
	root, salt string
	host       *host.Host
	grains     *py.Dict
	folders    int // made so far; out is a link to the last one
}

// newSLSBench finds Salt by SALT_CALL, a path, or in PATH.
func newSLSBench(l *lab) (*slsBench, error) {
	bin := os.Getenv("SALT_CALL")
	if bin == "" {
		bin = salt.Find(os.Environ())
	}
	if bin == "" {
		return nil, fmt.Errorf("there is no salt-call: pip install salt into a virtual environment, and name its salt-call in SALT_CALL")
	}
	return &slsBench{lab: l, root: l.path("salt"), salt: bin, host: host.New(execx.OS{}), grains: grains.Collect(grains.Source{})}, nil
}

func (b *slsBench) builtin() (sls.Runner, func() error) {
	return &run.Builtin{}, func() error { return nil }
}

func (b *slsBench) process() (sls.Runner, func() error) {
	s := salt.NewSession(b.salt, b.path(fmt.Sprintf("process-%d", time.Now().UnixNano())))
	return s, s.Close
}

func (b *slsBench) single() (sls.Runner, func() error) {
	return &perStep{b}, func() error { return nil }
}

// clear gives the next run an empty folder. The old one stays until the end: a file system that just removed many
// files makes new ones slowly.
func (b *slsBench) clear(int) error {
	b.folders++
	dir := b.path(fmt.Sprintf("out-%d", b.folders))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := os.Remove(b.path("out")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(dir, b.path("out"))
}

// clearThen gives the peer the same empty folder.
func (b *slsBench) clearThen(f func() error) func() error {
	return func() error {
		if err := b.clear(0); err != nil {
			return err
		}
		return f()
	}
}

func (b *slsBench) run(open func() (sls.Runner, func() error), names ...string) func() error {
	return func() error {
		r, end := open()
		return errors.Join(b.apply(context.Background(), r, names...), end())
	}
}

func (b *slsBench) apply(ctx context.Context, r sls.Runner, names ...string) error {
	for _, n := range names {
		res, err := r.Apply(ctx, b.input(n), sls.Discard{})
		if err != nil {
			return err
		}
		if f := res.Failed(); f != nil {
			return fmt.Errorf("%s: state %s failed: %s", n, f.ID, f.Comment)
		}
	}
	return nil
}

func (b *slsBench) input(name string) *sls.Input {
	return &sls.Input{SLS: name, Roots: fileroot.Roots{fileroot.OnDisk(b.root)}, Cfg: py.NewDict("name", "bench"), Pillar: py.NewDict(), Grains: b.grains, Opts: py.NewDict("id", "bench"), Host: b.host, Mode: sls.Live}
}

// perStep is one salt-call with a folder of its own for each step.
type perStep struct{ *slsBench }

// Name implements sls.Runner.
func (p *perStep) Name() string { return "salt-call" }

// Check implements sls.Runner.
func (p *perStep) Check(ctx context.Context, in *sls.Input) (*sls.Checked, error) {
	return (&salt.Call{Bin: p.salt}).Check(ctx, in)
}

// Apply implements sls.Runner.
func (p *perStep) Apply(ctx context.Context, in *sls.Input, sink sls.Sink) (*sls.StepResult, error) {
	dir := p.path(fmt.Sprintf("call-%d", time.Now().UnixNano()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	return (&salt.Call{Bin: p.salt, Dir: dir}).Apply(ctx, in, sink)
}

// together is one salt-call of state.sls with all steps, as one run of all their states.
func (b *slsBench) together(names []string) error {
	dir := b.path(fmt.Sprintf("together-%d", time.Now().UnixNano()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	in := b.input(names[0])
	if err := (&salt.Call{Bin: b.salt, Dir: dir}).Configure(in); err != nil {
		return err
	}
	var out bytes.Buffer
	st, err := in.Host.Exec.Run(context.Background(), execx.Cmd{Dir: "/", Env: in.Host.Environ, Stdout: &out, Stderr: &out,
		Argv: []string{b.salt, "--local", "-c", filepath.Join(dir, "conf"), "--retcode-passthrough", "--out=json", "state.sls", strings.Join(names, ",")}})
	if err == nil && st.Exit != 0 {
		err = fmt.Errorf("salt-call state.sls: exit status %d: %s", st.Exit, out.String())
	}
	return err
}
