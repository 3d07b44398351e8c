package pyre

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// engine is the engine that an expression is written for.
type engine uint8

const (
	automaton engine = iota // package regexp
	backtrack               // package regexp2
)

// translator rewrites an expression of Python for an engine.
type translator struct {
	engine  engine
	src     string
	pos     int
	out     strings.Builder
	atom    int // where the last atom begins in out; -1 if there is nothing to repeat
	lead    int // the end of the flags at the beginning of src
	groups  int
	closed  map[int]bool // groups whose end was read
	names   map[string]int
	open    []group
	verbose bool // whitespace and comments are skipped
	ascii   bool
	// What the automaton lacks, or supports only for some texts.
	backtracks bool
	end        bool // $ without multiline: before a line feed at the end, too
	boundary   bool // \b, \B
	multiline  bool
}

// group is a bracket that is open.
type group struct {
	atom, number          int
	verbose, ascii, multi bool
}

// SyntaxError is what is wrong with an expression, and where: a byte offset.
type SyntaxError struct {
	Msg string
	Pos int
}

// Error is worded as re.error.
func (e *SyntaxError) Error() string { return fmt.Sprintf("%s at position %d", e.Msg, e.Pos) }

// maxExpr and maxOpen limit an expression: its bytes, and how deep its brackets nest.
const (
	maxExpr = 64 << 10
	maxOpen = 200
)

func (t *translator) fail(format string, args ...any) error {
	return &SyntaxError{Msg: fmt.Sprintf(format, args...), Pos: t.pos}
}

// translate rewrites the whole expression.
func (t *translator) translate(flags Flags) error {
	if len(t.src) > maxExpr {
		return t.fail("the expression is too long")
	}
	t.closed, t.names, t.atom, t.multiline = map[int]bool{}, map[string]int{}, -1, flags&MultiLine != 0
	if flags&IgnoreCase != 0 {
		t.out.WriteString("(?i)")
	}
	if flags&MultiLine != 0 {
		t.out.WriteString("(?m)")
	}
	for t.pos < len(t.src) {
		if err := t.next(); err != nil {
			return err
		}
	}
	if len(t.open) > 0 {
		return t.fail("missing ), unterminated subpattern")
	}
	return nil
}

func (t *translator) next() error {
	c := t.src[t.pos]
	switch c {
	case '(':
		return t.bracket()
	case ')':
		return t.close()
	case '[':
		return t.class()
	case '\\':
		return t.escape()
	case '*', '+', '?':
		t.pos++
		return t.repeat(string(c))
	case '{':
		if quantifier, n := t.braces(); n > 0 {
			t.pos += n
			return t.repeat(quantifier)
		}
		t.pos++
		t.literal('{')
		return nil
	case '|':
		t.pos++
		t.out.WriteByte('|')
		t.atom = -1
		return nil
	case '^', '$':
		t.pos++
		t.atom = t.out.Len()
		t.out.WriteByte(c)
		t.end = t.end || c == '$' && !t.multiline
		return nil
	case '.':
		t.pos++
		t.atom = t.out.Len()
		t.out.WriteByte('.')
		return nil
	}
	if t.verbose {
		switch {
		case strings.IndexByte(" \t\n\r\f\v", c) >= 0:
			t.pos++
			return nil
		case c == '#':
			if i := strings.IndexByte(t.src[t.pos:], '\n'); i >= 0 {
				t.pos += i + 1
			} else {
				t.pos = len(t.src)
			}
			return nil
		}
	}
	r, n := utf8.DecodeRuneInString(t.src[t.pos:])
	t.pos += n
	t.literal(r)
	return nil
}

// literal writes a character that stands for itself.
func (t *translator) literal(r rune) {
	t.atom = t.out.Len()
	t.char(r)
}

func (t *translator) char(r rune) {
	switch {
	case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '_', r >= 0x80:
		t.out.WriteRune(r)
	default:
		fmt.Fprintf(&t.out, `\x%02x`, r)
	}
}

// braces reads {m}, {m,}, {,n} and {m,n}; anything else is text.
func (t *translator) braces() (quantifier string, n int) {
	rest := t.src[t.pos+1:]
	digits := func() string {
		i := 0
		for i < len(rest) && rest[i] >= '0' && rest[i] <= '9' {
			i++
		}
		d := rest[:i]
		rest = rest[i:]
		return d
	}
	if strings.HasPrefix(rest, "}") {
		return "", 0
	}
	low, comma, high := digits(), false, ""
	if strings.HasPrefix(rest, ",") {
		comma, rest = true, rest[1:]
		high = digits()
	}
	if !strings.HasPrefix(rest, "}") || !comma && low == "" {
		return "", 0
	}
	if low == "" {
		low = "0"
	}
	quantifier = "{" + low
	if comma {
		quantifier += "," + high
	}
	return quantifier + "}", len(t.src) - t.pos - len(rest) + 1
}

// repeat writes a quantifier, with the ? or + after it.
func (t *translator) repeat(quantifier string) error {
	if t.atom < 0 {
		return t.fail("nothing to repeat")
	}
	if q, ok := strings.CutPrefix(quantifier, "{"); ok {
		low, high, comma := strings.Cut(strings.TrimSuffix(q, "}"), ",")
		a, err := strconv.Atoi(low)
		b := a
		if err == nil && comma && high != "" {
			b, err = strconv.Atoi(high)
		}
		if err != nil {
			return t.fail("the repetition number is too large")
		}
		if b < a {
			return t.fail("min repeat greater than max repeat")
		}
		t.backtracks = t.backtracks || b > 1000
	}
	switch {
	case strings.HasPrefix(t.src[t.pos:], "?"):
		t.pos++
		t.out.WriteString(quantifier + "?")
	case strings.HasPrefix(t.src[t.pos:], "+"): // possessive
		t.pos++
		t.backtracks = true
		s := t.out.String()
		t.out.Reset()
		t.out.WriteString(s[:t.atom] + "(?>" + s[t.atom:] + quantifier + ")")
	default:
		t.out.WriteString(quantifier)
	}
	t.atom = -1
	return nil
}

