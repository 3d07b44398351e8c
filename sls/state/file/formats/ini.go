package formats

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// Ini is Python's ConfigParser with the options set in serializer_opts.
// Source: Python documentation, configparser; salt/serializers/configparser.py.
type Ini struct {
	delimiters []string
	bare       bool // options without a value are allowed
	raw        bool // percent signs have no meaning
}

// IniOptions returns the options of ConfigParser that are built in.
func IniOptions() []string { return []string{"allow_no_value", "delimiters", "interpolation"} }

// NewIni reads the options of a serializer; the error names one that is unknown or can't be used.
func NewIni(opts *py.Dict) (Ini, error) {
	f := Ini{delimiters: []string{"=", ":"}, bare: Bool(opts, "allow_no_value", false)}
	if v, ok := opts.GetStr("interpolation"); ok {
		if v != nil {
			return f, core.Errorf("interpolation= expected an instance of Interpolation, not %s", py.Repr(v))
		}
		f.raw = true
	}
	if v, ok := opts.GetStr("delimiters"); ok {
		f.delimiters = nil
		if s, isText := v.(string); isText {
			for _, r := range s {
				f.delimiters = append(f.delimiters, string(r))
			}
		} else if l, isList := v.(*py.List); isList {
			for _, it := range l.Items() {
				f.delimiters = append(f.delimiters, py.Str(it))
			}
		}
		if len(f.delimiters) == 0 {
			return f, core.Errorf("tuple index out of range")
		}
	}
	return f, nil
}

const iniDefault = "DEFAULT"

// untold replaces in an error a value that Python shows there, since it may be a secret.
const untold = "'…'"

// iniRef matches a value's reference to another option.
var iniRef = regexp.MustCompile(`%\(([^)]+)\)s`)

