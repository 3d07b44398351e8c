package modules

import (
	"slices"
	"strconv"
	"strings"

	"corpus-git/internal/py"
)

// addMakinaSupervisor adds the registries of supervisord and cron, and the function that turns a program of supervisord into a systemd unit.
func addMakinaSupervisor(s table) {
	s.add("mc_supervisor.settings", "**", func(c *call) (any, error) { return c.supervisorSettings(), nil })
	s.add("mc_supervisor.program", "name command **", supervisorProgram)
	s.add("mc_cron.settings", "**", func(c *call) (any, error) {
		return c.registry("makina-states.services.base.cron", py.NewDict("is_container", false, "packages", py.NewList("cron"), "extra_confs", py.NewDict())), nil
	})
}

// supervisorSettings returns the options that programs have unless they set others.
// Source: makina-states, mc_states/modules/mc_supervisor.py, for which keys there are, and their values.
func (c *call) supervisorSettings() *py.Dict {
	return c.registry("makina-states.services.monitoring.supervisor", py.NewDict("location", "/etc/systemd/system",
		"program", py.NewDict("autostart", "true", "autorestart", "true", "stopwaitsecs", "10", "startsecs", "10", "umask", "022")))
}

// supervisorIgnored reports whether an option has no meaning for a unit: logs go to the journal, which keeps their size, and systemd counts starts in its own
// way.
func supervisorIgnored(option string) bool {
	return slices.Contains([]string{"conf_priority", "priority", "process_name", "startretries", "redirect_stderr", "defaultlog", "stdout_logfile", "stderr_logfile",
		"stdout_syslog", "stderr_syslog", "serverurl"}, option) ||
		(strings.HasPrefix(option, "stdout_") || strings.HasPrefix(option, "stderr_")) &&
			(strings.HasSuffix(option, "_maxbytes") || strings.HasSuffix(option, "_backups") || strings.HasSuffix(option, "_events_enabled"))
}

// supervisorOptions returns the options for which units have directives.
func supervisorOptions() []string {
	return []string{"directory", "user", "umask", "environment", "numprocs", "numprocs_start", "autostart", "autorestart", "exitcodes", "startsecs", "stopsignal",
		"stopwaitsecs", "stopasgroup", "killasgroup", "program_type"}
}

// supervised is a program of supervisord that becomes a unit.
type supervised struct {
	name    string
	options map[string]any
	count   int
	bad     error
}

// supervisorProgram returns a program of supervisord as a unit of systemd. An option of supervisord that a unit cannot have is an error.
// Source: supervisord's documentation, "Configuration File", "[program:x] Section Settings"; systemd.service(5), systemd.kill(5).
func supervisorProgram(c *call) (any, error) {
	p := &supervised{name: c.str("name", ""), options: map[string]any{}}
	defaults, _ := c.supervisorSettings().GetStr("program")
	for _, from := range []any{defaults, c.kw} {
		d, ok := from.(*py.Dict)
		if !ok {
			continue
		}
		for _, e := range d.Items() {
			key := py.Str(e.Key)
			if !slices.Contains(supervisorOptions(), key) && !supervisorIgnored(key) {
				return nil, py.Errorf(py.ValueError, "the program %s: a unit of systemd has nothing for supervisord's option %q", p.name, key)
			}
			if e.Value != nil {
				p.options[key] = e.Value
			}
		}
	}
	if kind := p.text("program_type", "program"); kind != "program" {
		return nil, py.Errorf(py.ValueError, "%s is a %q of supervisord: only programs become units of systemd", p.name, kind)
	}
	p.count = p.number("numprocs", 1, 1, 256)
	exec := p.command(c.str("command", ""))
	options, environment := p.directives(), p.environment()
	starts := p.number("startsecs", 1, 0, 600)
	unit, services := "supervisor-"+p.name+".service", []any{"supervisor-" + p.name}
	if p.count > 1 {
		unit, services = "supervisor-"+p.name+"@.service", nil
		first := p.number("numprocs_start", 0, 0, 1<<16)
		for i := range p.count {
			services = append(services, "supervisor-"+p.name+"@"+strconv.Itoa(first+i))
		}
	}
	for _, line := range append([]string{p.name, exec}, texts(options, environment)...) {
		if strings.ContainsAny(line, "\n\r\x00") {
			return nil, py.Errorf(py.ValueError, "the program %s has a line break in its command, options or environment", p.name)
		}
	}
	if p.bad == nil && (p.name == "" || strings.ContainsAny(p.name, " \t:/[]@%")) {
		p.bad = py.Errorf(py.ValueError, "a program has no name, or one with a character that names of units and of supervisord's sections lack")
	}
	if p.bad != nil {
		return nil, p.bad
	}
	return py.NewDict("name", p.name, "file", "/etc/systemd/system/"+unit, "services", py.ListOf(services), "exec", exec, "environment", py.ListOf(environment),
		"options", py.ListOf(options), "restart", p.restart(), "autostart", p.isTrue("autostart"), "startsecs", int64(starts)), nil
}

func (p *supervised) fail(format string, args ...any) {
	if p.bad == nil {
		p.bad = py.Errorf(py.ValueError, "the program "+strings.ReplaceAll(p.name, "%", "%%")+": "+format, args...)
	}
}

