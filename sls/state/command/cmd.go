package command

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/sls/host"
	"corpus-git/sls/state/codecs"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/fetch"
	"corpus-git/undo"
)

// addCmd adds Salt's cmd module. "user" means runas, as in the Salt that corpus projects were written for.
func addCmd(t *core.Table) {
	const common = "cwd root runas user group password shell env prepend_path stateful output_loglevel hide_output timeout " +
		"ignore_timeout use_vt success_retcodes success_stdout success_stderr stdin clean_env template context defaults rstrip " +
		"output_encoding log_callback? reset_system_locale ignore_retcode? python_shell? bg~ quiet~ undo **"
	t.Add("cmd.run", common, cmdRun)
	wait := func(*core.Call) core.Return { return core.Return{Result: core.True} }
	t.Add("cmd.wait", common, wait)
	t.Add("cmd.watch", common, wait) // an alias in Salt, too
	t.Add("cmd.script", common+" source args", cmdScript)
	t.Add("cmd.wait_script", common+" source args", wait)
	t.OnWatch("cmd", func(c *core.Call, sfun string) core.Return {
		switch sfun {
		case "run", "wait", "watch":
			return cmdRun(c)
		case "script", "wait_script":
			return cmdScript(c)
		}
		return core.Failf("cmd.%s does not work with the watch requisite, please use cmd.wait or cmd.wait_script", sfun)
	})
}

// shell is the command line of a cmd state, without the line itself.
func shell(c *core.Call) host.Shell {
	s := host.Shell{
		Dir:        c.Str("cwd", ""),
		RunAs:      c.RunAsUser(),
		Group:      c.Str("group", ""),
		Env:        c.EnvVars("env"),
		Prepend:    c.Str("prepend_path", ""),
		CleanEnv:   c.Bool("clean_env", false),
		KeepLocale: !c.Bool("reset_system_locale", true),
		Path:       c.Str("shell", ""),
		Umask:      c.Umask,
		Timeout:    time.Duration(c.Int("timeout", 0)) * time.Second,
		Stdin:      c.Str("stdin", ""),
		KeepEnd:    !c.Bool("rstrip", true),
	}
	if name := c.Str("output_encoding", ""); name != "" {
		s.Decode, _ = codecs.Decoder(name) // a missing one was refused before
	}
	if c.Output != nil && !c.Bool("hide_output", false) && c.Str("output_loglevel", "debug") != "quiet" {
		s.OnLine = c.Output
	}
	return s
}

// stateful reports whether the command reports its own changes, and what to run in a test run.
func stateful(c *core.Call) (on bool, testName string) {
	v, ok := c.Value("stateful")
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

func cmdRun(c *core.Call) core.Return {
	name := c.Name
	stateful, testName := stateful(c)
	if c.Has("root") {
		return core.Failf("The argument root (a chroot) is not supported")
	}
	sh := shell(c)
	if c.Test && testName == "" {
		ret := core.Would(py.NewDict("cmd", name), "Command \"%s\" would have been executed", name)
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
			return core.Failf("Desired working directory \"%s\" is not available", sh.Dir)
		}
	}
	if c.Has("template") {
		text, err := fetch.RenderText(c, name, "the command of state "+c.ID)
		if err != nil {
			return core.Failf("%s", err)
		}
		name = text
	}
	sh.Line = name
	return finish(c, sh, name, "Command \""+name+"\" run", stateful)
}

// finish runs a command and makes the state's return of it.
func finish(c *core.Call, sh host.Shell, label, comment string, stateful bool) core.Return {
	if err := noteCommand(c, sh); err != nil {
		return core.Failf("%s", err)
	}
	res, err := c.Host.RunShell(c.Ctx, sh)
	if err != nil {
		ret := core.Failf("%s", err)
		ret.Command = &core.Command{Line: label, Dir: sh.Dir, User: sh.RunAs, ExitStatus: -1}
		return ret
	}
	overrideRetcode(c, &res)
	ret := core.Return{Result: core.True, Comment: comment, Command: Command(label, res)}
	if res.TimedOut {
		res.Stdout = label + " : Timed out after " + c.Str("timeout", "") + " seconds"
		res.Stderr = ""
	}
	if c.Bool("hide_output", false) {
		res.Stdout, res.Stderr = "", ""
	}
	if res.TimedOut && c.Bool("ignore_timeout", false) {
		res.Retcode = 0
	}
	if res.Retcode != 0 {
		ret.Result = core.False
	}
	ret.Changes = py.NewDict("retcode", int64(res.Retcode), "stdout", res.Stdout, "stderr", res.Stderr)
	if stateful {
		ret = reinterpret(ret, res)
	}
	if c.Test && res.Retcode == 0 && ret.Changed() {
		ret.Result = core.None
	}
	return ret
}

