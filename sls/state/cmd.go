package state

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
)

// addCmd adds Salt's cmd module. "user" stands for runas, as in the Salt that corpus projects were written for.
func addCmd(t *Table) {
	const common = "cwd root runas user group password shell env prepend_path stateful output_loglevel hide_output timeout " +
		"ignore_timeout use_vt success_retcodes success_stdout success_stderr stdin clean_env template context defaults rstrip " +
		"output_encoding log_callback? reset_system_locale ignore_retcode? python_shell? bg~ quiet~"
	t.add("cmd.run", common, cmdRun)
	t.add("cmd.wait", common, func(*Call) Return { return Return{Result: True} })
	t.add("cmd.script", common+" source args", cmdScript)
	t.add("cmd.wait_script", common+" source args", func(*Call) Return { return Return{Result: True} })
	t.onWatch("cmd", func(c *Call, sfun string) Return {
		switch sfun {
		case "run", "wait", "watch":
			return cmdRun(c)
		case "script", "wait_script":
			return cmdScript(c)
		}
		return Failf("cmd.%s does not work with the watch requisite, please use cmd.wait or cmd.wait_script", sfun)
	})
}

// shell is the command line of a cmd state, without the line itself.
func (c *Call) shell() host.Shell {
	s := host.Shell{
		Dir:        c.str("cwd", ""),
		RunAs:      c.runAs(),
		Group:      c.str("group", ""),
		Env:        c.env("env"),
		Prepend:    c.str("prepend_path", ""),
		CleanEnv:   c.boolean("clean_env", false),
		KeepLocale: !c.boolean("reset_system_locale", true),
		Path:       c.str("shell", ""),
		Umask:      c.Umask,
		Timeout:    time.Duration(c.integer("timeout", 0)) * time.Second,
		Stdin:      c.str("stdin", ""),
		KeepEnd:    !c.boolean("rstrip", true),
	}
	if name := c.str("output_encoding", ""); name != "" {
		s.Decode, _ = decoder(name) // one that is not there was refused before
	}
	if c.Output != nil && !c.boolean("hide_output", false) && c.str("output_loglevel", "debug") != "quiet" {
		s.OnLine = c.Output
	}
	return s
}

func (c *Call) runAs() string {
	if s := c.str("runas", c.RunAs); s != "" {
		return s
	}
	return c.str("user", "")
}

// env reads environment variables: a mapping, or a list of mappings or of KEY=VALUE.
func (c *Call) env(name string) map[string]string {
	v, ok := c.val(name)
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
				badArg("Invalidly-formatted 'env' parameter. See documentation.")
			}
		}
	default:
		badArg("Invalidly-formatted 'env' parameter. See documentation.")
	}
	return out
}

// stateful reports whether the command reports its own changes, and what to run in a test run.
func (c *Call) stateful() (on bool, testName string) {
	v, ok := c.val("stateful")
	if !ok {
		return false, ""
	}
	if l, isList := v.(*py.List); isList {
		if l.Len() > 0 {
			if d, isDict := l.At(0).(*py.Dict); isDict {
				if s, has := d.GetStr("test_name"); has {
					testName = py.Str(s)
				}
			}
		}
		return true, testName
	}
	return v == true, ""
}

func cmdRun(c *Call) Return {
	name := c.Name
	stateful, testName := c.stateful()
	if c.has("root") {
		return Failf("The argument root (a chroot) is not supported")
	}
	sh := c.shell()
	if c.Test && testName == "" {
		ret := Would(py.NewDict("cmd", name), "Command \"%s\" would have been executed", name)
		if stateful {
			ret.Changes, ret.Comment = nil, ""
		}
		return ret
	}
	if c.Test {
		name = testName
	}
	if sh.Dir != "" {
		if st, err := os.Stat(sh.Dir); err != nil || !st.IsDir() {
			return Failf("Desired working directory \"%s\" is not available", sh.Dir)
		}
	}
	if c.has("template") {
		text, err := c.renderText(name, "the command of state "+c.ID)
		if err != nil {
			return Failf("%s", err)
		}
		name = text
	}
	sh.Line = name
	return c.finish(sh, name, "Command \""+name+"\" run", stateful)
}

