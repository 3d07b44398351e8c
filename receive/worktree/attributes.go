package worktree

import (
	"bytes"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/internal/fault"
)

// Limits of gitattributes(5): git ignores longer lines and files.
const (
	maxAttributesFile = 100 << 20
	maxAttributesLine = 2048
)

const attributesFile = ".gitattributes"

// eol says how a file's line ends are written.
type eol uint8

const (
	eolNone eol = iota // as they are
	eolCRLF            // LF becomes CRLF
	eolAuto            // LF becomes CRLF in what looks like text
)

// attributes answers, for the paths of one commit, what its .gitattributes files say of conversion. A nil
// *attributes says nothing. Attributes that change no content are not kept.
type attributes struct {
	files  []attributesOf // by folder, so that upper ones come first
	macros map[string][]assignment
	// Whether any line can have the effect at all: most repositories have none, and pay nothing.
	anyCRLF, anyNote bool
}

type attributesOf struct {
	dir   string // with its slash, "" at the top
	lines []attributesLine
}

type attributesLine struct {
	pattern  string
	anywhere bool // the pattern has no slash: it is about names in any folder below
	set      []assignment
}

// assignment gives an attribute a value: "true", "false", "" for unspecified, or what stands behind "=".
type assignment struct{ name, value string }

const (
	attrSet   = "true"
	attrUnset = "false"
)

// loadAttributes reads the .gitattributes among entries. One that is a link is
// not followed, as in git.
func loadAttributes(objs Objects, entries []entry) (*attributes, error) {
	a := &attributes{macros: map[string][]assignment{"binary": {{"diff", attrUnset}, {"merge", attrUnset}, {"text", attrUnset}}}}
	for i := range entries {
		e := &entries[i]
		if !strings.HasSuffix(e.path, attributesFile) || path.Base(e.path) != attributesFile || !sameType(e.mode, modeFile) {
			continue
		}
		_, size, err := objs.Header(e.oid)
		if err == nil && size > maxAttributesFile {
			continue
		}
		data, err := get(objs, e.oid, plumbing.BlobObject)
		if err != nil {
			return nil, fault.New(fault.KindOf(err), e.path, "%w", err)
		}
		a.parse(strings.TrimSuffix(e.path, attributesFile), data)
	}
	if len(a.files) == 0 {
		return nil, nil
	}
	sort.SliceStable(a.files, func(i, j int) bool { return a.files[i].dir < a.files[j].dir })
	a.settle()
	return a, nil
}

// settle expands macros, which may be made behind their first use, looks what effect the lines can have, and drops
// those without any.
func (a *attributes) settle() {
	for i := range a.files {
		lines := a.files[i].lines[:0]
		for _, l := range a.files[i].lines {
			l.set = slices.DeleteFunc(a.expand(l.set), func(s assignment) bool {
				a.anyCRLF = a.anyCRLF || s.name == "eol" && s.value == "crlf"
				a.anyNote = a.anyNote || s.name == "ident" && s.value == attrSet || s.name == "filter" || s.name == "working-tree-encoding"
				return !slices.Contains([]string{"text", "crlf", "eol", "ident", "filter", "working-tree-encoding"}, s.name)
			})
			if len(l.set) > 0 {
				lines = append(lines, l)
			}
		}
		a.files[i].lines = lines
	}
}

func (a *attributes) parse(dir string, data []byte) {
	f := attributesOf{dir: dir}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for line := range bytes.SplitSeq(data, []byte{'\n'}) {
		if len(line) >= maxAttributesLine {
			continue
		}
		text := strings.TrimLeft(strings.TrimRight(string(line), " \t\r"), " \t\r")
		if text == "" || text[0] == '#' {
			continue
		}
		pattern, rest := "", ""
		if text[0] == '"' {
			var ok bool
			if pattern, rest, ok = unquote(text); !ok {
				continue
			}
		} else if i := strings.IndexAny(text, " \t\r"); i >= 0 {
			pattern, rest = text[:i], text[i:]
		} else {
			continue
		}
		set := a.assignments(strings.Fields(rest))
		if name, ok := strings.CutPrefix(pattern, "[attr]"); ok {
			// Macros are made at the top only.
			if dir == "" {
				a.macros[name] = set
			}
			continue
		}
		// "!" has no meaning here, and git warns and ignores; a trailing slash matches no file.
		if pattern == "" || pattern[0] == '!' || strings.HasSuffix(pattern, "/") {
			continue
		}
		l := attributesLine{pattern: strings.TrimPrefix(pattern, "/"), anywhere: !strings.Contains(pattern, "/"), set: set}
		f.lines = append(f.lines, l)
	}
	if len(f.lines) > 0 {
		a.files = append(a.files, f)
	}
}

func (a *attributes) assignments(words []string) []assignment {
	var set []assignment
	for _, w := range words {
		switch name, value, ok := strings.Cut(w, "="); {
		case ok:
			set = append(set, assignment{name, value})
		case w[0] == '-':
			set = append(set, assignment{w[1:], attrUnset})
		case w[0] == '!':
			set = append(set, assignment{w[1:], ""})
		default:
			set = append(set, assignment{w, attrSet})
		}
	}
	return set
}

