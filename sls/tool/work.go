package tool

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/host"
)

// tailLines is the number of lines of standard error that a failure shows.
const tailLines = 40

// work is one run of a tool.
type work struct {
	in  *sls.Input
	dir string // the private folder of this run
}

// begin creates the private folder; end removes it.
func begin(in *sls.Input) (w *work, end func(), err error) {
	dir, err := os.MkdirTemp("", "corpus-git-step-")
	if err != nil {
		return nil, nil, fault.New(fault.Internal, "run "+in.SLS, "%w", err)
	}
	return &work{in: in, dir: dir}, func() { _ = os.RemoveAll(dir) }, nil
}

// file writes a file into the private folder and returns its path.
func (w *work) file(name, text string) (string, error) {
	p := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		return "", fault.New(fault.Internal, "run "+w.in.SLS, "%w", err)
	}
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		return "", fault.New(fault.Internal, "run "+w.in.SLS, "%w", err)
	}
	return p, nil
}

// cfg returns the configuration of the project as JSON, under a key.
func (w *work) cfg(key string) (string, error) {
	given := w.in.Cfg
	if given == nil {
		given = py.NewDict()
	}
	text, err := py.ToJSON(py.NewDict(key, given), py.JSONOptions{Unicode: true})
	if err != nil {
		return "", fault.New(fault.Internal, "run "+w.in.SLS, "cfg has no form in JSON: %w", err)
	}
	return text + "\n", nil
}

// run runs a command in the folder of the step's file. If it is ended early, the error is ctx's cause; if it did not start, the error is of
// kind Failed.
func (w *work) run(ctx context.Context, argv, env []string, stdin string, line func(sls.Stream, string)) (exit int, tail string, err error) {
	last := &execx.Tail{Max: 16 << 10}
	out := execx.NewLines(func(l string) { line(sls.Stdout, l) })
	serr := execx.NewLines(func(l string) {
		_, _ = last.Write([]byte(l + "\n"))
		line(sls.Stderr, l)
	})
	all := append(append([]string{}, w.in.Host.Environ...), env...)
	st, err := w.in.Host.Exec.Run(ctx, execx.Cmd{
		Argv: argv, Dir: filepath.Dir(w.in.Script), Env: all, Stdin: strings.NewReader(stdin), Stdout: out, Stderr: serr,
	})
	_, _ = out.Close(), serr.Close()
	if cause := context.Cause(ctx); cause != nil {
		return -1, "", cause
	}
	if err != nil {
		return -1, "", fault.New(fault.Failed, "run "+shown(w.in), "%w", err)
	}
	if st.Signal != 0 {
		return -1, host.LastLines(last.String(), tailLines), fault.New(fault.Failed, "run "+shown(w.in), "%s was ended by the signal %d", filepath.Base(argv[0]), st.Signal)
	}
	return st.Exit, host.LastLines(last.String(), tailLines), nil
}

// check runs a command that checks the step and changes nothing; if it fails, its output is the error.
func (w *work) check(ctx context.Context, env []string, argv ...string) error {
	said := &execx.Tail{Max: 8 << 10}
	exit, _, err := w.run(ctx, argv, env, "", func(_ sls.Stream, l string) { _, _ = said.Write([]byte(l + "\n")) })
	if err != nil || exit == 0 {
		return err
	}
	text := strings.TrimSpace(strings.ReplaceAll(said.String(), w.in.Script, shown(w.in)))
	return fault.New(fault.Failed, "check "+shown(w.in), "%s refuses it:\n%s", filepath.Base(argv[0]), host.LastLines(text, tailLines)).
		WithPos(fault.Pos{File: shown(w.in), Line: lineIn(text)})
}

func shown(in *sls.Input) string {
	if in.ScriptFile != "" {
		return in.ScriptFile
	}
	return in.Script
}

// find searches for a program in the PATH of steps.
func find(in *sls.Input, program, install string) error {
	dirs := ""
	for _, kv := range in.Host.Environ {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			dirs = v
		}
	}
	for _, dir := range filepath.SplitList(dirs) {
		if fi, err := os.Stat(filepath.Join(dir, program)); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return nil
		}
	}
	return fault.New(fault.Refused, "check "+shown(in), "%s is not installed on this machine: no such program in PATH (%s)", program, dirs).
		WithPos(fault.Pos{File: shown(in)}).WithHint("%s", install)
}

// exists refuses a step whose file cannot be read. Before a deployment's files exist (no private copy), it is accepted as it is.
func exists(in *sls.Input) (there bool, err error) {
	fi, err := os.Stat(in.Script)
	switch {
	case in.Script == "" || errors.Is(err, os.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fault.New(fault.Internal, "check "+shown(in), "%w", err)
	case !fi.Mode().IsRegular():
		return false, fault.New(fault.Failed, "check "+shown(in), "the step is not a regular file").WithPos(fault.Pos{File: shown(in)})
	}
	return true, nil
}

var namedLine = regexp.MustCompile(`\bline:? ([0-9]+)`)

// lineIn returns the last line that a tool's message names ("line 3", "line: 3"), 0 if it names none: the first may be from another parser.
func lineIn(text string) int {
	all := namedLine.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return 0
	}
	n, err := strconv.Atoi(all[len(all)-1][1])
	if err != nil {
		return 0
	}
	return n
}