// Write returns the text of a mapping of sections.
func (f Ini) Write(data any) (string, error) {
	d, ok := data.(*py.Dict)
	if !ok {
		return "", core.Errorf("configparser can only serialize dictionaries, not <class '%s'>", py.TypeName(data))
	}
	sections, defaults := py.NewDict(), py.NewDict()
	for _, e := range d.Items() {
		name := py.Str(e.Key)
		into := defaults
		if name != iniDefault {
			if _, twice := sections.GetStr(name); twice {
				return "", core.Errorf("Section %s already exists", py.Repr(name))
			}
			into = py.NewDict()
			sections.SetStr(name, into)
		}
		options, ok := e.Value.(*py.Dict)
		if !ok {
			return "", core.Errorf("'%s' object has no attribute 'items'", py.TypeName(e.Value))
		}
		for _, o := range options.Items() {
			key := py.Lower(py.Str(o.Key))
			if o.Value == nil {
				if !f.bare {
					return "", core.Errorf("option values must be strings")
				}
				into.SetStr(key, nil)
				continue
			}
			if holdsMapping(o.Value) { // how Python shows one depends on its release
				return "", core.Errorf("The option %s of the section %s is a mapping, which a file of this format can't hold", py.Repr(key), py.Repr(name))
			}
			value := py.Str(o.Value)
			if left := iniRef.ReplaceAllString(strings.ReplaceAll(value, "%%", ""), ""); !f.raw && strings.Contains(left, "%") {
				return "", core.Errorf("invalid interpolation syntax in %s at position %d", untold, utf8.RuneCountInString(left[:strings.Index(left, "%")]))
			}
			into.SetStr(key, value)
		}
	}
	var b strings.Builder
	section := func(name string, options *py.Dict) {
		b.WriteString("[" + name + "]\n")
		for _, o := range options.Items() {
			b.WriteString(py.Str(o.Key))
			if o.Value != nil {
				b.WriteString(" " + f.delimiters[0] + " " + strings.ReplaceAll(py.Str(o.Value), "\n", "\n\t"))
			}
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	if defaults.Len() > 0 {
		section(iniDefault, defaults)
	}
	for _, e := range sections.Items() {
		section(py.Str(e.Key), e.Value.(*py.Dict))
	}
	return b.String(), nil
}

func holdsMapping(v any) bool {
	switch x := v.(type) {
	case *py.Dict:
		return true
	case *py.List:
		return slices.ContainsFunc(x.Items(), holdsMapping)
	case py.Tuple:
		return slices.ContainsFunc(x, holdsMapping)
	}
	return false
}

// iniReader is a text that is read.
type iniReader struct {
	f        Ini
	file     string
	sections *py.Dict // of option to its lines (*py.List), or nil for one without a value
	defaults *py.Dict
	seen     map[[2]string]bool
	broken   strings.Builder
}

// iniHeader matches the line of a section.
var iniHeader = regexp.MustCompile(`^\[(.+)\]`)

// Read returns the sections with their options, those of DEFAULT in each. The error's text is Python's.
func (f Ini) Read(file, text string) (*py.Dict, error) {
	r := iniReader{f: f, file: file, sections: py.NewDict(), defaults: py.NewDict(), seen: map[[2]string]bool{}}
	if err := r.lines(text); err != nil {
		return nil, err
	}
	out := py.NewDict()
	for _, e := range r.sections.Items() {
		all := py.NewDict()
		for _, from := range []*py.Dict{r.defaults, e.Value.(*py.Dict)} {
			for _, o := range from.Items() {
				if lines, ok := o.Value.(*py.List); ok {
					var parts []string
					for _, l := range lines.Items() {
						parts = append(parts, l.(string))
					}
					all.SetStr(o.Key.(string), py.RStrip(strings.Join(parts, "\n")))
				} else {
					all.SetStr(o.Key.(string), nil)
				}
			}
		}
		section := py.NewDict()
		for _, o := range all.Items() {
			value := o.Value
			if s, ok := value.(string); ok && !f.raw {
				var b strings.Builder
				if err := interpolate(&b, o.Key.(string), e.Key.(string), s, all, 1); err != nil {
					return nil, err
				}
				value = b.String()
			} else if !f.raw {
				value = ""
			}
			section.SetStr(o.Key.(string), value)
		}
		out.SetStr(e.Key.(string), section)
	}
	return out, nil
}

// lines reads line by line. Source: CPython 3.11, Lib/configparser.py, _read.
func (r *iniReader) lines(text string) error {
	var section *py.Dict
	sectionName, option, indent := "", "", 0
	for i, line := range core.SplitKeep(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")) {
		at := func(format string, v ...any) error {
			return core.Errorf("While reading from %s [line %2d]: %s", py.Repr(r.file), i+1, fmt.Sprintf(format, v...))
		}
		value := py.Strip(line)
		comment := strings.HasPrefix(value, "#") || strings.HasPrefix(value, ";")
		if comment || value == "" {
			if lines, ok := lookup(section, option).(*py.List); ok && !comment {
				lines.Append("")
			}
			continue
		}
		now := utf8.RuneCountInString(line) - utf8.RuneCountInString(strings.TrimLeftFunc(line, py.IsSpace))
		if lines, ok := lookup(section, option).(*py.List); ok && now > indent {
			lines.Append(value)
			continue
		}
		indent = now
		if m := iniHeader.FindStringSubmatch(value); m != nil {
			sectionName, option = m[1], ""
			switch {
			case r.seen[[2]string{"", sectionName}]:
				return at("section %s already exists", py.Repr(sectionName))
			case sectionName == iniDefault:
				section = r.defaults
			default:
				section = py.NewDict()
				r.sections.SetStr(sectionName, section)
				r.seen[[2]string{"", sectionName}] = true
			}
			continue
		}
		if section == nil {
			return core.Errorf("File contains no section headers.\nfile: %s, line: %d\n%s", py.Repr(r.file), i+1, untold)
		}
		if err := r.option(section, sectionName, value, &option, func() { fmt.Fprintf(&r.broken, "\n\t[line %2d]: %s", i+1, untold) }, at); err != nil {
			return err
		}
	}
	if r.broken.Len() > 0 {
		return core.Errorf("Source contains parsing errors: %s%s", py.Repr(r.file), r.broken.String())
	}
	return nil
}

func lookup(section *py.Dict, option string) any {
	if section == nil || option == "" {
		return nil
	}
	v, _ := section.GetStr(option)
	return v
}

// option reads the line of an option.
func (r *iniReader) option(section *py.Dict, sectionName, line string, option *string, broken func(), at func(string, ...any) error) error {
	first, length := -1, 0
	for _, d := range r.f.delimiters {
		if i := strings.Index(line, d); d != "" && i >= 0 && (first < 0 || i < first) {
			first, length = i, len(d)
		}
	}
	if first < 0 && !r.f.bare {
		broken()
		return nil
	}
	name, value := line, ""
	if first >= 0 {
		name, value = line[:first], py.Strip(line[first+length:])
	}
	name = py.RStrip(name)
	if name == "" {
		broken()
	}
	name = py.Lower(name)
	*option = name
	if r.seen[[2]string{sectionName, name}] {
		return at("option %s in section %s already exists", py.Repr(name), py.Repr(sectionName))
	}
	r.seen[[2]string{sectionName, name}] = true
	if first < 0 {
		section.SetStr(name, nil)
	} else {
		section.SetStr(name, py.NewList(value))
	}
	return nil
}

// interpolate inserts the values of other options into one. Source: CPython 3.11, Lib/configparser.py,
// BasicInterpolation.
func interpolate(b *strings.Builder, option, section, rest string, all *py.Dict, depth int) error {
	const most = 10
	if depth > most {
		return core.Errorf("Recursion limit exceeded in value substitution: option %s in section %s contains an interpolation key which cannot be substituted in %d steps. Raw value: %s",
			py.Repr(option), py.Repr(section), most, untold)
	}
	for rest != "" {
		i := strings.Index(rest, "%")
		if i < 0 {
			b.WriteString(rest)
			return nil
		}
		b.WriteString(rest[:i])
		rest = rest[i:]
		switch {
		case strings.HasPrefix(rest, "%%"):
			b.WriteByte('%')
			rest = rest[2:]
		case strings.HasPrefix(rest, "%("):
			m := iniRef.FindStringSubmatchIndex(rest)
			if m == nil || m[0] != 0 {
				return core.Errorf("bad interpolation variable reference %s", untold)
			}
			name := py.Lower(rest[m[2]:m[3]])
			rest = rest[m[1]:]
			v, ok := all.GetStr(name)
			if !ok {
				return core.Errorf("Bad value substitution: option %s in section %s contains an interpolation key %s which is not a valid option name. Raw value: %s",
					py.Repr(option), py.Repr(section), py.Repr(name), untold)
			}
			s := py.Str(v)
			if !strings.Contains(s, "%") {
				b.WriteString(s)
			} else if err := interpolate(b, option, section, s, all, depth+1); err != nil {
				return err
			}
		default:
			return core.Errorf("'%%' must be followed by '%%' or '(', found: %s", untold)
		}
	}
	return nil
}

// Bool returns the truth of an option.
func Bool(d *py.Dict, key string, def bool) bool {
	if v, ok := d.GetStr(key); ok {
		return py.Truth(v)
	}
	return def
}
