package configfile

import (
	"regexp"
	"slices"
	"strings"

	"corpus-git/internal/py"
)

var (
	envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// envLine is a line that sets a variable.
	envLine = regexp.MustCompile(`^(\s*(?:export\s+)?)([A-Za-z_][A-Za-z0-9_]*)=(.*)$`)
	// envPlain is a value that needs no quotes, in a shell or elsewhere.
	envPlain = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,-]*$`)
)

// envItem is a variable, or, if name is "", a comment or anything else that stays.
type envItem struct {
	name, head string
	lines      []string
	// open: its quote is never closed.
	open bool
}

// readEnv reads the lines; a quoted value may have several.
func readEnv(old []byte) (out []envItem) {
	lines := splitLines(old)
	for i := 0; i < len(lines); i++ {
		m := envLine.FindStringSubmatch(lines[i])
		if m == nil {
			out = append(out, envItem{lines: lines[i : i+1]})
			continue
		}
		end, value := i, m[3]
		for _, closed := envValue(value); !closed && end+1 < len(lines); _, closed = envValue(value) {
			end++
			value += "\n" + lines[end]
		}
		_, closed := envValue(value)
		if !closed {
			end = i
		}
		out = append(out, envItem{name: m[2], head: m[1], lines: lines[i : end+1], open: !closed})
		i = end
	}
	return out
}

// envValue removes the quotes of a value, as systemd and shells do; closed is false if a quote is open at its end.
func envValue(raw string) (value string, closed bool) {
	var b strings.Builder
	quote := byte(0)
	raw = strings.TrimSpace(raw)
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote && quote != 0:
			quote = 0
		case c == '\\' && quote != '\'' && i+1 < len(raw) && (quote == 0 || strings.IndexByte("\"\\`$", raw[i+1]) >= 0):
			i++
			b.WriteByte(raw[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), quote == 0
}

// envQuoted writes a value so that shells, systemd and dotenv libraries read it as it is.
func envQuoted(v string) string {
	switch {
	case envPlain.MatchString(v):
		return v
	case !strings.Contains(v, "'"):
		return "'" + v + "'"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`).Replace(v) + `"`
}

// editEnv is Edit.
func editEnv(old []byte, values *py.Dict, remove [][]string) ([]byte, error) {
	items := readEnv(old)
	changed := old == nil
	for _, path := range remove {
		if len(path) > 1 {
			return nil, wrong(path, "an env file has no levels")
		}
		n := len(items)
		items = slices.DeleteFunc(items, func(i envItem) bool { return i.name == path[0] && i.name != "" })
		changed = changed || n != len(items)
	}
	for _, e := range values.Items() {
		name, err := textKey(nil, e.Key)
		if err != nil {
			return nil, err
		}
		keys := []string{name}
		if !envName.MatchString(name) {
			return nil, wrong(keys, "is not the name of a variable: A-Z a-z 0-9 _, not beginning with a digit")
		}
		value, err := scalar(keys, e.Value)
		if err != nil {
			return nil, err
		}
		if strings.ContainsAny(value, "\x00\r") {
			return nil, wrong(keys, "a value of an env file contains no NUL and no carriage return")
		}
		item := envItem{name: name, lines: strings.Split(name+"="+envQuoted(value), "\n")}
		at := -1
		for i := range items {
			if items[i].name == name {
				at = i // the last one counts
			}
		}
		if at < 0 {
			items, changed = append(items, item), true
			continue
		}
		_, raw, _ := strings.Cut(strings.Join(items[at].lines, "\n"), "=")
		if had, closed := envValue(raw); !closed || had != value {
			item.head = items[at].head
			item.lines[0] = item.head + item.lines[0]
			items[at], changed = item, true
		}
	}
	var lines []string
	for _, i := range items {
		if i.open && changed {
			return nil, wrong([]string{i.name}, "its quote is not closed in the file: a shell takes the lines after it for its value")
		}
		lines = append(lines, i.lines...)
	}
	return joinLines(old, lines, changed), nil
}