func (t *translator) push(text string, number int) error {
	if len(t.open) >= maxOpen {
		return t.fail("too many nested brackets")
	}
	t.open = append(t.open, group{t.out.Len(), number, t.verbose, t.ascii, t.multiline})
	t.out.WriteString(text)
	t.atom = -1
	return nil
}

func (t *translator) close() error {
	if len(t.open) == 0 {
		return t.fail("unbalanced parenthesis")
	}
	t.pos++
	g := t.open[len(t.open)-1]
	t.open = t.open[:len(t.open)-1]
	t.out.WriteByte(')')
	t.atom, t.verbose, t.ascii, t.multiline = g.atom, g.verbose, g.ascii, g.multi
	if g.number > 0 {
		t.closed[g.number] = true
	}
	return nil
}

// bracket reads what follows an opening bracket.
func (t *translator) bracket() error {
	rest := t.src[t.pos:]
	switch {
	case !strings.HasPrefix(rest, "(?"):
		t.pos++
		t.groups++
		return t.push("(", t.groups)
	case strings.HasPrefix(rest, "(?P<"):
		name, _, ok := strings.Cut(rest[4:], ">")
		if !ok || !isName(name) {
			return t.fail("bad character in group name")
		}
		if t.names[name] > 0 {
			return t.fail("redefinition of a group name")
		}
		t.pos += 5 + len(name)
		t.groups++
		t.names[name] = t.groups
		return t.push("(", t.groups)
	case strings.HasPrefix(rest, "(?P="):
		name, _, ok := strings.Cut(rest[4:], ")")
		if !ok || t.names[name] == 0 {
			return t.fail("unknown group name")
		}
		t.pos += 5 + len(name)
		return t.reference(t.names[name])
	case strings.HasPrefix(rest, "(?#"):
		i := strings.IndexByte(rest, ')')
		if i < 0 {
			return t.fail("missing ), unterminated comment")
		}
		t.pos += i + 1
		return nil
	case strings.HasPrefix(rest, "(?:"):
		t.pos += 3
		return t.push("(?:", 0)
	case strings.HasPrefix(rest, "(?("):
		return t.condition(rest)
	}
	for _, p := range [...]string{"(?=", "(?!", "(?<=", "(?<!", "(?>"} {
		if strings.HasPrefix(rest, p) {
			t.pos += len(p)
			t.backtracks = true
			return t.push(p, 0)
		}
	}
	return t.flags(rest)
}

// condition is (?(1)yes|no).
func (t *translator) condition(rest string) error {
	id, _, ok := strings.Cut(rest[3:], ")")
	n, err := strconv.Atoi(id)
	if err != nil {
		n = t.names[id]
	}
	if !ok || n < 1 || n > t.groups {
		return t.fail("invalid group reference")
	}
	t.pos += 4 + len(id)
	t.backtracks = true
	return t.push("(?("+strconv.Itoa(n)+")", 0)
}

// flags is (?i), which holds for the whole expression and is at its beginning, or (?i-m:…).
func (t *translator) flags(rest string) error {
	end := strings.IndexAny(rest, ":)")
	if end < 0 {
		return t.fail("unknown extension ?%s", first(rest[2:]))
	}
	local := rest[end] == ':'
	on, off, minus := strings.Cut(rest[2:end], "-")
	if on+off == "" || strings.Trim(on, "aiLmsux") != "" || strings.Trim(off, "imsx") != "" || minus && (!local || off == "") {
		return t.fail("unknown extension ?%s", first(rest[2:]))
	}
	if !local && t.pos != t.lead {
		return t.fail("global flags not at the start of the expression")
	}
	if strings.Contains(on, "L") {
		return t.fail("bad inline flags: cannot use 'L' flag with a str pattern")
	}
	t.pos += end + 1
	write := func(s string) string {
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune("ims", r) {
				return r
			}
			return -1
		}, s)
	}
	text := write(on)
	if o := write(off); o != "" {
		text += "-" + o
	}
	verbose, ascii, multi := t.verbose, t.ascii, t.multiline
	verbose = (verbose || strings.Contains(on, "x")) && !strings.Contains(off, "x")
	ascii = (ascii || strings.Contains(on, "a")) && !strings.Contains(on, "u")
	multi = (multi || strings.Contains(on, "m")) && !strings.Contains(off, "m")
	if local {
		if err := t.push("(?"+text+":", 0); err != nil {
			return err
		}
	} else {
		t.lead = t.pos
		if text != "" {
			t.out.WriteString("(?" + text + ")")
		}
	}
	t.verbose, t.ascii, t.multiline = verbose, ascii, multi
	return nil
}

func first(s string) string {
	r, _ := utf8.DecodeRuneInString(s)
	return string(r)
}

func isName(s string) bool {
	for i, r := range s {
		if !isWord(r) || i == 0 && r >= '0' && r <= '9' {
			return false
		}
	}
	return s != ""
}

// reference writes a back reference.
func (t *translator) reference(n int) error {
	if n > t.groups || !t.closed[n] {
		return t.fail("invalid group reference %d", n)
	}
	t.backtracks = true
	t.atom = t.out.Len()
	fmt.Fprintf(&t.out, `(?:\%d)`, n)
	return nil
}
