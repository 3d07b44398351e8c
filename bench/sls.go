package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"corpus-git/internal/execx"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/grains"
	"corpus-git/sls/host"
	"corpus-git/sls/saltproc"
)

const (
	slsSteps    = 5
	slsPerStep  = 20 // states: 16 file.managed and 4 cmd.run
	slsSaltRuns = 3
	slsMany     = 10_000
)

// benchSLS applies 5 steps of 20 states with the built-in runner, with all steps in one Salt process, and with one
// salt-call for each step; and 10,000 file states with the built-in runner and in one Salt process. Salt is found by
// SALT_CALL, a path, or in PATH.
func benchSLS(l *lab) error {
	salt := os.Getenv("SALT_CALL")
	if salt == "" {
		salt = sls.FindSaltCall(os.Environ())
	}
	if salt == "" {
		return fmt.Errorf("there is no salt-call: pip install salt into a virtual environment, and name its salt-call in SALT_CALL")
	}
	root := l.path("salt")
	var names []string
	for i := range slsSteps {
		name := fmt.Sprintf("%d00_step", i+1)
		names = append(names, name)
		text := ""
		for j := range slsPerStep - 4 {
			text += fmt.Sprintf("file-%d:\n  file.managed:\n    - name: %s/out/%s-%d\n    - makedirs: true\n    - contents: content {{ %d + %d }}\n", j, l.dir, name, j, i, j)
		}
		for j := range 4 {
			text += fmt.Sprintf("cmd-%d:\n  cmd.run:\n    - name: 'true'\n", j)
		}
		if err := writeFile(filepath.Join(root, name+".sls"), text, 0o644); err != nil {
			return err
		}
	}
	many := "{% for i in range(" + fmt.Sprint(slsMany) + ") %}\nf{{ i }}:\n  file.managed:\n    - name: " + l.dir + "/many/{{ i }}\n    - makedirs: true\n    - contents: number {{ i }}\n{% endfor %}\n"
	if err := writeFile(filepath.Join(root, "many.sls"), many, 0o644); err != nil {
		return err
	}
	b := &slsBench{lab: l, root: root, salt: salt, host: host.New(execx.OS{}), grains: grains.Collect(grains.Source{})}

	builtin := func() (sls.Runner, func() error) { return &sls.Builtin{}, func() error { return nil } }
	process := func() (sls.Runner, func() error) {
		s := saltproc.New(salt, l.path(fmt.Sprintf("process-%d", time.Now().UnixNano())))
		return s, s.Close
	}
	single := func() (sls.Runner, func() error) { return &perStep{b}, func() error { return nil } }

	fmt.Printf("%d steps, %d states\n", slsSteps, slsSteps*slsPerStep)
	for _, peer := range []struct {
		name string
		open func() (sls.Runner, func() error)
	}{{"all steps in one Salt process", process}, {"one salt-call for each step", single}} {
		if _, err := compare(slsSaltRuns, b.clear, "corpus-git, built-in runner", b.run(builtin, names...), peer.name, b.clearThen(b.run(peer.open, names...))); err != nil {
			return err
		}
	}
	fmt.Printf("%d file states\n", slsMany)
	_, err := compare(1, b.clear, "corpus-git, built-in runner", b.run(builtin, "many"), "one Salt process", b.clearThen(b.run(process, "many")))
	return err
}

type slsBench struct {
	*lab
	root, salt string
	host       *host.Host
	grains     *py.Dict
}

func (b *slsBench) clear(int) error {
	for _, d := range []string{"out", "many"} {
		if err := os.RemoveAll(b.path(d)); err != nil {
			return err
		}
	}
	return nil
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
		for _, n := range names {
			res, err := r.Apply(context.Background(), b.input(n), sls.Discard{})
			if err != nil {
				return err
			}
			if f := res.Failed(); f != nil {
				return fmt.Errorf("%s: state %s failed: %s", n, f.ID, f.Comment)
			}
		}
		return end()
	}
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
	return (&sls.SaltCall{Bin: p.salt}).Check(ctx, in)
}

// Apply implements sls.Runner.
func (p *perStep) Apply(ctx context.Context, in *sls.Input, sink sls.Sink) (*sls.StepResult, error) {
	dir := p.path(fmt.Sprintf("call-%d", time.Now().UnixNano()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	return (&sls.SaltCall{Bin: p.salt, Dir: dir}).Apply(ctx, in, sink)
}
