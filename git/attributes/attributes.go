package attributes

import (
	"bytes"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/tree"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// Limits of gitattributes(5): git ignores longer lines and larger files.
const (
	maxAttributesFile = 100 << 20
	maxAttributesLine = 2048
)

// FileName is the name of an attributes file.
const FileName = ".gitattributes"

// The attributes that affect a checkout come first in attributes.names, in this order.
const (
	AttrText = iota
	AttrCRLF // an old name of text
	AttrEOL
	AttrIdent
	AttrFilter
	AttrEncoding
)

// CheckoutNames returns the attributes that affect a checkout, in the order of their numbers.
func CheckoutNames() []string {
	return []string{"text", "crlf", "eol", "ident", "filter", "working-tree-encoding"}
}

// Attributes holds, for the paths of one commit, what its .gitattributes files say about conversion. A nil *Attributes has none. Attributes
// that change no content are dropped. Source: gitattributes(5); if the manual is silent, the behaviour of git 2.39.
type Attributes struct {
	files []folderLines // by folder, so that upper ones come first
	names map[string]int
	// The expansion of each macro, by its number in names. The last definition counts.
	macros map[int][]assignment
	// Whether any line can change content: in most repositories none can, and lookups are skipped.
	anyChange bool
	// The prefixes of paths for which a line may cause a note.
	noted []string
}

type folderLines struct {
	dir   string // with its slash, "" at the top
	lines []attributesLine
}

type attributesLine struct {
	pattern string
	literal int  // the length of its literal prefix
	base    bool // the pattern has no slash: it matches names in any folder below
	suffix  bool // the pattern is a star and a literal suffix
	set     []assignment
}

// state is what a line, or a macro, says about an attribute.
type state uint8

// The possible states of an attribute.
const (
	unknown     state = iota // not mentioned
	Set                      // "text"
	Unset                    // "-text"
	unspecified              // "!text"
	HasValue                 // "text=auto"
)

// value is the state of one attribute.
type value struct {
	State state
	Text  string // after the "="
}

// Is reports whether an attribute has this text as its value.
func (v value) Is(text string) bool { return v.State == HasValue && v.Text == text }

// assignment gives an attribute a value.
type assignment struct {
	attr int
	value
}

// File is a .gitattributes of a commit: its path and its blob.
type File struct {
	Path string
	Hash plumbing.Hash
}

// Load reads a commit's .gitattributes, nil if there are none.
func Load(objs tree.Objects, from []File) (*Attributes, error) {
	var texts []Text
	for _, f := range from {
		_, size, err := objs.Header(f.Hash)
		if err == nil && size > maxAttributesFile {
			continue
		}
		data, err := tree.Get(objs, f.Hash, plumbing.BlobObject)
		if err != nil {
			return nil, fault.New(fault.KindOf(err), printable.Line(f.Path), "%w", err)
		}
		texts = append(texts, Text{Dir: strings.TrimSuffix(f.Path, FileName), Data: data})
	}
	return Parse(texts), nil
}

// Text is the content of a folder's .gitattributes. The folder ends in a slash, "" is the top.
type Text struct {
	Dir  string
	Data []byte
}

// Parse parses the given .gitattributes; nil if they have no effect.
func Parse(texts []Text) *Attributes {
	a := newAttributes()
	for _, t := range texts {
		a.parse(t.Dir, t.Data)
	}
	if len(a.files) == 0 {
		return nil
	}
	a.settle()
	return a
}

// IsFile reports whether a path is that of a .gitattributes.
func IsFile(name string) bool {
	return strings.HasSuffix(name, FileName) && path.Base(name) == FileName
}

func newAttributes() *Attributes {
	a := &Attributes{names: map[string]int{}, macros: map[int][]assignment{}}
	for _, n := range CheckoutNames() {
		a.number(n)
	}
	a.macros[a.number("binary")] = []assignment{{a.number("diff"), value{State: Unset}}, {a.number("merge"), value{State: Unset}}, {AttrText, value{State: Unset}}}
	return a
}

func (a *Attributes) number(name string) int {
	n, ok := a.names[name]
	if !ok {
		n = len(a.names)
		a.names[name] = n
	}
	return n
}

// settle computes the effect of the lines, and drops those without one.
func (a *Attributes) settle() {
	sort.SliceStable(a.files, func(i, j int) bool { return a.files[i].dir < a.files[j].dir })
	idle := func(s assignment) bool {
		a.anyChange = a.anyChange || s.attr == AttrEOL && s.Is("crlf") || s.attr == AttrIdent && s.State == Set || s.attr == AttrEncoding && s.State == HasValue
		_, macro := a.macros[s.attr]
		return s.attr > AttrEncoding && !macro
	}
	says := func(set []assignment) bool {
		return slices.ContainsFunc(set, func(s assignment) bool { return s.attr == AttrFilter || s.attr == AttrEncoding })
	}
	for m := range a.macros {
		if says(a.macros[m]) {
			a.noted = []string{""}
		}
		a.macros[m] = slices.DeleteFunc(a.macros[m], idle)
	}
	for i := range a.files {
		lines := a.files[i].lines[:0]
		for _, l := range a.files[i].lines {
			if says(l.set) {
				begin := a.files[i].dir
				if !l.base {
					begin += l.pattern[:l.literal]
				}
				a.noted = append(a.noted, begin)
			}
			if l.set = slices.DeleteFunc(l.set, idle); len(l.set) > 0 {
				lines = append(lines, l)
			}
		}
		a.files[i].lines = lines
	}
}

// MayNote reports whether a line may cause a note about a file, or about one in a folder (a path with a slash at its end).
func (a *Attributes) MayNote(path string) bool {
	return a != nil && slices.ContainsFunc(a.noted, func(begin string) bool {
		return strings.HasPrefix(path, begin) || strings.HasSuffix(path, "/") && strings.HasPrefix(begin, path)
	})
}

const blanks = " \t\r"

// parse parses the file of one folder.
func (a *Attributes) parse(dir string, data []byte) {
	f := folderLines{dir: dir}
	data, _, _ = bytes.Cut(data, []byte{0}) // to git it is a C string
	for line := range bytes.SplitSeq(data, []byte{'\n'}) {
		if len(line) >= maxAttributesLine {
			continue
		}
		text := strings.TrimLeft(string(line), blanks)
		if text == "" || text[0] == '#' {
			continue
		}
		// An invalid quoted pattern is taken literally.
		pattern, rest, ok := unquote(text)
		if !ok {
			end := strings.IndexAny(text+" ", blanks)
			pattern, rest = text[:end], text[end:]
		}
		name, macro := strings.CutPrefix(pattern, "[attr]")
		if macro = macro && name != ""; macro {
			name = strings.TrimLeft(name, blanks)
			name = name[:strings.IndexAny(name+" ", blanks)]
			// Macros may be defined only at the top.
			if dir != "" || !validAttribute(name) {
				continue
			}
		}
		set, ok := a.assignments(strings.FieldsFunc(rest, func(r rune) bool { return r < 0x80 && strings.ContainsRune(blanks, r) }))
		if !ok {
			continue // one invalid word invalidates the line
		}
		if macro {
			a.macros[a.number(name)] = set
			continue
		}
		pattern, _, _ = strings.Cut(pattern, "\x00")
		// git warns of "!" and ignores it; a slash at the end matches no file.
		if pattern == "" || pattern[0] == '!' || strings.HasSuffix(pattern, "/") {
			continue
		}
		f.lines = append(f.lines, newLine(pattern, set))
	}
	if len(f.lines) > 0 {
		a.files = append(a.files, f)
	}
}

func newLine(pattern string, set []assignment) attributesLine {
	const special = "*?[\\"
	l := attributesLine{base: !strings.Contains(pattern, "/"), set: set}
	l.pattern = strings.TrimPrefix(pattern, "/")
	l.suffix = l.base && pattern[0] == '*' && !strings.ContainsAny(pattern[1:], special)
	if l.literal = strings.IndexAny(l.pattern, special); l.literal < 0 {
		l.literal = len(l.pattern)
	}
	return l
}

// matches reports whether a line matches a file: rest is its path below the line's folder, base its name.
func (l *attributesLine) matches(rest, base string) bool {
	name := rest
	if l.base {
		name = base
	}
	switch {
	case l.suffix:
		return strings.HasSuffix(name, l.pattern[1:])
	case l.literal == len(l.pattern):
		return name == l.pattern
	case l.base:
		return wildmatch(l.pattern, name)
	}
	// Git compares the literal prefix separately, so that a "**" right after it counts as one at the beginning.
	return strings.HasPrefix(name, l.pattern[:l.literal]) && wildmatch(l.pattern[l.literal:], name[l.literal:])
}

// assignments parses the words after a pattern; ok is false if one of them is not an attribute.
func (a *Attributes) assignments(words []string) (set []assignment, ok bool) {
	for _, w := range words {
		name, text, has := strings.Cut(w, "=")
		v := value{State: Set}
		switch {
		case name != "" && name[0] == '-':
			name, v.State = name[1:], Unset
		case name != "" && name[0] == '!':
			name, v.State = name[1:], unspecified
		case has:
			v = value{HasValue, text}
		}
		if !validAttribute(name) {
			return nil, false
		}
		set = append(set, assignment{a.number(name), v})
	}
	return set, true
}

// validAttribute reports whether git accepts a name for an attribute.
func validAttribute(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' && i > 0 || c == '.' || c == '_') {
			return false
		}
	}
	return name != ""
}

