package pyre

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// Flags change how an expression is read.
type Flags uint8

// The flags of re.compile that templates can give.
const (
	IgnoreCase Flags = 1 << iota
	MultiLine
)

// Limits limit the backtracking engine.
type Limits struct {
	Text int           // bytes of a text
	Time time.Duration // of one Find or FindAll
}

// Templates returns the limits of Compile, for expressions in templates.
func Templates() Limits { return Limits{Text: 256 << 10, Time: 500 * time.Millisecond} }

// ErrLimit is the error for a text that is too long to backtrack in, and for a match that takes too long.
var ErrLimit = errors.New("the regular expression takes too long on this text")

// Regexp is a compiled expression.
type Regexp struct {
	expr   string
	flags  Flags
	info   *translator
	fast   *regexp.Regexp // nil if only the other engine can run it
	cost   int            // instructions of fast
	empty  bool           // may match nothing
	names  map[string]int
	limits Limits
	spare  sync.Pool // of *backtracker
}

// backtracker is the expression for the engine that backtracks. One search uses it at a time.
type backtracker struct {
	re     *regexp2.Regexp
	longer *regexp2.Regexp // matches only where a search begins, and not the empty text there
}

// Compile reads an expression of Python, with the limits of Templates. An error is a *SyntaxError.
func Compile(expr string, flags Flags) (*Regexp, error) {
	return CompileLimits(expr, flags, Templates())
}

// CompileLimits is Compile with other limits.
func CompileLimits(expr string, flags Flags, limits Limits) (*Regexp, error) {
	t := &translator{engine: automaton, src: expr}
	if err := t.translate(flags); err != nil {
		return nil, err
	}
	r := &Regexp{expr: expr, flags: flags, info: t, names: t.names, limits: limits}
	slow := func() (*Regexp, error) {
		b, err := r.backtracker()
		if err != nil {
			return nil, err
		}
		r.spare.Put(b)
		return r, nil
	}
	if t.backtracks {
		return slow()
	}
	tree, err := syntax.Parse(t.out.String(), syntax.Perl)
	if err != nil {
		return slow() // larger than the automaton may be
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, &SyntaxError{Msg: err.Error()}
	}
	if r.fast, err = regexp.Compile(t.out.String()); err != nil {
		return nil, &SyntaxError{Msg: err.Error()}
	}
	r.cost, r.empty = len(prog.Inst), empty(tree)
	return r, nil
}

// slow compiles the expression for the engine that backtracks.
// nonEmpty: it matches only where a search begins, and not the empty text there.
func (r *Regexp) slow(nonEmpty bool) (*regexp2.Regexp, error) {
	t := &translator{engine: backtrack, src: r.expr}
	if err := t.translate(r.flags); err != nil {
		return nil, err
	}
	expr := t.out.String()
	if nonEmpty {
		expr = `\G(?:` + expr + `)(?!\G)`
	}
	re, err := regexp2.Compile(expr, regexp2.None)
	if err != nil {
		return nil, &SyntaxError{Msg: err.Error()}
	}
	return re, nil
}

// backtracker returns one that no other search uses.
func (r *Regexp) backtracker() (*backtracker, error) {
	if b, ok := r.spare.Get().(*backtracker); ok {
		return b, nil
	}
	re, err := r.slow(false)
	if err != nil {
		return nil, err
	}
	longer, err := r.slow(true)
	return &backtracker{re, longer}, err
}

// Groups returns the number of groups.
func (r *Regexp) Groups() int { return r.info.groups }