// finish runs a command and makes the state's return of it.
func (c *Call) finish(sh host.Shell, label, comment string, stateful bool) Return {
	res, err := c.Host.RunShell(c.Ctx, sh)
	if err != nil {
		ret := Failf("%s", err)
		ret.Command = &Command{Line: label, Dir: sh.Dir, User: sh.RunAs, ExitStatus: -1}
		return ret
	}
	c.overrideRetcode(&res)
	ret := Return{Result: True, Comment: comment, Command: command(label, res)}
	if res.TimedOut {
		res.Stdout = label + " : Timed out after " + c.str("timeout", "") + " seconds"
		res.Stderr = ""
	}
	if c.boolean("hide_output", false) {
		res.Stdout, res.Stderr = "", ""
	}
	if res.TimedOut && c.boolean("ignore_timeout", false) {
		res.Retcode = 0
	}
	if res.Retcode != 0 {
		ret.Result = False
	}
	ret.Changes = py.NewDict("retcode", int64(res.Retcode), "stdout", res.Stdout, "stderr", res.Stderr)
	if stateful {
		ret = reinterpret(ret, res)
	}
	if c.Test && res.Retcode == 0 && ret.Changed() {
		ret.Result = None
	}
	return ret
}

func command(line string, res host.ShellResult) *Command {
	return &Command{Line: line, Dir: res.Dir, User: res.User, ExitStatus: res.Retcode, TimedOut: res.TimedOut,
		StderrTail: tail(res.Stderr, 40)}
}

// tail is the last n lines of s.
func tail(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}

// overrideRetcode applies success_retcodes, success_stdout and success_stderr.
func (c *Call) overrideRetcode(res *host.ShellResult) {
	for _, s := range c.commaList("success_retcodes") {
		if s == py.Str(int64(res.Retcode)) {
			res.Retcode = 0
		}
	}
	for _, s := range c.commaList("success_stdout") {
		if strings.Contains(res.Stdout, s) {
			res.Retcode = 0
		}
	}
	for _, s := range c.commaList("success_stderr") {
		if strings.Contains(res.Stderr, s) {
			res.Retcode = 0
		}
	}
}

// reinterpret reads the changes that a stateful command reports: JSON, or key=value pairs in the last line.
// Source: Salt documentation, cmd state, "Using the Stateful Argument".
func reinterpret(ret Return, res host.ShellResult) Return {
	raw := ret.Changes
	ret.Changes, ret.Comment = nil, ""
	if res.Stdout == "" {
		ret.Comment = res.Stderr
		return ret
	}
	data := py.NewDict()
	stdout := ""
	if v, err := py.FromJSON(res.Stdout); err == nil {
		d, ok := v.(*py.Dict)
		if !ok {
			ret.Result, ret.Comment = False, "script JSON output must be a JSON object (e.g., {})!"
			return ret
		}
		data = d
	} else {
		last := res.Stdout
		if i := strings.LastIndexByte(last, '\n'); i >= 0 {
			stdout, last = last[:i], last[i+1:]
		}
		words, err := splitShell(last)
		for _, w := range words {
			k, v, ok := strings.Cut(w, "=")
			if !ok || strings.Contains(v, "=") {
				err = errors.New("not a pair")
				break
			}
			data.SetStr(k, v)
		}
		if err != nil {
			ret.Result = False
			ret.Comment = "Failed parsing script output! Stdout must be JSON or a line of name=value pairs."
			ret.Changes = raw
			return ret
		}
	}
	changed := false
	if v, ok := data.GetStr("changed"); ok {
		switch strings.ToLower(py.Str(v)) {
		case "true", "yes", "1":
			changed = true
		case "false", "no", "0":
		default:
			ret.Result, ret.Comment = False, "Failed parsing boolean value of changed"
			return ret
		}
	}
	if v, ok := data.Pop("comment"); ok {
		ret.Comment = py.Str(v)
	}
	if changed {
		for _, e := range raw.Items() {
			if !data.Has(e.Key) {
				_ = data.Set(e.Key, e.Value)
			}
		}
		data.SetStr("stdout", stdout)
		ret.Changes = data
	}
	return ret
}

