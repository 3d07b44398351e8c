package salt

import (
	"bufio"
	"context"
	_ "embed" // the modules' text
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/modules"
)

// Salt's modules for makina-states' functions: the text that all contain, and the code that answers within Salt.
var (
	//go:embed saltmodules/ask.py
	askModule string
	//go:embed saltmodules/mc_project.py
	projectModule string
	//go:embed saltmodules/mc_utils.py
	utilsModule string
)

const (
	functionSocket = "functions.sock"
	// maxQuestion limits the size of a call, since arguments are a template's values.
	maxQuestion = 8 << 20
	// questionTimeout limits how long one caller can block the others.
	questionTimeout = time.Minute
)

// makinaFunctions returns the built-in functions of makina-states, by module.
func makinaFunctions() map[string][]string {
	out := map[string][]string{}
	for _, n := range modules.New(&modules.Env{}).Names() {
		if module, fn, ok := strings.Cut(n, "."); ok && strings.HasPrefix(module, "mc_") {
			out[module] = append(out[module], fn)
		}
	}
	return out
}

// moduleText is Salt's module of those functions: each is either in the text, or is called in the server.
func moduleText(module string, functions []string) string {
	text := askModule
	switch module {
	case "mc_project", "mc_project_2":
		text += projectModule
	case "mc_utils":
		text += utilsModule
	}
	for _, fn := range functions {
		if !strings.Contains(text, "\ndef "+fn+"(") {
			text += fmt.Sprintf("\n\ndef %s(*args, **kwargs):\n    return _ask(%q, args, kwargs)\n", fn, module+"."+fn)
		}
	}
	return text
}

// writeFunctions writes Salt's modules of makina-states' functions. Modules that the file roots contain themselves are omitted.
func (s *Call) writeFunctions(in *sls.Input) error {
	dir := filepath.Join(s.Dir, "modules", "modules")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for module, functions := range makinaFunctions() {
		_, err := in.Roots.Find("_modules/" + module + ".py")
		switch {
		case err == nil:
			continue
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, module+".py"), []byte(moduleText(module, functions)), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// serveFunctions answers the calls of Salt's modules of makina-states' functions until stop is called, one after the other, and those of the state
// corpus.wait in parallel. The socket is in the private directory of this Salt.
func serveFunctions(ctx context.Context, in *sls.Input, dir string) (stop func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Remove(filepath.Join(dir, functionSocket)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// The path of a socket has at most 107 bytes: the path through an open folder is short.
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), functionSocket))
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	env := &modules.Env{Host: in.Host, Roots: in.Roots, Cfg: in.Cfg, Pillar: in.Pillar, Grains: in.Grains, Opts: in.Opts, Locations: in.Locations, KV: in.KV}
	if in.Passwords != nil {
		env.Passwords = in.Passwords
	}
	set := modules.New(env)
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			shut := context.AfterFunc(ctx, func() { _ = conn.Close() })
			_ = conn.SetDeadline(time.Now().Add(questionTimeout))
			q, err := readQuestion(conn)
			if err == nil && q.function == waitFunction { // it may take any time, and others continue to call
				_ = conn.SetDeadline(time.Time{})
				serving.Go(func() {
					value, err := callWait(ctx, in, q)
					answerFunction(conn, value, err)
					shut()
					_ = conn.Close()
				})
				continue
			}
			var value any
			if err == nil {
				value, err = set.Call(ctx, q.function, q.args, q.kwargs)
			}
			answerFunction(conn, value, err)
			shut()
			_ = conn.Close()
		}
	})
	return func() {
		cancel()
		_ = l.Close()
		serving.Wait()
		_ = folder.Close()
	}, nil
}

// waitFunction is the function that Salt's state corpus.wait calls.
const waitFunction = "corpus.wait"

// question is one call.
type question struct {
	function string
	args     []any
	kwargs   *py.Dict
}

func readQuestion(conn io.Reader) (q question, err error) {
	line, err := bufio.NewReader(io.LimitReader(conn, maxQuestion)).ReadString('\n')
	if errors.Is(err, io.EOF) && line != "" {
		err = fmt.Errorf("the arguments are longer than %d bytes", maxQuestion)
	}
	if err != nil {
		return q, err
	}
	v, err := py.FromJSON(line)
	if err != nil {
		return q, err
	}
	d, _ := v.(*py.Dict)
	name, _ := d.GetStr("function")
	args, _ := d.GetStr("args")
	kwargs, _ := d.GetStr("kwargs")
	fn, ok1 := name.(string)
	list, ok2 := args.(*py.List)
	kw, ok3 := kwargs.(*py.Dict)
	if !ok1 || !ok2 || !ok3 || !strings.HasPrefix(fn, "mc_") && fn != waitFunction {
		return q, errors.New("not a call of a function of makina-states")
	}
	return question{fn, list.Items(), kw}, nil
}

// answerFunction answers one call.
func answerFunction(conn io.Writer, value any, err error) {
	text := ""
	if err == nil {
		text, err = py.ToJSON(py.NewDict("value", value), py.JSONOptions{})
	}
	if err != nil {
		if text, err = py.ToJSON(py.NewDict("error", err.Error()), py.JSONOptions{}); err != nil {
			return
		}
	}
	_, _ = io.WriteString(conn, text+"\n") // otherwise the caller has disconnected
}

// callWait waits as the state corpus.wait does.
func callWait(ctx context.Context, in *sls.Input, q question) (any, error) {
	if in.Wait == nil || len(q.args) != 1 {
		return nil, errors.New("this is not a step of a deployment that can wait")
	}
	return in.Wait(ctx, py.Str(q.args[0]), q.kwargs, sls.Lost("Salt runs it"))
}
