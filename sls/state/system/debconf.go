package system

import (
	"regexp"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
)

// addDebconf adds debconf.set, through debconf-set-selections, which has its answers on standard input: nobody else sees a password.
// Source: Salt documentation, debconf state; debconf-set-selections(1).
func addDebconf(t *core.Table) { t.Add("debconf.set", "data! **", debconfSet) }

// selection is a line of debconf-get-selections: package, question, type and answer.
var selection = regexp.MustCompile(`(?m)^([^#]\S+)[\t ]+(\S+)[\t ]+(\S+)[\t ]+([^\n]*)$`)

func debconfSet(c *core.Call) core.Return {
	for _, tool := range []string{"debconf-get-selections", "debconf-set-selections"} {
		if !c.Installed(tool) {
			return core.Failf("%s is not installed on this machine: it is in the packages debconf and debconf-utils", tool)
		}
	}
	out, err := c.Query("debconf-get-selections")
	if err != nil {
		return core.Failf("Unable to read the answers of debconf: %s", strings.Join(c.Problems(err), ""))
	}
	have := map[[3]string]bool{}
	for _, m := range selection.FindAllStringSubmatch(out, -1) {
		if m[1] == c.Name {
			have[[3]string{m[2], m[3], m[4]}] = true
		}
	}
	ret, unchanged, input := core.Return{Result: core.True}, "", ""
	for _, e := range c.Dict("data").Items() {
		question := py.Str(e.Key)
		d, _ := e.Value.(*py.Dict)
		if l, ok := e.Value.(*py.List); ok && d == nil { // a list of mappings, as YAML with dashes has
			d = py.NewDict()
			for _, it := range l.Items() {
				if one, ok := it.(*py.Dict); ok {
					d.Update(one)
				}
			}
		}
		kind, typed := d.GetStr("type")
		answer, answered := d.GetStr("value")
		if !typed || !answered {
			return core.Failf("The question %s has no type, or no value", question)
		}
		text := py.Str(answer)
		if py.Str(kind) == "boolean" {
			text = map[bool]string{true: "true", false: "false"}[py.Truth(answer)]
		}
		if strings.ContainsAny(c.Name+question+py.Str(kind), " \t\n") || strings.ContainsAny(text, "\n\r\x00") {
			return core.Failf("The question %s, its type or its value has a blank or a line break that debconf cannot read", question)
		}
		if have[[3]string{question, py.Str(kind), text}] {
			unchanged += question + " "
			continue
		}
		shown := text
		if py.Str(kind) == "password" {
			shown = "(password hidden)"
		}
		if c.Test {
			shown = "New value: " + shown
		}
		ret.Set(question, shown)
		input += c.Name + " " + question + " " + py.Str(kind) + " " + text + "\n"
	}
	switch {
	case !ret.Changed():
		return core.OKf("All specified answers are already set")
	case unchanged != "":
		ret.Comment = "Unchanged answers: " + unchanged
	}
	if c.Test {
		ret.Result = core.None
		return ret
	}
	if _, err := c.ToolShell(host.Shell{Argv: []string{"debconf-set-selections"}, Stdin: input}); err != nil {
		return core.Failf("Some settings failed to be applied: %s", strings.Join(c.Problems(err), ""))
	}
	return ret
}