func (p *supervised) text(option, otherwise string) string {
	v, ok := p.options[option]
	if !ok || py.Str(v) == "" {
		return otherwise
	}
	return py.Str(v)
}

// isTrue reads a boolean as supervisord does: true, on, yes and 1.
func (p *supervised) isTrue(option string) bool {
	return slices.Contains([]string{"true", "on", "yes", "1"}, strings.ToLower(p.text(option, "")))
}

func (p *supervised) number(option string, otherwise, least, most int) int {
	n, err := strconv.Atoi(p.text(option, strconv.Itoa(otherwise)))
	if err != nil || n < least || n > most {
		p.fail("%s must be a number from %d to %d", option, least, most)
	}
	return n
}

// expand replaces supervisord's expressions with their values. A unit of several processes has their number as the name of its instance.
func (p *supervised) expand(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "%")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		switch expr, rest, _ := strings.Cut(strings.TrimPrefix(after, "("), ")"); {
		case strings.HasPrefix(after, "%"):
			b.WriteString("%%")
			s = after[1:]
			continue
		case strings.HasPrefix(after, "(") && (expr == "program_name" || expr == "group_name") && strings.HasPrefix(rest, "s"):
			b.WriteString(p.name)
			s = rest[1:]
			continue
		case strings.HasPrefix(after, "(") && expr == "process_num" && (strings.HasPrefix(rest, "d") || strings.HasPrefix(rest, "s")):
			if p.count > 1 {
				b.WriteString("%i")
			} else {
				b.WriteString(strconv.Itoa(p.number("numprocs_start", 0, 0, 1<<16)))
			}
			s = rest[1:]
			continue
		}
		p.fail("a %% in its command, directory or environment begins no expression that is known here: program_name, group_name and process_num, and %%%% for itself")
		return ""
	}
}

// command returns ExecStart: supervisord splits a command as a shell would, but does not use a shell.
func (p *supervised) command(line string) string {
	words, err := py.ShlexSplit(line)
	if err != nil || len(words) == 0 {
		p.fail("it has no command, or one with a quotation that does not end")
		return ""
	}
	out := "exec"
	for _, w := range words {
		out += " '" + strings.ReplaceAll(p.expand(w), "'", `'\''`) + "'"
	}
	return `/bin/sh -c "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", "$$").Replace(out) + `"` // percent signs are doubled already
}

// directives returns the directives of the unit, pairs of a name and a value.
func (p *supervised) directives() []any {
	var out []any
	put := func(directive, value string) { out = append(out, py.NewList(directive, value)) }
	if d := p.text("directory", ""); d != "" {
		put("WorkingDirectory", p.expand(d))
	}
	if u := p.text("user", ""); u != "" {
		put("User", p.expand(u))
	}
	put("UMask", "0"+strings.TrimLeft(p.text("umask", "022"), "0"))
	put("KillSignal", "SIG"+strings.TrimPrefix(p.text("stopsignal", "TERM"), "SIG"))
	put("TimeoutStopSec", strconv.Itoa(p.number("stopwaitsecs", 10, 0, 86400)))
	if !p.isTrue("stopasgroup") { // which systemd does by default; both kill what is left after the timeout
		put("KillMode", "mixed")
	}
	if codes := strings.ReplaceAll(p.text("exitcodes", ""), ",", " "); codes != "" {
		put("SuccessExitStatus", codes)
	}
	return out
}

// restart returns systemd's equivalent of autorestart.
func (p *supervised) restart() string {
	switch {
	case p.text("autorestart", "unexpected") == "unexpected":
		return "on-failure"
	case p.isTrue("autorestart"):
		return "always"
	}
	return "no"
}

// environment returns the variables: a mapping, or supervisord's KEY="value",KEY2="value2".
func (p *supervised) environment() []any {
	var out []any
	put := func(key, value string) {
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key + "=" + value)
		out = append(out, `"`+quoted+`"`)
	}
	switch env := p.options["environment"].(type) {
	case nil:
	case *py.Dict:
		for _, e := range env.Items() {
			put(py.Str(e.Key), strings.ReplaceAll(py.Str(e.Value), "%", "%%"))
		}
	default:
		text := strings.TrimSpace(py.Str(env))
		for text != "" {
			key, rest, ok := strings.Cut(text, "=")
			var value, more string
			ended := true
			if rest != "" && strings.ContainsRune(`"'`, rune(rest[0])) {
				value, more, ended = strings.Cut(rest[1:], rest[:1])
				more = strings.TrimSpace(more)
				ended = ended && (more == "" || strings.HasPrefix(more, ","))
				more = strings.TrimPrefix(more, ",")
			} else {
				value, more, _ = strings.Cut(rest, ",")
				value = strings.TrimSpace(value)
			}
			if !ok || !ended || strings.TrimSpace(key) == "" {
				p.fail(`its environment is not written as KEY="value",KEY2="value2"`)
				return nil
			}
			put(strings.TrimSpace(key), p.expand(value))
			text = strings.TrimSpace(more)
		}
	}
	return out
}
