package configfile

import (
	"slices"
	"strings"

	"corpus-git/internal/py"
)

// iniFile is an ini file as lines. What a key's value continues on is part of its entry.
type iniFile struct {
	sections []*iniSection // the first one is what stands above all sections; it has no header
	changed  bool
}

type iniSection struct {
	name   string
	header string
	items  []iniItem
}

// iniItem is a key with its value, or, if key is "", a comment or an empty line.
type iniItem struct {
	key   string
	lines []string
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// readIni reads the lines as Python's configparser does: a deeper indented line continues the value above it.
func readIni(old []byte) *iniFile {
	now := &iniSection{}
	f := &iniFile{sections: []*iniSection{now}}
	for _, line := range splitLines(old) {
		text := strings.TrimSpace(line)
		n := len(now.items)
		switch {
		case text == "" || text[0] == '#' || text[0] == ';':
			now.items = append(now.items, iniItem{lines: []string{line}})
		case n > 0 && now.items[n-1].key != "" && indentOf(line) > indentOf(now.items[n-1].lines[0]):
			now.items[n-1].lines = append(now.items[n-1].lines, line)
		case text[0] == '[' && strings.Contains(text, "]"):
			now = &iniSection{name: text[1:strings.Index(text, "]")], header: line}
			f.sections = append(f.sections, now)
		default:
			key := text
			if i := strings.IndexAny(text, "=:"); i >= 0 {
				key = strings.TrimSpace(text[:i])
			}
			now.items = append(now.items, iniItem{key: key, lines: []string{line}})
		}
	}
	return f
}

func (f *iniFile) lines() (out []string) {
	for i, s := range f.sections {
		if i > 0 {
			out = append(out, s.header)
		}
		for _, item := range s.items {
			out = append(out, item.lines...)
		}
	}
	return out
}

func (f *iniFile) find(section, key string) (*iniSection, int) {
	for _, s := range slices.Backward(f.sections) {
		if s.name == section {
			for i, item := range slices.Backward(s.items) {
				if item.key == key && key != "" {
					return s, i
				}
			}
		}
	}
	return nil, -1
}

// set sets a value: in its line if there is one, otherwise below the last line of its section.
func (f *iniFile) set(section, key, value string) {
	if s, i := f.find(section, key); s != nil {
		line := s.items[i].lines[0]
		at := strings.IndexAny(line, "=:")
		if at >= 0 && len(s.items[i].lines) == 1 && strings.TrimSpace(line[at+1:]) == value {
			return
		}
		head := strings.TrimRight(line, " \t") + " = "
		if at >= 0 {
			rest := line[at+1:]
			head = line[:at+1] + rest[:indentOf(rest)]
			if strings.TrimSpace(rest) == "" && strings.HasSuffix(line[:at], " ") {
				head = line[:at+1] + " "
			}
		}
		s.items[i].lines = []string{strings.TrimRight(head+value, " ")}
		f.changed = true
		return
	}
	f.changed = true
	item := iniItem{key: key, lines: []string{strings.TrimRight(key+" = "+value, " ")}}
	s := f.section(section)
	end := len(s.items)
	for end > 0 && s.items[end-1].key == "" && strings.TrimSpace(s.items[end-1].lines[0]) == "" {
		end--
	}
	if section == "" && end == 0 && len(f.sections) > 1 && len(s.items) == 0 {
		s.items = []iniItem{{lines: []string{""}}}
	}
	s.items = slices.Insert(s.items, end, item)
}

// section returns the last section of a name; a new one comes at the end.
func (f *iniFile) section(name string) *iniSection {
	for _, s := range slices.Backward(f.sections) {
		if s.name == name && (s.header != "" || name == "") {
			return s
		}
	}
	last := f.sections[len(f.sections)-1]
	if n := len(last.items); len(f.lines()) > 0 && (n == 0 || strings.TrimSpace(last.items[n-1].lines[0]) != "") {
		last.items = append(last.items, iniItem{lines: []string{""}})
	}
	s := &iniSection{name: name, header: "[" + name + "]"}
	f.sections = append(f.sections, s)
	f.changed = true
	return s
}

// remove removes a key of the part above the sections or a section as a whole, or a key of a section.
func (f *iniFile) remove(path []string) {
	if len(path) == 1 {
		n := len(f.sections)
		f.sections = slices.DeleteFunc(f.sections, func(s *iniSection) bool { return s.header != "" && s.name == path[0] })
		f.changed = f.changed || n != len(f.sections)
		path = []string{"", path[0]}
	}
	for s, i := f.find(path[0], path[1]); s != nil; s, i = f.find(path[0], path[1]) {
		s.items = slices.Delete(s.items, i, i+1)
		f.changed = true
	}
}

// editIni is Edit. Keys with values that are not mappings stand above all sections.
func editIni(old []byte, values *py.Dict, remove [][]string) ([]byte, error) {
	f := readIni(old)
	for _, path := range remove {
		if len(path) > 2 {
			return nil, wrong(path, "an ini file has sections with keys, and no deeper levels")
		}
		f.remove(path)
	}
	var sections []py.Item
	for _, e := range values.Items() {
		name, err := textKey(nil, e.Key)
		if err != nil {
			return nil, err
		}
		if _, ok := e.Value.(*py.Dict); ok {
			sections = append(sections, e)
			continue
		}
		value, err := iniPair([]string{name}, e.Value)
		if err != nil {
			return nil, err
		}
		f.set("", name, value)
	}
	for _, e := range sections {
		section := e.Key.(string)
		if section == "" || section != strings.TrimSpace(section) || strings.ContainsAny(section, "]\n\r\x00") {
			return nil, wrong([]string{section}, "cannot be the name of a section")
		}
		f.section(section)
		for _, e := range e.Value.(*py.Dict).Items() {
			key, err := textKey([]string{section}, e.Key)
			if err != nil {
				return nil, err
			}
			value, err := iniPair([]string{section, key}, e.Value)
			if err != nil {
				return nil, err
			}
			f.set(section, key, value)
		}
	}
	if old == nil {
		return joinLines(nil, f.lines(), true), nil
	}
	return joinLines(old, f.lines(), f.changed), nil
}

// iniPair returns a value as it stands in the file, and refuses what would be read as something else.
func iniPair(keys []string, value any) (string, error) {
	key := keys[len(keys)-1]
	if key == "" || key != strings.TrimSpace(key) || strings.ContainsAny(key, "=:\n\r\x00") || strings.ContainsAny(key[:1], "#;[") {
		return "", wrong(keys, "cannot be a key of an ini file")
	}
	if d, ok := value.(*py.Dict); ok && d != nil {
		return "", wrong(keys, "an ini file has sections with keys, and no deeper levels")
	}
	text, err := scalar(keys, value)
	quoted := len(text) >= 2 && text[0] == '"' && text[len(text)-1] == '"'
	switch {
	case err != nil:
		return "", err
	case strings.ContainsAny(text, "\n\r\x00"):
		return "", wrong(keys, "a value of an ini file is one line")
	case text != strings.TrimSpace(text):
		return "", wrong(keys, "begins or ends with a space, which readers of ini files remove: if the program reads quotes, put them into the value: '\" a\"'")
	case !quoted && (strings.HasPrefix(text, ";") || strings.HasPrefix(text, "#") || strings.Contains(text, " ;") || strings.Contains(text, " #") || strings.Contains(text, "\t;") || strings.Contains(text, "\t#")):
		return "", wrong(keys, "some readers of ini files take the rest from ; or # for a comment: if the program reads quotes, put them into the value: '\"a ; b\"'")
	}
	return text, nil
}