// Values are the attributes of one path, by their numbers.
type Values []value

// Of returns the attributes of one path. The last assignment wins: of the deepest file, of its last line, of the line's last word; a macro
// is expanded in place.
func (a *Attributes) Of(p string) Values {
	var out Values
	base := path.Base(p)
	for i := len(a.files) - 1; i >= 0; i-- {
		f := &a.files[i]
		rest, ok := strings.CutPrefix(p, f.dir)
		if !ok {
			continue
		}
		for j := len(f.lines) - 1; j >= 0; j-- {
			if l := &f.lines[j]; l.matches(rest, base) {
				if out == nil {
					out = make(Values, len(a.names))
				}
				a.fill(out, l.set)
			}
		}
	}
	if out == nil {
		out = make(Values, AttrEncoding+1)
	}
	return out
}

func (a *Attributes) fill(out Values, set []assignment) {
	for i := len(set) - 1; i >= 0; i-- {
		s := set[i]
		if out[s.attr].State != unknown {
			continue
		}
		out[s.attr] = s.value
		if s.State == Set {
			a.fill(out, a.macros[s.attr])
		}
	}
}

// Changes reports whether the content of any file may change.
func (a *Attributes) Changes() bool { return a != nil && a.anyChange }

// unquote reads a pattern in C quotes.
func unquote(s string) (pattern, rest string, ok bool) {
	if s[0] != '"' {
		return "", "", false
	}
	var b strings.Builder
	octal := func(c byte) bool { return '0' <= c && c <= '7' }
	for i := 1; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			return b.String(), s[i+1:], true
		case '\\':
			i++
			if i == len(s) {
				return "", "", false
			}
			switch j := strings.IndexByte(`abtnvfr"\`, s[i]); {
			case j >= 0:
				b.WriteByte("\a\b\t\n\v\f\r\"\\"[j])
			case s[i] >= '0' && s[i] <= '3' && i+2 < len(s) && octal(s[i+1]) && octal(s[i+2]):
				b.WriteByte((s[i]-'0')<<6 | (s[i+1]-'0')<<3 | (s[i+2] - '0'))
				i += 2
			default:
				return "", "", false
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}
