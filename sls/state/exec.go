package state

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/sls/host"
)

// tool runs a program of the machine for a state, without a shell; a failure is an error with the end of its
// standard error. The argument list must hold no secret: other users can see it.
func (c *Call) tool(argv ...string) (string, error) { return c.toolAs(host.Shell{Argv: argv}) }

func (c *Call) toolAs(sh host.Shell) (string, error) {
	if sh.Dir == "" {
		sh.Dir = "/"
	}
	if c.Output != nil {
		sh.OnLine = c.Output
	}
	env := map[string]string{"PATH": c.path()}
	for k, v := range sh.Env {
		env[k] = v
	}
	sh.Env = env
	res, err := c.Host.RunShell(c.Ctx, sh)
	if err != nil {
		return "", err
	}
	if res.Retcode != 0 {
		msg := tail(res.Stderr, 5)
		if msg == "" {
			msg = tail(res.Stdout, 5)
		}
		return res.Stdout, &toolError{name: sh.Argv[0], code: res.Retcode, msg: msg}
	}
	return res.Stdout, nil
}

// quiet is tool without output in the log, for questions.
func (c *Call) quiet(argv ...string) (string, error) {
	q := *c
	q.Output = nil
	return q.toolAs(host.Shell{Argv: argv})
}

type toolError struct {
	name string
	code int
	msg  string
}

func (e *toolError) Error() string {
	if e.msg == "" {
		return fmt.Sprintf("%s ended with exit status %d", e.name, e.code)
	}
	return fmt.Sprintf("%s ended with exit status %d: %s", e.name, e.code, e.msg)
}

// path is where tools are looked for: PATH, and where administration's tools lie.
func (c *Call) path() string {
	path := ""
	for _, kv := range c.Host.Environ {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, d := range []string{"/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		if !strings.Contains(":"+path+":", ":"+d+":") {
			path += ":" + d
		}
	}
	return strings.TrimPrefix(path, ":")
}

// installed reports whether a program is there to be run.
func (c *Call) installed(name string) bool {
	for _, d := range filepath.SplitList(c.path()) {
		if st, err := os.Stat(filepath.Join(d, name)); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return true
		}
	}
	return false
}

// once gives a value that is asked of the machine one time per program.
func (c *Call) once(key string, ask func() any) any {
	if v, ok := c.Cache[key]; ok {
		return v
	}
	v := ask()
	c.Cache[key] = v
	return v
}
