package config

import (
	"fmt"
	"net/url"
	"path"
	"reflect"
	"strings"

	"corpus-git/internal/redact"
	"corpus-git/internal/saltyaml"
	"corpus-git/project"
)

// Origin is where a key's value came from; it returns the zero Origin if there is no such key.
func (c *Config) Origin(key string) Origin { return c.origins[key] }

// Print returns the configuration as a file that can be loaded again, each value with its origin; secrets are replaced by
// comments.
func (c *Config) Print() string {
	var b strings.Builder
	v := reflect.ValueOf(c).Elem()
	section := ""
	for _, f := range fields() {
		indent, name := "", f.key
		if s, rest, ok := strings.Cut(f.key, "."); ok {
			if s != section {
				fmt.Fprintf(&b, "%s:\n", s)
				section = s
			}
			indent, name = "  ", rest
		}
		val := v.FieldByIndex(f.index)
		var line string
		switch {
		case f.typ == secretType && val.Len() > 0:
			line = fmt.Sprintf("%s# %s: %s", indent, name, val.Interface())
		case f.typ == sinksType: // they may hold secrets, and without these they are not valid sinks
			line = fmt.Sprintf("%s# %s: %s", indent, name, f.text(val))
		case f.typ == listType:
			line = indent + name + ":"
			for i := range val.Len() {
				line += "\n" + indent + "  - " + yamlText(val.Index(i).String())
			}
			if val.Len() == 0 {
				line += " []"
			}
		case f.typ.Kind() == reflect.Bool, f.typ.Kind() == reflect.Int, f.typ.Kind() == reflect.Int64 && f.typ != sizeType && f.typ != durationType:
			line = indent + name + ": " + f.text(val)
		default:
			line = indent + name + ": " + yamlText(f.text(val))
		}
		first, rest, more := strings.Cut(line, "\n")
		fmt.Fprintf(&b, "%-44s # %s\n", first, c.origins[f.key])
		if more {
			b.WriteString(rest + "\n")
		}
	}
	return b.String()
}

// Secrets returns the values that are secret, and of addresses among them the parts that give access by themselves: the password,
// the path and each value of the query.
func (c *Config) Secrets() []redact.Secret {
	var out []redact.Secret
	v := reflect.ValueOf(c).Elem()
	for _, f := range fields() {
		if f.typ == secretType {
			secret, _ := v.FieldByIndex(f.index).Interface().(project.Secret)
			out = appendSecret(out, f.key, string(secret))
		}
	}
	for _, s := range c.Notify.Sinks {
		for key, values := range s.secrets() {
			for _, secret := range values {
				out = appendSecret(out, "notify.sinks."+s.Name+"."+key, string(secret))
			}
		}
	}
	return out
}

// appendSecret adds a secret, and if it is an address the parts of it that give access.
func appendSecret(out []redact.Secret, label, value string) []redact.Secret {
	add := func(value string) {
		if value != "" {
			out = append(out, redact.Secret{Label: label, Value: value, Whose: "server"})
		}
	}
	add(value)
	if bare, ok := strings.CutPrefix(value, "whsec_"); ok {
		add(bare)
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" {
		return out
	}
	if pw, ok := u.User.Password(); ok {
		add(pw)
	}
	if len(u.Path) > len("/webhooks/") {
		add(u.EscapedPath())
		if last := path.Base(u.Path); len(last) >= 16 {
			add(last)
		}
	}
	for _, values := range u.Query() {
		for _, value := range values {
			add(value)
		}
	}
	return out
}

func yamlText(s string) string {
	out, err := saltyaml.Dump(s, saltyaml.DumpOptions{Width: 1 << 30, ASCII: strings.Contains(s, "\n")})
	if err != nil {
		return "''"
	}
	if out = strings.TrimSuffix(out, "\n"); out == "" {
		out = "''"
	}
	return out
}

// Change is one key whose value a reload changed. The values are text; secrets are not shown.
type Change struct {
	Key      string `json:"key"`
	Old, New string
	// Restart: the new value takes effect only when the server is started again.
	Restart bool `json:"restart"`
}

// Diff lists the differences between c and another configuration, in the order of the keys.
func (c *Config) Diff(other *Config) []Change {
	var out []Change
	a, b := reflect.ValueOf(c).Elem(), reflect.ValueOf(other).Elem()
	for _, f := range fields() {
		x, y := a.FieldByIndex(f.index), b.FieldByIndex(f.index)
		if (f.typ == listType || f.typ == sinksType) && x.Len() == 0 && y.Len() == 0 || reflect.DeepEqual(x.Interface(), y.Interface()) {
			continue
		}
		out = append(out, Change{Key: f.key, Old: f.text(x), New: f.text(y), Restart: f.restart})
	}
	return out
}

// Markdown returns docs/configuration.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Configuration

<!-- Made from project/config by its tests (-update); edit the struct, not this page. -->

A server reads a YAML file (` + "`serve --config FILE`" + `, ` + "`CORPUS_GIT_CONFIG`" + `, or /etc/corpus-git/corpus-git.yaml where that exists), then the environment, then its flags; later ones win.
` + "`corpus-git serve --print-config`" + ` shows the result and where each value came from. A key that does not exist is an error.
SIGHUP reads everything again; the log names changed keys that need a restart (marked *restart*).

Sizes are written as ` + "`512MiB`" + `, ` + "`2GiB`" + ` or a number of bytes (` + "`2G`" + ` is ` + "`2GiB`" + `, ` + "`2GB`" + ` is 2,000,000,000); durations as ` + "`90s`" + `, ` + "`5m`" + `, ` + "`5h`" + `, ` + "`7d`" + `;
lists as YAML lists, or with commas in the environment and in flags.
`)
	section := "-"
	for _, f := range fields() {
		s, _, ok := strings.Cut(f.key, ".")
		if !ok {
			s = ""
		}
		if s != section {
			if s != "" {
				fmt.Fprintf(&b, "\n## %s\n", s)
			}
			b.WriteString("\n| key | value | default | meaning |\n| --- | --- | --- | --- |\n")
			section = s
		}
		def := ""
		if f.def != "" {
			def = "`" + f.def + "`"
		}
		help := f.help
		if f.restart {
			help += " *restart*"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s<br>`%s` `--%s` |\n", f.key, f.kind(), def, help, f.env(), f.flag())
	}
	return b.String()
}