// noteCommand records in the undo log that a command is about to run, and the command that undoes it if the state has one: the argument
// undo, which Salt ignores. That command runs in a rollback, with the state's runas, from /, and exit status 0 means success.
func noteCommand(c *core.Call, sh host.Shell) error {
	line := c.Str("undo", "")
	if line == "" {
		return c.Manual()
	}
	argv := []string{"/bin/sh", "-c", line}
	if sh.RunAs != "" && c.Host.EUID == 0 {
		argv = append([]string{"runuser", "-u", sh.RunAs, "--"}, argv...)
	}
	return c.BeforeAction(undo.Action{Noun: "command", Name: c.Name, Undo: argv})
}

// Command describes a command that ran, for the result.
func Command(line string, res host.ShellResult) *core.Command {
	return &core.Command{Line: line, Dir: res.Dir, User: res.User, ExitStatus: res.Retcode, TimedOut: res.TimedOut,
		StderrTail: host.LastLines(res.Stderr, 40)}
}

// overrideRetcode applies success_retcodes, success_stdout and success_stderr.
func overrideRetcode(c *core.Call, res *host.ShellResult) {
	for _, s := range c.CommaList("success_retcodes") {
		if s == py.Str(int64(res.Retcode)) {
			res.Retcode = 0
		}
	}
	for _, s := range c.CommaList("success_stdout") {
		if strings.Contains(res.Stdout, s) {
			res.Retcode = 0
		}
	}
	for _, s := range c.CommaList("success_stderr") {
		if strings.Contains(res.Stderr, s) {
			res.Retcode = 0
		}
	}
}

// reinterpret reads the changes that a stateful command reports: JSON, or key=value pairs in the last line.
// Source: Salt documentation, cmd state, "Using the Stateful Argument".
func reinterpret(ret core.Return, res host.ShellResult) core.Return {
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
			ret.Result, ret.Comment = core.False, "script JSON output must be a JSON object (e.g., {})!"
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
			ret.Result = core.False
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
			ret.Result, ret.Comment = core.False, "Failed parsing boolean value of changed"
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

func cmdScript(c *core.Call) core.Return {
	name := c.Name
	stateful, testName := stateful(c)
	sh := shell(c)
	if c.Test && testName == "" {
		ret := core.Would(nil, "Command '%s' would have been executed", name)
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
			return core.Failf("Desired working directory \"%s\" is not available", sh.Dir)
		}
	}
	source := c.Str("source", "")
	args := c.Str("args", "")
	first, rest, _ := strings.Cut(name, " ")
	if source == "" {
		source = first
	}
	if args == "" {
		args = rest
	}
	content, _, err := fetch.File(c, source)
	if err != nil {
		ret := core.Failf("Unable to cache script %s from saltenv 'base'", source)
		if fault.KindOf(err) == fault.Refused { // it exists, but must not be used by this deployment
			ret.Comment += ": " + fault.Cause(err)
		}
		ret.Changes = py.NewDict("retcode", int64(1), "stdout", "", "stderr", "", "cache_error", true)
		return ret
	}
	if c.Has("template") {
		text, err := fetch.RenderFile(c, string(content), source)
		if err != nil {
			return core.Failf("%s", err)
		}
		content = []byte(text)
	}
	dir, discard, err := c.NewTempDir("corpus-script-")
	if err != nil {
		return core.Failf("%s", err)
	}
	defer discard()
	path := filepath.Join(dir, "script"+filepath.Ext(source))
	if err := os.WriteFile(path, content, 0o500); err != nil {
		return core.Failf("%s", err)
	}
	if cred, err := c.Host.CredFor(sh.RunAs); err == nil && cred != nil {
		if err := os.Chown(path, cred.UID, cred.GID); err != nil {
			return core.Failf("%s", err)
		}
		if err := os.Chmod(dir, 0o711); err != nil { // the path to the script, and no more
			return core.Failf("%s", err)
		}
	}
	sh.Line = path
	if args != "" {
		sh.Line += " " + args
	}
	return finish(c, sh, name, "Command '"+name+"' run", stateful)
}

// JSON returns the changes as JSON; nil if there are none.
func JSON(r *core.Return) json.RawMessage {
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
