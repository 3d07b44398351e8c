package project

import (
	"regexp"
	"slices"
	"strings"

	"corpus-git/internal/py"
)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reservedEnv is the prefix of the names of variables that corpus-git itself sets.
const reservedEnv = "CORPUS_"

// validateEnv checks the key env: variables for everything that runs for the project.
func (c *Cfg) validateEnv() error {
	l := c.root.get([]string{"env"})
	if l.sub == nil {
		if l.value != nil {
			return cfgError(l.layer, "env", "must be a mapping of variables to values, not %s", py.TypeName(l.value))
		}
		return nil
	}
	var err error
	l.sub.each(func(v *leaf) {
		name, _ := v.key.(string)
		_, list := v.value.(*py.List)
		text, _ := v.value.(string)
		switch {
		case err != nil:
		case !envName.MatchString(name) || strings.HasPrefix(name, reservedEnv):
			err = cfgError(v.layer, "env", "%q is not a valid variable name", py.Str(v.key)).WithHint("letters, digits and _; %s* are corpus-git's own", reservedEnv)
		case v.sub != nil || list:
			err = cfgError(v.layer, "env", "the value of %s must be a text, a number or a boolean", name)
		case strings.ContainsRune(text, 0):
			err = cfgError(v.layer, "env", "the value of %s contains a NUL", name)
		}
	})
	return err
}

// Environ returns the key env as KEY=VALUE, by name. A null becomes an empty value, as in Salt.
func (c *Cfg) Environ() []string {
	v, _ := c.value.GetStr("env")
	d, ok := v.(*py.Dict)
	if !ok {
		return nil
	}
	var out []string
	for _, e := range d.Items() {
		value := ""
		if e.Value != nil {
			value = py.Str(e.Value)
		}
		out = append(out, py.Str(e.Key)+"="+value)
	}
	slices.Sort(out)
	return out
}
