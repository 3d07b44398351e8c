package command

import (
	"os"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// outputsVariable names the file that a step writes its outputs to.
const outputsVariable = "CORPUS_OUTPUTS"

// addOutput adds corpus.output, which writes outputs of the step: value under the state's name, or each of values. Salt gets the same state as
// sls/salt/saltmodules/corpus.py.
func addOutput(t *core.Table) {
	t.Add("corpus.output", "value values", output)
}

func output(c *core.Call) core.Return {
	wrote := py.NewDict()
	value, hasValue := c.Value("value")
	values, hasValues := c.Value("values")
	switch {
	case hasValue == hasValues:
		return core.Failf("one of value and values must be given")
	case hasValue:
		wrote.SetStr(c.Name, value)
	default:
		d, ok := values.(*py.Dict)
		if !ok {
			return core.Failf("values must be a mapping, not %s", py.TypeName(values))
		}
		wrote = d
	}
	var names []string
	for _, k := range wrote.Keys() {
		names = append(names, py.Str(k))
	}
	said := "outputs: " + strings.Join(names, ", ")
	changes := py.NewDict()
	for _, n := range names {
		changes.SetStr(n, "written")
	}
	if c.Test {
		return core.Would(changes, "%s would be written", said)
	}
	file := ""
	for _, kv := range c.Host.Environ {
		if v, ok := strings.CutPrefix(kv, outputsVariable+"="); ok {
			file = v
		}
	}
	if file == "" {
		return core.Failf("there is no %s: this is not a step of a deployment", outputsVariable)
	}
	text, err := py.ToJSON(wrote, py.JSONOptions{Unicode: true})
	if err != nil {
		return core.Failf("the value has no form in JSON: %s", err)
	}
	if err := appendLine(file, text); err != nil {
		return core.Failf("%s", err)
	}
	return core.Return{Result: core.True, Changes: changes, Comment: said + " written"}
}

// appendLine appends a line to an existing file, on a new line.
func appendLine(file, line string) (err error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("\n" + line + "\n")
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