// expand replaces macros that are set by what they stand for, each once.
func (a *attributes) expand(set []assignment) []assignment {
	plain := true
	for _, s := range set {
		if _, ok := a.macros[s.name]; ok && s.value == attrSet {
			plain = false
		}
	}
	if plain {
		return slices.Clone(set)
	}
	var out []assignment
	seen := map[string]bool{}
	var add func([]assignment)
	add = func(set []assignment) {
		for _, s := range set {
			m, ok := a.macros[s.name]
			switch {
			case !ok || s.value != attrSet:
				out = append(out, s)
			case !seen[s.name]:
				seen[s.name] = true
				add(m)
			}
		}
	}
	add(set)
	return out
}

// of gives the attributes of one path, unspecified ones absent; nil where there are none.
func (a *attributes) of(p string) map[string]string {
	var out map[string]string
	for i := range a.files {
		f := &a.files[i]
		rest, ok := strings.CutPrefix(p, f.dir)
		if !ok {
			continue
		}
		base := path.Base(rest)
		for j := range f.lines {
			l := &f.lines[j]
			if l.anywhere && !wildmatch(l.pattern, base) || !l.anywhere && !wildmatch(l.pattern, rest) {
				continue
			}
			for _, s := range l.set {
				if s.value == "" {
					delete(out, s.name)
				} else {
					if out == nil {
						out = map[string]string{}
					}
					out[s.name] = s.value
				}
			}
		}
	}
	return out
}

// converts tells whether the line ends of any file may be changed.
func (a *attributes) converts() bool { return a != nil && a.anyCRLF }

// eol tells how a path's line ends are written on Linux, where the native end is LF: only eol=crlf changes anything.
// Source: gitattributes(5), "End-of-line conversion".
func (a *attributes) eol(p string) eol {
	if !a.converts() {
		return eolNone
	}
	at := a.of(p)
	text, ok := at["text"]
	if !ok {
		text = at["crlf"] // the name of old
	}
	switch {
	case text == attrUnset || at["eol"] != "crlf":
		return eolNone
	case text == "auto":
		return eolAuto
	default:
		return eolCRLF
	}
}

// checkout converts a blob to what is written. It returns data itself where nothing changes.
func (e eol) checkout(data []byte) []byte {
	if e == eolNone {
		return data
	}
	lone, crlf, cr, binary := lineStats(data)
	if lone == 0 || e == eolAuto && (cr > 0 || crlf > 0 || binary) {
		return data
	}
	out := make([]byte, 0, len(data)+lone)
	for i, c := range data {
		if c == '\n' && (i == 0 || data[i-1] != '\r') {
			out = append(out, '\r')
		}
		out = append(out, c)
	}
	return out
}

// lineStats counts lone LF, CRLF and lone CR, and guesses as git does whether data is binary.
func lineStats(data []byte) (lf, crlf, cr int, binary bool) {
	printable, odd, nul := 0, 0, 0
	for i, c := range data {
		switch {
		case c == '\r' && i+1 < len(data) && data[i+1] == '\n':
			crlf++
		case c == '\r':
			cr++
		case c == '\n' && (i == 0 || data[i-1] != '\r'):
			lf++
		case c == '\n':
		case c == 127:
			odd++
		case c >= 32, c == '\b', c == '\t', c == '\033', c == '\014':
			printable++
		default:
			if c == 0 {
				nul++
			}
			odd++
		}
	}
	if n := len(data); n > 0 && data[n-1] == '\032' {
		odd--
	}
	return lf, crlf, cr, cr > 0 || nul > 0 || printable>>7 < odd
}

// wildmatch matches a path against a pattern in which "*" and "?" stop at slashes and "**" between slashes does not.
// Source: gitignore(5), "PATTERN FORMAT".
func wildmatch(pattern, name string) bool {
	pat, parts := strings.Split(pattern, "/"), strings.Split(name, "/")
	// The last "**" seen, and how many parts it has taken: going back to it alone is enough, as with "*" in a name.
	p, n, star, taken := 0, 0, -1, 0
	for n < len(parts) {
		switch {
		case p < len(pat) && pat[p] == "**":
			if p == len(pat)-1 {
				return true
			}
			star, taken = p, n
			p++
		case p < len(pat) && matchName(pat[p], parts[n]):
			p++
			n++
		case star >= 0:
			taken++
			p, n = star+1, taken
		default:
			return false
		}
	}
	return p == len(pat)
}

func matchName(pattern, name string) bool {
	if pattern == name {
		return true
	}
	// path.Match negates a class with "^" only; git takes "!" as well.
	ok, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), name)
	return err == nil && ok
}

// unquote reads a pattern in C quotes.
func unquote(s string) (pattern, rest string, ok bool) {
	var b strings.Builder
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
			case s[i] >= '0' && s[i] <= '3' && i+2 < len(s):
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
