package project

import (
	"encoding/json"
	"math/big"
	"regexp"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/redact"
	"corpus-git/internal/saltyaml"
)

// Setting is one key=value from the command line: it overrides the pillar.
type Setting struct {
	// Key is the path of the key, "data.port". If cfg does not have the first key, the path is below data.
	Key string `json:"key"`
	// Value is what was typed. It is empty in a record if Secret is true.
	Value string `json:"value,omitempty"`
	// Secret reports that the pillar holds a secret under the key: no record holds the value.
	Secret bool `json:"secret,omitempty"`
}

const (
	// maxSettings and maxSettingBytes limit the settings of one deployment, which are recorded with it.
	maxSettings     = 200
	maxSettingBytes = 64 << 10
)

// settingForm is key=value as on Salt's command line: the key begins with a letter or an underscore, and the value does not begin
// with a second =. Source: salt.utils.args, KWARG_REGEX. A colon separates keys as a dot does.
var settingForm = regexp.MustCompile(`(?s)^([\p{L}_][\p{L}\p{N}_.:-]*)=($|[^=].*$)`)

// ParseSetting reads key=value. Errors are fault.Usage and name the key only.
func ParseSetting(text string) (Setting, error) {
	m := settingForm.FindStringSubmatch(text)
	hint := "as in  port=8080  or  data.db.host=localhost"
	if m == nil {
		key, _, found := strings.Cut(text, "=")
		if !found {
			return Setting{}, fault.New(fault.Usage, "", "%.60q is not of the form key=value", text).WithHint("%s", hint)
		}
		return Setting{}, fault.New(fault.Usage, "", "%.60q is not a key, or its value begins with =", key).WithHint("%s", hint)
	}
	s := Setting{Key: strings.ReplaceAll(m[1], ":", "."), Value: m[2]}
	for _, part := range strings.Split(s.Key, ".") {
		if part == "" {
			return Setting{}, fault.New(fault.Usage, "", "%.60q has an empty part", s.Key).WithHint("%s", hint)
		}
	}
	return s, nil
}

// ParseSettings reads several settings into a deployment's choices: only, only_steps and skip_<procedure> are selections,
// all else is set in cfg.
func ParseSettings(texts []string, sel *Selection) ([]Setting, error) {
	var out []Setting
	size := 0
	for _, text := range texts {
		s, err := ParseSetting(text)
		if err != nil {
			return nil, err
		}
		if size += len(text); len(texts) > maxSettings || size > maxSettingBytes {
			return nil, fault.New(fault.Usage, "", "more than %d settings or %d bytes of them", maxSettings, maxSettingBytes).WithHint("set them in the pillar")
		}
		if ok, err := sel.take(s); err != nil {
			return nil, err
		} else if !ok {
			out = append(out, s)
		}
	}
	return out, nil
}

// take adds a setting that selects procedures or steps to the selection, and reports whether it was one.
func (sel *Selection) take(s Setting) (bool, error) {
	if p, ok := strings.CutPrefix(s.Key, "skip_"); ok {
		if v, _ := s.Typed().(bool); !v {
			return false, nil // skip_archive=false overrides the pillar's skip_archive: true
		}
		sel.Skip = append(sel.Skip, p)
		return true, nil
	}
	to := map[string]*[]string{"only": &sel.Only, "only_steps": &sel.OnlySteps}[s.Key]
	if to == nil {
		return false, nil
	}
	n := len(*to)
	for name := range strings.SplitSeq(strings.Trim(s.Value, "[]"), ",") {
		if name = strings.Trim(strings.TrimSpace(name), `'"`); name != "" {
			*to = append(*to, name)
		}
	}
	if len(*to) == n {
		return false, fault.New(fault.Usage, "", "%s= names nothing", s.Key)
	}
	return true, nil
}

// Typed returns the value as Salt's command line understands it: a YAML value, but a string where YAML would read a mapping
// without braces, a list without brackets or a comment. Source: salt.utils.args, yamlify_arg.
func (s Setting) Typed() any {
	text := s.Value
	switch bare := strings.TrimSpace(text); {
	case bare == "", bare == "---", bare == "...", bare == "|", bare == "!", strings.HasPrefix(bare, "#"):
		return text
	case strings.ContainsAny(text, "\t\r\n"):
		return text
	case strings.Contains(bare, "_") && strings.Trim(bare, "0123456789_") == "":
		return text
	case text == "None":
		return nil
	}
	doc, err := saltyaml.Parse("command line", []byte(text), saltyaml.Options{Private: true})
	if err != nil {
		return text
	}
	commented := strings.Contains(text, "#")
	switch doc.Value.(type) {
	case string, nil:
		if commented {
			return text
		}
	case *py.Dict:
		if !strings.HasPrefix(text, "{") && !commented {
			return text
		}
	case *py.List:
		if !strings.HasPrefix(text, "[") && !commented {
			return text
		}
	case bool, int64, *big.Int, float64:
	default:
		return text
	}
	return doc.Value
}

// Secrets returns the texts of a secret value: as it was typed, and what is in it.
func (s Setting) Secrets() []redact.Secret {
	return append(redact.Secrets(py.NewDict(s.Key, s.Typed())), redact.Secret{Label: s.Key, Value: s.Value})
}

// MarshalJSON omits a secret value.
func (s Setting) MarshalJSON() ([]byte, error) {
	if s.Secret {
		s.Value = ""
	}
	type plain Setting
	return json.Marshal(plain(s))
}

// forgotten reports whether the value is lost: it is a secret, and was read from a record. The pillar's own value then applies.
func (s Setting) forgotten() bool { return s.Secret && s.Value == "" }

// ShowSettings returns settings as they were typed, without the values of secret ones.
func ShowSettings(list []Setting) string {
	var parts []string
	for _, s := range list {
		v := s.Value
		if s.Secret {
			v = "[pillar:" + s.Key + "]"
		}
		parts = append(parts, s.Key+"="+v)
	}
	return strings.Join(parts, " ")
}
