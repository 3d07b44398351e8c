package pkgrepo

import (
	"regexp"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// aptSource is one entry of apt's sources, as Salt sees it. Source: sources.list(5); Salt's salt.utils.pkg.deb.
type aptSource interface {
	// path is the file of the entry, "" if it has none yet.
	path() string
	// valid is false for comments, empty lines, and what apt would not accept.
	valid() bool
	disabled() bool
	// kind is what Salt calls the type: "deb", or all types of a paragraph.
	kind() string
	types() []string
	uris() []string
	suites() []string
	comps() []string
	archs() []string
	// signedBy is the key file; nil if the paragraph names none.
	signedBy() any
	// set changes what Salt's argument with that name means; others are ignored.
	set(key string, v any)
	// text is how the entry is written, without the line end.
	text() string
}

// aptLine is an entry in the one-line style: deb [options] URI suite component….
type aptLine struct {
	file, line       string
	off, bad         bool
	typ, uri, dist   string
	arch, components []string
	key              string
	trusted          *bool
	remark           string
}

// newAptLine reads a line. The text is Salt's error about options after which too little is left.
func newAptLine(line, file string) (*aptLine, string) {
	l := &aptLine{file: file, line: line}
	words := l.split(strings.TrimSpace(line))
	if l.bad {
		return l, ""
	}
	if strings.HasPrefix(words[1], "[") {
		opts := aptOptions(line)
		skip := map[string]int{}
		for _, o := range opts {
			skip[o.full]++
			switch o.name {
			case "arch":
				l.arch = append(l.arch, o.values()...)
			case "signedby":
				l.key = o.value
			case "trusted":
				on := isTrueWord(o.value)
				l.trusted = &on
			}
		}
		var rest []string
		for _, w := range words {
			if w = strings.Trim(w, "[]"); w == "" {
				continue
			}
			if skip[w] > 0 {
				skip[w]--
				continue
			}
			rest = append(rest, w)
		}
		if words = rest; len(words) < 3 {
			l.bad = true
			return l, "Invalid repository definition: " + strings.Join(words, " ")
		}
	}
	l.typ, l.uri, l.dist, l.components = words[0], words[1], words[2], words[3:]
	return l, ""
}

var cdrom = regexp.MustCompile(`^(.*)(cdrom:.*/)(.*)`)

// split parses a line, and finds out whether it is an entry, is commented out, and has a remark.
func (l *aptLine) split(line string) []string {
	if rest, ok := strings.CutPrefix(line, "#"); ok {
		l.off, line = true, rest
	}
	if i := strings.Index(line, "#"); i > 0 {
		l.remark, line = line[i+1:], line[:i]
	}
	words := strings.Fields(line)
	if m := cdrom.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
		words = append(append(strings.Fields(m[1]), strings.TrimSpace(m[2])), strings.Fields(m[3])...)
	}
	if len(words) < 3 {
		l.bad = true
		return words
	}
	switch words[0] {
	case "deb", "deb-src", "rpm", "rpm-src":
	default:
		l.bad = true
	}
	if strings.HasPrefix(words[1], "[") {
		closed := false
		for _, w := range words[1:] {
			closed = closed || strings.HasSuffix(w, "]")
		}
		l.bad = l.bad || !closed
	}
	return words
}

// aptOption is one of the options of a line, in [brackets].
type aptOption struct{ name, full, value string }

func (o aptOption) values() []string { return strings.Split(o.value, ",") }

var optionsOf = regexp.MustCompile(`\[(.*?=.*?)\]`)

func aptOptions(line string) []aptOption {
	var out []aptOption
	for _, word := range strings.Fields(strings.Trim(optionsOf.FindString(line), "[]")) {
		name, value, _ := strings.Cut(word, "=")
		switch {
		case strings.HasPrefix(word, "arch"):
			name = "arch"
		case strings.HasPrefix(word, "signed-by"):
			name = "signedby"
		}
		out = append(out, aptOption{name, word, value})
	}
	return out
}

// isTrueWord reports whether a word means true in apt's files. Unknown words are false.
func isTrueWord(s string) bool {
	switch strings.ToLower(s) {
	case "yes", "true", "with", "on", "enable", "1":
		return true
	}
	return false
}

func (l *aptLine) path() string    { return l.file }
func (l *aptLine) valid() bool     { return !l.bad }
func (l *aptLine) disabled() bool  { return l.off }
func (l *aptLine) kind() string    { return l.typ }
func (l *aptLine) types() []string { return []string{l.typ} }
func (l *aptLine) uris() []string  { return []string{l.uri} }
func (l *aptLine) comps() []string { return l.components }
func (l *aptLine) archs() []string { return l.arch }
func (l *aptLine) signedBy() any   { return l.key }
func (l *aptLine) text() string    { return strings.TrimSpace(l.render()) }

func (l *aptLine) suites() []string {
	if l.dist == "" {
		return nil
	}
	return []string{l.dist}
}

func (l *aptLine) set(key string, v any) {
	switch key {
	case "architectures":
		l.arch = core.Texts(v)
	case "comps":
		l.components = core.Texts(v)
	case "disabled":
		l.off = py.Truth(v)
	case "file":
		l.file = py.Str(v)
	case "uri":
		l.uri = py.Str(v)
	case "dist":
		l.dist = py.Str(v)
	case "suites":
		l.dist = strings.Join(core.Texts(v), " ")
	case "signedby":
		l.key = py.Str(v)
	case "trusted":
		l.trusted = trust(v)
	case "comments":
		l.remark = py.Str(v)
	}
}

// trust reads the argument trusted; nil is neither yes nor no.
func trust(v any) *bool {
	on := false
	switch x := v.(type) {
	case bool:
		on = x
	case int64:
		on = x == 1
	case string:
		on = isTrueWord(x)
	default:
		return nil
	}
	return &on
}

// render returns the line with what was set, options in the order that it had.
func (l *aptLine) render() string {
	if l.bad {
		return l.line
	}
	opts := aptOptions(l.line)
	put := func(name, full string) {
		for i := range opts {
			if opts[i].name == name {
				opts[i].full = full
				return
			}
		}
		opts = append(opts, aptOption{name: name, full: full})
	}
	if len(l.arch) > 0 {
		put("arch", "arch="+strings.Join(l.arch, ","))
	}
	if l.key != "" {
		put("signedby", "signed-by="+l.key)
	}
	if l.trusted != nil && *l.trusted {
		put("trusted", "trusted=yes")
	}
	var words, shown []string
	for _, o := range opts {
		if o.full != "trusted=no" {
			shown = append(shown, o.full)
		}
	}
	if l.off {
		words = append(words, "#")
	}
	words = append(words, l.typ)
	if len(shown) > 0 {
		words = append(words, "["+strings.Join(shown, " ")+"]")
	}
	words = append(words, l.uri, l.dist, strings.Join(l.components, " "))
	if l.remark != "" {
		words = append(words, "#"+l.remark)
	}
	return strings.Join(words, " ") + "\n"
}