// splitShell splits a line into words with the quoting of a POSIX shell.
func splitShell(s string) ([]string, error) {
	var out []string
	var cur strings.Builder
	in, quote := false, byte(0)
	for i := 0; i < len(s); i++ {
		ch := s[i]
		switch {
		case quote == '\'':
			if ch == '\'' {
				quote = 0
			} else {
				cur.WriteByte(ch)
			}
		case ch == '\\' && i+1 < len(s) && (quote == 0 || strings.IndexByte(`"\$`+"`", s[i+1]) >= 0):
			i++
			cur.WriteByte(s[i])
			in = true
		case quote == '"':
			if ch == '"' {
				quote = 0
			} else {
				cur.WriteByte(ch)
			}
		case ch == '\'' || ch == '"':
			quote, in = ch, true
		case ch == ' ' || ch == '\t' || ch == '\n':
			if in {
				out = append(out, cur.String())
				cur.Reset()
				in = false
			}
		default:
			cur.WriteByte(ch)
			in = true
		}
	}
	if quote != 0 {
		return out, errors.New("a quote is not closed")
	}
	if in {
		out = append(out, cur.String())
	}
	return out, nil
}

func cmdScript(c *Call) Return {
	name := c.Name
	stateful, testName := c.stateful()
	sh := c.shell()
	if c.Test && testName == "" {
		ret := Would(nil, "Command '%s' would have been executed", name)
		if stateful {
			ret.Comment = ""
		}
		return ret
	}
	if c.Test {
		name = testName
	}
	if sh.Dir != "" {
		if st, err := os.Stat(sh.Dir); err != nil || !st.IsDir() {
			return Failf("Desired working directory \"%s\" is not available", sh.Dir)
		}
	}
	source := c.str("source", "")
	args := c.str("args", "")
	first, rest, _ := strings.Cut(name, " ")
	if source == "" {
		source = first
	}
	if args == "" {
		args = rest
	}
	content, _, err := c.fetch(source)
	if err != nil {
		ret := Failf("Unable to cache script %s from saltenv 'base'", source)
		ret.Changes = py.NewDict("retcode", int64(1), "stdout", "", "stderr", "", "cache_error", true)
		return ret
	}
	if c.has("template") {
		text, err := c.renderFile(string(content), source)
		if err != nil {
			return Failf("%s", err)
		}
		content = []byte(text)
	}
	dir, discard, err := c.newScratchDir("corpus-script-")
	if err != nil {
		return Failf("%s", err)
	}
	defer discard()
	path := filepath.Join(dir, "script"+filepath.Ext(source))
	if err := os.WriteFile(path, content, 0o500); err != nil {
		return Failf("%s", err)
	}
	if cred, err := c.Host.CredFor(sh.RunAs); err == nil && cred != nil {
		if err := os.Chown(path, cred.UID, cred.GID); err != nil {
			return Failf("%s", err)
		}
		if err := os.Chmod(dir, 0o711); err != nil { // the way to the script, and no more
			return Failf("%s", err)
		}
	}
	sh.Line = path
	if args != "" {
		sh.Line += " " + args
	}
	return c.finish(sh, name, "Command '"+name+"' run", stateful)
}

// JSON is the changes as JSON; nil where there are none.
func (r *Return) JSON() json.RawMessage {
	if r.Changes.Len() == 0 {
		return nil
	}
	s, err := py.ToJSON(r.Changes, py.JSONOptions{})
	if err != nil {
		s, err = py.ToJSON(py.Str(r.Changes), py.JSONOptions{})
		if err != nil {
			return json.RawMessage(`{}`)
		}
	}
	return json.RawMessage(s)
}
