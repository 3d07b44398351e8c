package modules

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
)

func pathMatch(pattern, s string) (bool, error) {
	swap := func(x string) string { return strings.ReplaceAll(x, "/", "\x00") }
	return path.Match(strings.ReplaceAll(swap(pattern), "[!", "[^"), swap(s))
}

func addCmd(s table) {
	const spec = "cmd cwd? stdin? runas? group? shell? python_shell? env? clean_env? template? rstrip? umask? output_encoding? " +
		"output_loglevel? log_callback? hide_output? timeout? reset_system_locale? ignore_retcode? saltenv? use_vt? " +
		"redirect_stderr? bg~ password? encoded_cmd? raise_err? prepend_path? success_retcodes? **"
	run := func(pick func(host.ShellResult) any, merge bool) func(*call) (any, error) {
		return func(c *call) (any, error) {
			res, err := c.shell(merge)
			if err != nil {
				return nil, err
			}
			return pick(res), nil
		}
	}
	s.live("cmd.run", spec, run(func(r host.ShellResult) any { return r.Stdout }, true))
	s.live("cmd.shell", spec, run(func(r host.ShellResult) any { return r.Stdout }, true))
	s.live("cmd.run_stdout", spec, run(func(r host.ShellResult) any { return r.Stdout }, false))
	s.live("cmd.run_stderr", spec, run(func(r host.ShellResult) any { return r.Stderr }, false))
	s.live("cmd.retcode", spec, run(func(r host.ShellResult) any { return int64(r.Retcode) }, false))
	s.live("cmd.run_all", spec, run(func(r host.ShellResult) any {
		return py.NewDict("retcode", int64(r.Retcode), "stdout", r.Stdout, "stderr", r.Stderr)
	}, false))
	s.live("cmd.which", "cmd", func(c *call) (any, error) {
		if p := c.which(c.str("cmd", "")); p != "" {
			return p, nil
		}
		return nil, nil
	})
	s.live("cmd.has_exec", "cmd", func(c *call) (any, error) { return c.which(c.str("cmd", "")) != "", nil })
	s.live("cmd.which_bin", "cmds", func(c *call) (any, error) {
		l, ok := c.val("cmds").(*py.List)
		if !ok {
			return nil, nil
		}
		for _, v := range l.Items() {
			if p := c.which(py.Str(v)); p != "" {
				return p, nil
			}
		}
		return nil, nil
	})
}

// shell runs a command of a template, through a shell as in Salt's templates.
func (c *call) shell(merge bool) (host.ShellResult, error) {
	timeout, err := c.integer("timeout", 0)
	if err != nil {
		return host.ShellResult{}, err
	}
	sh := host.Shell{
		Line: c.str("cmd", ""), Dir: c.str("cwd", ""), RunAs: c.str("runas", ""), Group: c.str("group", ""),
		Path: c.str("shell", ""), Stdin: c.str("stdin", ""), Prepend: c.str("prepend_path", ""),
		CleanEnv: c.boolean("clean_env", false), KeepLocale: !c.boolean("reset_system_locale", true),
		KeepEnd: !c.boolean("rstrip", true), Merge: merge && c.boolean("redirect_stderr", true),
		Timeout: time.Duration(timeout) * time.Second, Env: environment(c.val("env")),
	}
	if l, ok := c.val("cmd").(*py.List); ok {
		for _, v := range l.Items() {
			sh.Argv = append(sh.Argv, py.Str(v))
		}
	}
	if sh.RunAs == "" {
		if u, ok := c.kw.GetStr("user"); ok {
			sh.RunAs = py.Str(u)
		}
	}
	res, err := c.Host.RunShell(c.ctx, sh)
	if err != nil {
		return res, err
	}
	if res.Retcode != 0 && c.boolean("raise_err", false) {
		return res, fmt.Errorf("a command called while the template renders ended with exit status %d", res.Retcode)
	}
	return res, nil
}

func environment(v any) map[string]string {
	out := map[string]string{}
	put := func(d *py.Dict) {
		for _, e := range d.Items() {
			out[py.Str(e.Key)] = py.Str(e.Value)
		}
	}
	switch x := v.(type) {
	case *py.Dict:
		put(x)
	case *py.List:
		for _, it := range x.Items() {
			if d, ok := it.(*py.Dict); ok {
				put(d)
			}
		}
	}
	return out
}

// which finds a program in PATH.
func (c *call) which(name string) string {
	ok := func(p string) bool {
		st, err := os.Stat(p)
		return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
	}
	if strings.Contains(name, "/") {
		if ok(name) {
			return name
		}
		return ""
	}
	for _, dir := range filepath.SplitList(c.getenv("PATH")) {
		if p := filepath.Join(dir, name); filepath.IsAbs(p) && ok(p) {
			return p
		}
	}
	return ""
}

func (c *call) getenv(key string) string {
	for i := len(c.Host.Environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(c.Host.Environ[i], key+"="); ok {
			return v
		}
	}
	return ""
}
