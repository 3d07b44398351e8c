package salt

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/sls"
	"corpus-git/sls/compile"
	"corpus-git/sls/host"
)

// Call runs SLS files through `salt-call --local`, with its own configuration directory.
// Source: Salt documentation, "Salt Masterless Quickstart", and salt-call(1).
type Call struct {
	// Bin is the path of salt-call.
	Bin string
	// Dir is a directory for this deployment only; configuration, cache and pillar are written to it, mode 0700.
	// The caller removes it.
	Dir string
}

var _ sls.Runner = (*Call)(nil)

// Find searches for salt-call in the PATH of an environment; "" if it is not installed.
func Find(environ []string) string {
	path := ""
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, d := range append(filepath.SplitList(path), "/opt/saltstack/salt", "/usr/local/bin") {
		p := filepath.Join(d, "salt-call")
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 && filepath.IsAbs(p) {
			return p
		}
	}
	return ""
}

// Name implements Runner.
func (*Call) Name() string { return "salt-call" }

// Check implements Runner. Salt has no compilation without access to the machine, so for a file that the built-in runner cannot
// compile only its existence is checked; the others are checked as in the built-in runner.
func (s *Call) Check(ctx context.Context, in *sls.Input) (*sls.Checked, error) {
	f, err := in.Roots.SLS(in.SLS)
	if err != nil {
		return nil, compile.NotFound(in.SLS, err)
	}
	out := &sls.Checked{SLS: in.SLS, File: f.Display(), Runner: s.Name()}
	static := *in
	static.Mode = sls.Static
	p, err := compile.SLS(ctx, &static, nil)
	if err == nil {
		out.States, out.Deferred, out.Waits = len(p.States()), p.Deferred, p.Waits()
		return out, nil
	}
	if n, ok := compile.NeedOf(err); ok {
		out.Needs = append(out.Needs, n)
		return out, nil
	}
	return nil, err
}

// Apply implements Runner.
func (s *Call) Apply(ctx context.Context, in *sls.Input, sink sls.Sink) (*sls.StepResult, error) {
	if in.Done != nil {
		return nil, fault.New(fault.Failed, "run "+in.SLS, "Salt cannot continue a file in the middle")
	}
	f, err := in.Roots.SLS(in.SLS)
	if err != nil {
		return nil, compile.NotFound(in.SLS, err)
	}
	if in.Plan {
		return planResult(in, f.Display(), s.Name()), nil
	}
	in, err = onDisk(in, s.Dir)
	if err == nil {
		err = s.Configure(in)
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "configure salt-call", "%w", err)
	}
	stop, err := serveFunctions(ctx, in, s.Dir)
	if err != nil {
		return nil, fault.New(fault.Internal, "configure salt-call", "%w", err)
	}
	defer stop()
	res := &sls.StepResult{SLS: in.SLS, File: f.Display(), Runner: s.Name(), Started: in.Host.Now()}
	if hasModules(in) {
		if _, err := s.call(ctx, in, sink, "saltutil.sync_all"); err != nil {
			return nil, err
		}
	}
	args := []string{"state.sls", in.SLS, "concurrent=True"}
	if in.Test {
		args = append(args, "test=True")
	} else if err := in.Undo.ManualStep("what Salt changed in " + f.Display()); err != nil {
		return nil, err
	}
	out, err := s.call(ctx, in, sink, args...)
	if err != nil {
		return nil, err
	}
	res.States, err = s.results(in, out)
	res.Duration = in.Host.Now().Sub(res.Started)
	if err != nil {
		return nil, err
	}
	for i := range res.States {
		sink.StateStart(res.States[i].StateRef)
		sink.StateDone(res.States[i])
	}
	return res, nil
}

// planResult returns the plan of a step for a separate salt-call, which can't be prevented from running what the files contain.
func planResult(in *sls.Input, file, runner string) *sls.StepResult {
	now := in.Host.Now()
	return &sls.StepResult{SLS: in.SLS, File: file, Runner: runner, Started: now, States: []sls.StateResult{{
		StateRef: sls.StateRef{ID: in.SLS, Name: in.SLS, Function: "state.sls", SLS: in.SLS, File: file, Num: 1, Of: 1},
		Outcome:  sls.WouldChange, Started: now, Unevaluated: []string{"the step"},
	}}}
}

// ownModules reports whether a recipe among the mounts contains its own Python modules, which Salt would load with its own
// privileges.
func ownModules(in *sls.Input) bool {
	for _, r := range in.Roots {
		if r.Mount == "" || r.Foreign {
			continue
		}
		if found, err := fs.Glob(r.FS, ownModulesGlob); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// ownModulesGlob matches the files of such modules in a recipe.
const ownModulesGlob = "_*/*.py"

// hasModules reports whether the file roots contain custom modules that Salt must sync first.
func hasModules(in *sls.Input) bool {
	for _, d := range []string{"_modules", "_states", "_grains", "_renderers", "_utils", "_sdb", "_returners", "_outputters"} {
		if _, err := in.Roots.FindDir(d); err == nil {
			return true
		}
	}
	return false
}

// call runs salt-call and returns its standard output. Its log is passed to the sink.
func (s *Call) call(ctx context.Context, in *sls.Input, sink sls.Sink, args ...string) ([]byte, error) {
	var out limitedBuffer
	tail := &execx.Tail{Max: 16 << 10}
	log := execx.NewLines(func(l string) {
		_, _ = tail.Write([]byte(l + "\n"))
		if l = saltLog(l); l != "" {
			sink.Output("", sls.Log, l)
		}
	})
	argv := append([]string{s.Bin, "--local", "-c", filepath.Join(s.Dir, "conf"), "--retcode-passthrough", "--out=json",
		"--no-color", "--log-level=info"}, args...)
	st, err := in.Host.Exec.Run(ctx, execx.Cmd{Argv: argv, Dir: "/", Env: in.Host.Environ, Stdout: &out, Stderr: log})
	_ = log.Close()
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "run salt-call", "%w", err)
	}
	if out.over {
		return nil, fault.New(fault.Internal, "run salt-call", "it wrote more than %d bytes", maxSaltOutput)
	}
	if !json.Valid(bytes.TrimSpace(out.Bytes())) {
		return nil, fault.New(fault.Internal, "run salt-call", "exit status %d and no result; the end of its log: %s",
			st.Exit, host.LastLines(tail.String(), 10))
	}
	return out.Bytes(), nil
}

const maxSaltOutput = 64 << 20

// limitedBuffer keeps what salt-call writes, up to a limit.
type limitedBuffer struct {
	bytes.Buffer
	over bool
}

// Write implements io.Writer and never fails.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxSaltOutput {
		b.over = true
		return len(p), nil
	}
	return b.Buffer.Write(p)
}