// backtracks reports whether only the backtracking engine returns Python's answer for this text.
func (r *Regexp) backtracks(text string) bool {
	return r.fast == nil || r.info.end && strings.HasSuffix(text, "\n") || r.info.boundary && !ascii(text)
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Cost returns about how many nanoseconds a search in the text may take; for an expression that backtracks, time is counted instead.
func (r *Regexp) Cost(text string) int {
	if r.backtracks(text) {
		return 100 * len(text)
	}
	return len(text) * (20 + 4*r.cost)
}

// A Match is the byte offsets of the match and its groups in pairs, -1 for a group that took no part.
type Match []int

// Group returns the text of a group in the text that was searched; ok is false if it took no part.
func (m Match) Group(text string, n int) (s string, ok bool) {
	if 2*n+1 >= len(m) || m[2*n] < 0 {
		return "", false
	}
	return text[m[2*n]:m[2*n+1]], true
}

// Find returns the first match in the text, nil if there is none. atStart: only at the beginning of the text, as re.match.
// The error is ErrLimit.
func (r *Regexp) Find(text string, atStart bool) (Match, error) {
	all, err := r.all(text, atStart, 1)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

// FindAll returns all matches, as re.sub replaces them. The error is ErrLimit.
func (r *Regexp) FindAll(text string) ([]Match, error) { return r.all(text, false, -1) }

func (r *Regexp) all(text string, atStart bool, most int) ([]Match, error) {
	// After a match Python accepts an empty one at its end, which Go skips.
	if !r.backtracks(text) && (most == 1 || !r.empty) {
		return r.automaton(text, atStart, most), nil
	}
	if len(text) > r.limits.Text {
		return nil, ErrLimit
	}
	b, err := r.backtracker()
	if err != nil {
		return nil, err
	}
	defer r.spare.Put(b)
	end := time.Now().Add(r.limits.Time)
	runes := []rune(text)
	offsets := make([]int, 0, len(runes)+1)
	for i := range text {
		offsets = append(offsets, i)
	}
	offsets = append(offsets, len(text))
	find := func(re *regexp2.Regexp, from int) (*regexp2.Match, error) {
		if re.MatchTimeout = time.Until(end); re.MatchTimeout <= 0 {
			return nil, ErrLimit
		}
		m, err := re.FindRunesMatchStartingAt(runes, from)
		if err != nil {
			return nil, ErrLimit
		}
		return m, nil
	}
	var out []Match
	for from, after := 0, false; from <= len(runes) && (most < 0 || len(out) < most); {
		var m *regexp2.Match
		if after { // an empty match: a longer one at the same place comes next
			if m, err = find(b.longer, from); m == nil && err == nil {
				from, after = from+1, false
				continue
			}
		} else {
			m, err = find(b.re, from)
		}
		if err != nil {
			return nil, err
		}
		if m == nil || atStart && m.Index > 0 {
			break
		}
		out = append(out, r.match(m, offsets))
		from, after = m.Index+m.Length, m.Length == 0
	}
	return out, nil
}

// match returns a match of the backtracking engine, which counts characters; offsets are where they begin.
func (r *Regexp) match(m *regexp2.Match, offsets []int) Match {
	out := make(Match, 0, 2*(r.Groups()+1))
	for n := range r.Groups() + 1 {
		g := m.GroupByNumber(n)
		if g == nil || len(g.Captures) == 0 {
			out = append(out, -1, -1)
			continue
		}
		out = append(out, offsets[g.Index], offsets[g.Index+g.Length])
	}
	return out
}

// automaton returns all with Go's engine.
func (r *Regexp) automaton(text string, atStart bool, most int) []Match {
	if most == 1 {
		m := r.fast.FindStringSubmatchIndex(text)
		if m == nil || atStart && m[0] > 0 {
			return nil
		}
		return []Match{m}
	}
	var out []Match
	for _, m := range r.fast.FindAllStringSubmatchIndex(text, -1) {
		out = append(out, m)
	}
	return out
}

// empty reports whether the expression matches the empty text somewhere.
func empty(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpNoMatch, syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return false
	case syntax.OpCapture, syntax.OpPlus:
		return empty(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min == 0 || empty(re.Sub[0])
	case syntax.OpConcat:
		return !slices.ContainsFunc(re.Sub, func(s *syntax.Regexp) bool { return !empty(s) })
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, empty)
	}
	return true
}

// Template is the parsed replacement of re.sub.
type Template struct {
	parts []part
}

// part is a text or, if group is not negative, a group.
type part struct {
	text  string
	group int
}

// Template parses a replacement with its \1, \g<1>, \g<name> and escapes. An error is a *SyntaxError.
func (r *Regexp) Template(repl string) (*Template, error) {
	t := &Template{}
	var b strings.Builder
	group := func(n, pos int) error {
		if n > r.Groups() {
			return &SyntaxError{Msg: fmt.Sprintf("invalid group reference %d", n), Pos: pos}
		}
		t.parts = append(t.parts, part{b.String(), -1}, part{"", n})
		b.Reset()
		return nil
	}
	for i := 0; i < len(repl); {
		if repl[i] != '\\' {
			b.WriteByte(repl[i])
			i++
			continue
		}
		if i+1 >= len(repl) {
			return nil, &SyntaxError{Msg: "bad escape (end of pattern)", Pos: i}
		}
		c := repl[i+1]
		switch {
		case c == 'g':
			name, _, ok := strings.Cut(strings.TrimPrefix(repl[i+2:], "<"), ">")
			if !ok || !strings.HasPrefix(repl[i+2:], "<") || name == "" {
				return nil, &SyntaxError{Msg: "missing group name", Pos: i}
			}
			n, err := strconv.Atoi(name)
			if err != nil {
				if n = r.names[name]; n == 0 {
					return nil, &SyntaxError{Msg: "unknown group name", Pos: i}
				}
			}
			if n < 0 {
				return nil, &SyntaxError{Msg: "bad character in group name", Pos: i}
			}
			if err := group(n, i+3); err != nil {
				return nil, err
			}
			i += 4 + len(name)
		case c == '0':
			n := 1
			for n < 3 && i+1+n < len(repl) && repl[i+1+n] >= '0' && repl[i+1+n] <= '7' {
				n++
			}
			v, _ := strconv.ParseUint(repl[i+1:i+1+n], 8, 16) // octal digits only
			b.WriteRune(rune(v))
			i += 1 + n
		case isDigit(c):
			n := 1
			if i+2 < len(repl) && isDigit(repl[i+2]) {
				if v, ok := octal(repl[i+1:], 3); ok {
					b.WriteRune(v)
					i += 4
					continue
				}
				n = 2
			}
			v, _ := strconv.Atoi(repl[i+1 : i+1+n]) // digits only
			if err := group(v, i+1); err != nil {
				return nil, err
			}
			i += 1 + n
		case strings.IndexByte("abfnrtv", c) >= 0:
			b.WriteByte("\a\b\f\n\r\t\v"[strings.IndexByte("abfnrtv", c)])
			i += 2
		case c == '\\':
			b.WriteByte('\\')
			i += 2
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			return nil, &SyntaxError{Msg: "bad escape \\" + string(c), Pos: i}
		default:
			b.WriteByte('\\')
			i++
		}
	}
	t.parts = append(t.parts, part{b.String(), -1})
	return t, nil
}

// Size returns the length of the text that Replace returns.
func (t *Template) Size(text string, all []Match) int {
	n := len(text)
	for _, m := range all {
		n -= m[1] - m[0]
		for _, p := range t.parts {
			s, _ := m.Group(text, max(p.group, 0))
			if p.group < 0 {
				s = p.text
			}
			n += len(s)
		}
	}
	return n
}

// Replace puts the template in place of each match.
func (t *Template) Replace(text string, all []Match) string {
	var b strings.Builder
	at := 0
	for _, m := range all {
		b.WriteString(text[at:m[0]])
		for _, p := range t.parts {
			if p.group < 0 {
				b.WriteString(p.text)
				continue
			}
			s, _ := m.Group(text, p.group)
			b.WriteString(s)
		}
		at = m[1]
	}
	b.WriteString(text[at:])
	return b.String()
}
