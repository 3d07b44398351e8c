package configfile

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"corpus-git/internal/py"
)

// Format is the format of a configuration file.
type Format string

// The formats.
const (
	Ini  Format = "ini"
	JSON Format = "json"
	YAML Format = "yaml"
	Env  Format = "env"
)

// Formats returns the names of all formats.
func Formats() []string { return []string{string(Ini), string(JSON), string(YAML), string(Env)} }

// KeyError is a value that a format cannot express.
type KeyError struct {
	// Keys is the path of keys to it.
	Keys []string
	Text string
}

// Error names the keys.
func (e *KeyError) Error() string {
	if len(e.Keys) == 0 {
		return e.Text
	}
	return strings.Join(e.Keys, ":") + ": " + e.Text
}

func wrong(keys []string, format string, args ...any) error {
	return &KeyError{Keys: slices.Clone(keys), Text: fmt.Sprintf(format, args...)}
}

// Write returns a file with these values, in their order. A value that the format cannot express is a *KeyError.
func Write(f Format, values *py.Dict) ([]byte, error) { return Edit(f, nil, values, nil) }

// Edit returns old with the values merged over its own, and without the keys at the paths in remove: mappings merge, everything else replaces. With old
// nil it is a new file. Errors are a *KeyError, or say why old cannot be read as this format.
func Edit(f Format, old []byte, values *py.Dict, remove [][]string) ([]byte, error) {
	values = without(values, remove)
	if err := allUTF8(nil, values); err != nil {
		return nil, err
	}
	switch f {
	case Ini:
		return editIni(old, values, remove)
	case JSON:
		return editJSON(old, values, remove)
	case YAML:
		return editYAML(old, values, remove)
	case Env:
		return editEnv(old, values, remove)
	}
	return nil, fmt.Errorf("no format %q: it is one of %s", f, strings.Join(Formats(), ", "))
}

// without returns a copy of the values without the keys at some paths.
func without(values *py.Dict, remove [][]string) *py.Dict {
	out := py.NewDict()
	if values != nil {
		out = py.DeepCopy(values).(*py.Dict)
	}
	for _, path := range remove {
		d, ok := out, len(path) > 0
		for ok && len(path) > 1 {
			v, _ := d.GetStr(path[0])
			d, ok = v.(*py.Dict)
			path = path[1:]
		}
		if ok {
			d.Delete(path[0])
		}
	}
	return out
}

// allUTF8 refuses texts that are not valid UTF-8, which no format can express.
func allUTF8(keys []string, value any) error {
	switch v := value.(type) {
	case string:
		if !utf8.ValidString(v) {
			return wrong(keys, "is not valid UTF-8")
		}
	case *py.List:
		for _, x := range v.Items() {
			if err := allUTF8(keys, x); err != nil {
				return err
			}
		}
	case *py.Dict:
		for _, e := range v.Items() {
			at := append(keys[:len(keys):len(keys)], strings.ToValidUTF8(py.Str(e.Key), "?"))
			if err := allUTF8(at, e.Key); err != nil {
				return err
			}
			if err := allUTF8(at, e.Value); err != nil {
				return err
			}
		}
	}
	return nil
}

// textKey returns the key of an entry, which must be a text.
func textKey(keys []string, key any) (string, error) {
	text, ok := key.(string)
	if !ok {
		return "", wrong(append(keys, py.Str(key)), "the key must be a text, not %s: put it in quotes", py.TypeName(key))
	}
	return text, nil
}

// scalar returns a text, number or boolean as text, for formats without types.
func scalar(keys []string, value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		if v {
			return "true", nil
		}
		return "false", nil
	case nil:
		return "", wrong(keys, "this format has no null: use '' for an empty value, or remove the key")
	case float64:
		return py.Str(v), nil
	}
	if py.IsInt(value) {
		return py.Str(value), nil
	}
	return "", wrong(keys, "must be a text, a number or a boolean in this format, not %s", py.TypeName(value))
}

// endOfLine returns how lines of a file end.
func endOfLine(old []byte) string {
	if i := slices.Index(old, '\n'); i > 0 && old[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// splitLines returns the lines of a file, without their ends.
func splitLines(old []byte) []string {
	if len(old) == 0 {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(string(old), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	return lines
}

// joinLines is the reverse of splitLines; unchanged returns old itself.
func joinLines(old []byte, lines []string, changed bool) []byte {
	if !changed {
		return old
	}
	end := endOfLine(old)
	if len(lines) == 0 {
		return []byte{}
	}
	return []byte(strings.Join(lines, end) + end)
}
