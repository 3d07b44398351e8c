package cron

import (
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// cronTab is a crontab as Salt reads it: the lines before its own mark as they are, then variables, entries, and entries
// with a nickname such as @daily. It writes them in that order. Source: salt/modules/cron.py, list_tab and _render_tab.
type cronTab struct {
	before, env   []string
	jobs, special []cronJob
}

// cronJob is one entry.
type cronJob struct {
	cmd  string
	when [5]string
	// spec is the nickname instead of a time; id and note are from the remark above: nil means none.
	spec, id, note any
	// off is true if it is commented out; a value other than true is like false, except in comparisons.
	off any
}

// cronOff precedes an entry that is commented out.
const cronOff = "#DISABLED#"

// readTab reads the crontab. Other lines below the mark are dropped, as in Salt.
func readTab(c *core.Call) (*cronTab, error) {
	lines, err := crontab(c)
	if err != nil {
		return nil, err
	}
	t := &cronTab{before: lines}
	at := slices.Index(lines, cronHead)
	if at < 0 {
		return t, nil
	}
	t.before = lines[:at]
	var above cronRemark
	for _, l := range lines[at+1:] {
		rest, off := strings.CutPrefix(l, cronOff)
		words, cols := strings.Fields(rest), strings.Split(rest, " ")
		equals, blank := strings.Index(rest, "="), strings.Index(rest, " ")
		switch {
		case l == cronHead:
		case strings.HasPrefix(rest, "@"):
			if len(words) > 1 {
				t.special = append(t.special, above.of(cronJob{spec: words[0], cmd: strings.Join(words[1:], " "), off: off}))
			}
		case strings.HasPrefix(rest, "#"):
			above.add(rest)
		case equals > 0 && (blank < 0 || equals < blank):
			t.env = append(t.env, rest)
		case len(cols) > 5:
			t.jobs = append(t.jobs, above.of(cronJob{when: [5]string(cols[:5]), cmd: strings.Join(cols[5:], " "), off: off}))
		}
	}
	return t, nil
}

// cronRemark is the information about an entry in the lines above it.
type cronRemark struct{ note, id any }

func (r *cronRemark) add(line string) {
	mark := strings.TrimSuffix(cronMark, ":")
	line = strings.TrimLeft(line, "# ")
	if parts := strings.Split(line, mark); len(parts) > 1 {
		line = strings.TrimRight(parts[0], " \t")
		if len(parts[1]) > 1 {
			r.id = parts[1][1:]
		}
	}
	if r.note != nil {
		line = r.note.(string) + "\n" + line
	}
	r.note = line
}

// of adds the remark to an entry, and clears it.
func (r *cronRemark) of(j cronJob) cronJob {
	j.note, j.id = r.note, r.id
	*r = cronRemark{}
	return j
}

// lines returns the lines of the crontab.
func (j cronJob) lines() (out []string) {
	if j.note != nil || j.id != nil {
		line := "#"
		if py.Truth(j.note) {
			note := py.Str(j.note)
			if j.spec != nil {
				note = strings.TrimRight(note, " \t\n")
			}
			line += " " + strings.ReplaceAll(note, "\n", "\n# ")
		}
		if py.Truth(j.id) {
			line += " " + cronMark + py.Str(j.id)
		}
		out = append(out, line)
	}
	when := strings.Join(j.when[:], " ")
	if j.spec != nil {
		when = py.Str(j.spec)
	}
	if j.off == true {
		when = cronOff + when
	}
	return append(out, when+" "+j.cmd)
}

func writeTab(c *core.Call, t *cronTab) error {
	env := slices.Clone(t.env)
	for i, l := range env {
		if _, value, _ := strings.Cut(l, "="); value == "" {
			env[i] += `""`
		}
	}
	lines := slices.Concat(t.before, []string{cronHead}, env)
	for _, j := range slices.Concat(t.jobs, t.special) {
		lines = append(lines, j.lines()...)
	}
	return writeCrontab(c, lines)
}

// isVariable reports whether a line sets the variable.
func isVariable(name string) func(string) bool {
	return func(l string) bool { n, _, _ := strings.Cut(l, "="); return n == name }
}

// value returns the value of a variable in the crontab; there is false if it is not set.
func (t *cronTab) value(name string) (value string, there bool) {
	i := slices.IndexFunc(t.env, isVariable(name))
	if i < 0 {
		return "", false
	}
	_, value, _ = strings.Cut(t.env[i], "=")
	return value, true
}

// cronEnvPresent implements cron.env_present. Source: Salt documentation, cron state.
func cronEnvPresent(c *core.Call) core.Return {
	t, user, fail := loadTab(c, "Cron env %s for user %s failed to commit with error \n%s", c.Name)
	if fail != nil {
		return *fail
	}
	want, said := c.Value("value")
	if !said && c.Test { // what no crontab holds otherwise: without a value the variable is always written again
		want = ""
	}
	was, there := t.value(c.Name)
	switch {
	case there && py.Equal(want, was):
		return core.OKf("Cron env %s already present", c.Name)
	case c.Test && there:
		return core.Would(nil, "Cron env %s is set to be updated", c.Name)
	case c.Test:
		return core.Would(nil, "Cron env %s is set to be added", c.Name)
	}
	value := ""
	if said {
		value = py.Str(want)
	}
	t.env = append(slices.DeleteFunc(t.env, isVariable(c.Name)), c.Name+"="+value)
	if err := writeTab(c, t); err != nil {
		return core.Failf("Cron env %s for user %s failed to commit with error \n%s", c.Name, user, strings.Join(c.Problems(err), ""))
	}
	ret := core.Return{Result: core.True, Changes: py.NewDict(user, c.Name), Comment: "Cron env " + c.Name + " added to " + user + "'s crontab"}
	if there {
		ret.Comment = "Cron env " + c.Name + " updated"
	}
	return ret
}

// cronEnvAbsent implements cron.env_absent: if a variable is set twice, the last line is removed. As in Salt, the
// crontab is written, in Salt's order, even if the variable is not set. Source: Salt documentation, cron state.
func cronEnvAbsent(c *core.Call) core.Return {
	const failed = "Cron env %s for user %s failed to commit with error %s"
	name := strings.TrimSpace(c.Name)
	t, user, fail := loadTab(c, failed, name)
	if fail != nil {
		return *fail
	}
	_, there := t.value(name)
	switch {
	case !there && c.Test:
		return core.OKf("Cron env %s is absent", name)
	case c.Test:
		return core.Would(nil, "Cron env %s is set to be removed", name)
	}
	for i := len(t.env) - 1; there && i >= 0; i-- {
		if isVariable(name)(t.env[i]) {
			t.env = slices.Delete(t.env, i, i+1)
			break
		}
	}
	if err := writeTab(c, t); err != nil {
		return core.Failf(failed, name, user, strings.Join(c.Problems(err), ""))
	}
	if !there {
		return core.OKf("Cron env %s already absent", name)
	}
	return core.Return{Result: core.True, Changes: py.NewDict(user, name), Comment: "Cron env " + name + " removed from " + user + "'s crontab"}
}

// loadTab reads the user's crontab; a failure is formatted with failed, using the name, the user and the error message.
func loadTab(c *core.Call, failed, name string) (t *cronTab, user string, fail *core.Return) {
	user = c.Str("user", "root")
	if !c.Installed("crontab") {
		r := core.Failf("crontab is not installed on this machine")
		return nil, user, &r
	}
	t, err := readTab(c)
	if err != nil {
		r := core.Failf(failed, name, user, strings.Join(c.Problems(err), ""))
		return nil, user, &r
	}
	return t, user, nil
}
