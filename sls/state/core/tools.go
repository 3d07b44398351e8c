package core

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
)

// Tool runs a program of the machine for a state, without a shell; a failure is an error with the end of its
// standard error. The argument list must not contain a secret: other users can see it.
func (c *Call) Tool(argv ...string) (string, error) { return c.ToolShell(host.Shell{Argv: argv}) }

// ToolShell is Tool for a command with its own directory, user, environment or input.
func (c *Call) ToolShell(sh host.Shell) (string, error) {
	if sh.Dir == "" {
		sh.Dir = "/"
	}
	if err := c.program(); err != nil {
		return "", err
	}
	if c.Output != nil {
		sh.OnLine = c.Output
	}
	env := map[string]string{"PATH": c.ToolPath()}
	for k, v := range sh.Env {
		env[k] = v
	}
	sh.Env = env
	res, err := c.Host.RunShell(c.Ctx, sh)
	if err != nil {
		return "", err
	}
	if res.Retcode != 0 {
		msg := host.LastLines(res.Stderr, 5)
		if msg == "" {
			msg = host.LastLines(res.Stdout, 5)
		}
		return res.Stdout, &ToolError{name: sh.Argv[0], Code: res.Retcode, Stderr: msg}
	}
	return res.Stdout, nil
}

// Query is Tool without output in the log, for reading information.
func (c *Call) Query(argv ...string) (string, error) {
	q := *c
	q.Output = nil
	return q.ToolShell(host.Shell{Argv: argv})
}

// ToolError is the error of a program that ended with a non-zero exit status.
type ToolError struct {
	name   string
	Code   int
	Stderr string
}

func (e *ToolError) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("%s ended with exit status %d", e.name, e.Code)
	}
	return fmt.Sprintf("%s ended with exit status %d: %s", e.name, e.Code, e.Stderr)
}

// ToolPath returns the path that is searched for tools: PATH, and the directories of the machine's tools.
func (c *Call) ToolPath() string {
	path := ""
	for _, kv := range c.Host.Environ {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, d := range c.Host.ToolDirs {
		if !strings.Contains(":"+path+":", ":"+d+":") {
			path += ":" + d
		}
	}
	return strings.TrimPrefix(path, ":")
}

// Installed reports whether a program is installed.
func (c *Call) Installed(name string) bool {
	for _, d := range filepath.SplitList(c.ToolPath()) {
		if st, err := os.Stat(filepath.Join(d, name)); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return true
		}
	}
	return false
}

// Once returns a value that is read from the machine once per program.
func (c *Call) Once(key string, ask func() any) any {
	if v, ok := c.Cache[key]; ok {
		return v
	}
	v := ask()
	c.Cache[key] = v
	return v
}

// Problems returns the output of a failed apt-get.
func (c *Call) Problems(err error) []string {
	var t *ToolError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &t) && t.Stderr != "":
		return []string{t.Stderr}
	}
	return []string{err.Error()}
}

// InvocationError is the error for an invalid argument: Salt reports it in its own words, without the operation.
type InvocationError struct{ Msg string }

// Errorf returns an error in Salt's own words, which begin with a capital letter.
func Errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }

func (e *InvocationError) Error() string { return e.Msg }

// EnvVars reads environment variables: a mapping, or a list of mappings or of KEY=VALUE.
func (c *Call) EnvVars(name string) map[string]string {
	v, ok := c.Value(name)
	if !ok {
		return nil
	}
	out := map[string]string{}
	put := func(d *py.Dict) {
		for _, e := range d.Items() {
			if e.Value == nil {
				out[py.Str(e.Key)] = ""
			} else {
				out[py.Str(e.Key)] = py.Str(e.Value)
			}
		}
	}
	switch x := v.(type) {
	case *py.Dict:
		put(x)
	case *py.List:
		for _, it := range x.Items() {
			switch e := it.(type) {
			case *py.Dict:
				put(e)
			case string:
				k, val, _ := strings.Cut(e, "=")
				out[k] = val
			default:
				BadArg("Invalidly-formatted 'env' parameter. See documentation.")
			}
		}
	default:
		BadArg("Invalidly-formatted 'env' parameter. See documentation.")
	}
	return out
}

// RunAsUser returns the user that runs a command of the state, "" for the user of this program: runas, or user.
func (c *Call) RunAsUser() string {
	if s := c.Str("runas", c.RunAs); s != "" {
		return s
	}
	return c.Str("user", "")
}
