package saltyaml

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
)

// Options are the limits and the modes of a parse. The zero value is the default.
type Options struct {
	// Private keeps content out of errors: no line text, no key, no anchor. For pillar files.
	Private bool
	// MaxBytes limits the input; 0 means 16 MiB.
	MaxBytes int
	// MaxDepth limits nesting; 0 means 200.
	MaxDepth int
	// Edits, if it is not nil, receives the lists that are tagged !append, !remove or !replace, and an empty list for each !remove without a value. Otherwise
	// these tags are errors, as in Salt.
	Edits map[*py.List]Edit
}

// Edit is the edit that the tag of a list requests for the list below it.
type Edit struct {
	// Tag is !append, !remove or !replace.
	Tag string
	// Key: the tag has no value, and removes the key that it is the value of.
	Key bool
	At  fault.Pos
}

// The tags of edits.
const (
	Append  = "!append"
	Remove  = "!remove"
	Replace = "!replace"
)

const (
	defaultMaxBytes = 16 << 20
	defaultMaxDepth = 200
)

const op = "parse YAML"

// Parse reads one document. name is the file's name in errors, which are fault.Error of kind Failed with the
// place of what is wrong. An empty document is a Doc with a nil Value and a nil Root.
//
// The rules are those of PyYAML's CSafeLoader with Salt's changes. Source: Salt documentation, "YAML
// Idiosyncrasies", and salt.utils.yamlloader of release 3008.
func Parse(name string, src []byte, opts Options) (*Doc, error) {
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = defaultMaxBytes
	}
	if opts.MaxDepth <= 0 {
		opts.MaxDepth = defaultMaxDepth
	}
	d := &Doc{src: source{name: name, text: string(src), private: opts.Private}}
	if len(src) > opts.MaxBytes {
		return nil, fault.New(fault.Failed, op, "the file is larger than %d bytes", opts.MaxBytes).WithPos(fault.Pos{File: name})
	}
	if err := checkText(d.src); err != nil {
		return nil, err
	}
	root, err := compose(d.src)
	if err != nil {
		return nil, err
	}
	if root == nil {
		return d, nil
	}
	in := newInspector(d.src)
	if err := in.walk(root, false); err != nil {
		return nil, err
	}
	b := newBuilder(d.src, opts, len(src), in.nonSpecific)
	if d.Root, err = b.build(root, 0); err != nil {
		return nil, err
	}
	d.Value = d.Root.Value
	return d, nil
}

// checkText refuses what is not text before the parser sees it: the parser would take it for UTF-16, or name no line.
func checkText(s source) error {
	if !utf8.ValidString(s.text) {
		for i, r := range s.text {
			if r == utf8.RuneError {
				if _, w := utf8.DecodeRuneInString(s.text[i:]); w == 1 {
					return s.fail(i, "the file is not UTF-8")
				}
			}
		}
	}
	for i, r := range s.text {
		if r == '\t' || r == '\n' || r == '\r' || r >= ' ' && r <= '~' || r == 0x85 || r >= 0xa0 && r <= 0xd7ff ||
			r >= 0xe000 && r <= 0xfffd || r >= 0x10000 {
			continue
		}
		return s.fail(i, "control character %U is not allowed", r)
	}
	return nil
}

// fail returns an error at a byte offset.
func (s source) fail(off int, format string, args ...any) *fault.Error {
	line, col := s.place(off)
	return fault.New(fault.Failed, op, format, args...).WithPos(s.pos(line, col))
}

// compose returns the root node of the only document, nil for none.
func compose(s source) (*yaml.Node, error) {
	s.text = marks.ReplaceAllString(yaml12.ReplaceAllString(s.text, "${1}1"), "${1} ")
	if err := checkMarks(s); err != nil {
		return nil, err
	}
	if err := checkTabs(s); err != nil {
		return nil, err
	}
	doc, more, err := decode(strings.NewReader(s.text))
	if err != nil && substitutable(err) {
		if text, stand, ok := substitute(s.text); ok {
			d, m, again := decode(strings.NewReader(text))
			if again == nil {
				doc, more, err = d, m, nil
				stand.restore(doc)
			}
		}
	}
	if err != nil {
		return nil, s.syntaxError(err)
	}
	if more != nil {
		return nil, fault.New(fault.Failed, op, "expected a single document in the stream, but found another document").
			WithPos(s.pos(more.Line, more.Column)).WithHint("a file holds one document: remove the line ---")
	}
	if doc == nil || len(doc.Content) == 0 {
		return nil, nil
	}
	return doc.Content[0], nil
}

// yaml12 finds a version directive that libyaml accepts and the parser here does not; the rules stay those of 1.1. After
// anything but directives, comments and blank lines it is text.
var yaml12 = regexp.MustCompile(`\A((?:\x{feff})?(?:(?:[ \t]*(?:#[^\n]*)?|%[^\n]*)\n)*%YAML[ \t]+1\.)2\b`)

// marks are byte order marks that begin a line after nothing but comments and blank lines: libyaml skips them there,
// but counts them in the column.
var marks = regexp.MustCompile(`\A((?:\x{feff})?(?:[ \t]*(?:#[^\n]*)?\n)+)\x{feff}`)

// checkMarks refuses a byte order mark that begins another line: libyaml ends a text there, and the parser here does not.
func checkMarks(s source) error {
	if i := strings.Index(s.text, "\n\ufeff"); i >= 0 {
		return s.fail(i+1, "a byte order mark begins the line").WithHint("save the file without byte order marks (U+FEFF)")
	}
	return nil
}

// decode reads the first document and, if there is one, the second.
func decode(r io.Reader) (doc, more *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("yaml: the parser cannot read this")
		}
	}()
	dec := yaml.NewDecoder(r)
	doc, more = &yaml.Node{}, &yaml.Node{}
	if err := dec.Decode(doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil, nil
		}
		return nil, nil, err
	}
	if err := dec.Decode(more); err != nil {
		if errors.Is(err, io.EOF) {
			return doc, nil, nil
		}
		return nil, nil, err
	}
	return doc, more, nil
}

// byteReader returns its text byte by byte and so knows how far the parser has looked.
type byteReader struct {
	text string
	n    int
}

func (d *byteReader) Read(p []byte) (int, error) {
	if d.n == len(d.text) {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	p[0] = d.text[d.n]
	d.n++
	return 1, nil
}

// lookahead is how many characters the scanner reads beyond the token that it begins ("--- ").
const lookahead = 4

var reportedLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// hints are hints for the most frequent mistakes.
var hints = []struct{ part, hint string }{
	{"cannot start any token", "quote a value that begins with @, `, % or a tab; indent with spaces"},
	{"mapping values are not allowed", "a value that holds ': ' must be quoted; check the indentation of this line and the one above"},
	{"could not find expected ':'", "a key ends with ':'; check this line and the one above"},
	{"did not find expected key", "check the indentation of this line and the quotes above it"},
	{"did not find expected '-' indicator", "items of a list begin with '- ' in one column"},
	{"did not find expected ',' or", "a [ or { is not closed"},
	{"found unexpected end of stream", "a quote, [ or { is not closed"},
	{"found unknown escape character", "backslashes in double quotes begin an escape: use single quotes"},
	{"unknown anchor", "quote a value that begins with *"},
	{"alphabetic or numeric character", "quote a value that begins with * or &"},
}

// syntaxError finds the place of a parser's error. The parser's own line is that of the enclosing block, so the
// text is parsed again, and how far the parser looked before it failed determines where the error is.
func (s source) syntaxError(err error) error {
	msg := err.Error()
	m := reportedLine.FindStringSubmatch(msg)
	opened := 0
	if m != nil {
		msg = msg[len(m[0]):]
		opened, _ = strconv.Atoi(m[1])
	}
	raw := msg
	d := &byteReader{text: s.text}
	_, _, _ = decode(d)
	off := d.n
	if off < len(s.text) || !strings.Contains(msg, "end of stream") {
		off = max(off-lookahead, 0)
	}
	if s.private && strings.HasPrefix(msg, "unknown anchor") {
		msg = "unknown anchor referenced"
	}
	if strings.Contains(msg, "cannot start any token") {
		if i, tab := s.badStart(d.n); i >= 0 {
			off = i
			if tab {
				msg = `found character '\t' that cannot start any token`
			}
		}
	}
	if strings.Contains(msg, "found a tab") {
		off = max(strings.LastIndexByte(s.text[:d.n], '\t'), 0)
	}
	if strings.Contains(msg, "could not find expected ':'") {
		// At the end of a text the parser can not look further: more line feeds show where it is.
		d := &byteReader{text: s.text + "\n\n\n\n\n"}
		_, _, _ = decode(d)
		off = min(max(d.n-lookahead, 0), len(s.text))
	}
	line, _ := s.place(off)
	if directive, at := badDirective(s.text); at > 0 {
		msg, line = directive, at
	} else if s.unclosed(err) {
		line = strings.Count(strings.TrimSuffix(s.text, "\n"), "\n") + 2
	} else {
		if again, at := s.earlier(line); again != "" {
			msg, raw, line = again, again, at
		}
		if tokenErrors.MatchString(raw) {
			line = s.firstBadLine(raw, line)
		}
	}
	e := fault.New(fault.Failed, op, "%s", msg).WithPos(s.pos(line, 0))
	hint := ""
	for _, h := range hints {
		if strings.Contains(msg, h.part) {
			hint = h.hint
			break
		}
	}
	if strings.Contains(msg, "end of stream") && opened > 0 && opened < line {
		hint = fmt.Sprintf("%s; what is open began on line %d", hint, opened)
	}
	if hint != "" {
		e = e.WithHint("%s", hint)
	}
	return e
}

// maxOpen is how many collections unclosed closes at most.
const maxOpen = 16

// unclosed reports whether the error is that the text ends within a flow collection. libyaml finds that on the line after
// the last one. What is missing shows it: with it, the text can be read.
func (s source) unclosed(err error) bool {
	if !strings.ContainsAny(s.text, "[{") || len(s.text) > maxSearching {
		return false
	}
	text, before := strings.TrimSuffix(s.text, "\n"), ""
	for range maxOpen {
		msg := err.Error()
		lack := ""
		switch {
		case strings.HasSuffix(msg, "did not find expected ',' or ']'"):
			lack = "]"
		case strings.HasSuffix(msg, "did not find expected ',' or '}'"):
			lack = "}"
		case strings.HasSuffix(msg, "did not find expected node content") && before != "x":
			lack = "x"
		default:
			return false
		}
		text, before = text+"\n "+lack, lack
		if _, _, err = decode(strings.NewReader(text + "\n")); err == nil {
			return true
		}
	}
	return false
}

// tokenErrors are errors about a token in a place where no token of its kind is allowed. The scanner may have looked at lines after
// it, to determine whether a text is a key.
var tokenErrors = regexp.MustCompile(`^did not find expected (?:key|<document start>|'-' indicator|node content)|^unknown anchor`)

// misplaced are those that no truncation of the text causes.
var misplaced = regexp.MustCompile(`^did not find expected (?:key|<document start>|'-' indicator)`)

// earlier returns the error of a token on one of the previous lines, beyond which the scanner has looked; msg is "" if there is none.
func (s source) earlier(line int) (msg string, at int) {
	if len(s.text) > maxSearching {
		return "", 0
	}
	lines := strings.SplitAfter(s.text, "\n")
	for at = min(line-1, len(lines)); at >= max(line-3, 1); at-- {
		if endsOpen(lines[at-1]) {
			continue
		}
		_, _, err := decode(strings.NewReader(strings.Join(lines[:at], "")))
		if err == nil {
			break
		}
		if m := reportedLine.ReplaceAllString(err.Error(), ""); misplaced.MatchString(m) {
			return m, at
		}
	}
	return "", 0
}

// How many lines firstBadLine checks before and after the given one, and in texts of which size.
const (
	linesBefore  = 8
	linesBehind  = 2
	maxSearching = 1 << 20
)

// firstBadLine returns the line near another one beyond which the text cannot be read: truncated after it, the text has the same
// error, and truncated before it, not.
func (s source) firstBadLine(msg string, line int) int {
	if len(s.text) > maxSearching {
		return line
	}
	lines := strings.SplitAfter(s.text, "\n")
	if line > len(lines) { // YAML also counts lines by other breaks
		return line
	}
	fails := func(n int) bool {
		if n < 1 || n > len(lines) || strings.ContainsAny(lines[n-1], "\r\u0085\u2028\u2029") {
			return false
		}
		_, _, err := decode(strings.NewReader(strings.Join(lines[:n], "")))
		return err != nil && strings.HasSuffix(err.Error(), msg)
	}
	for range linesBehind {
		if fails(line) || !fails(line+1) && !fails(line+2) {
			break
		}
		line++
	}
	for range linesBefore {
		// A collection that is truncated after one of these is incomplete, whatever follows.
		if line < 2 || endsOpen(lines[line-2]) || !fails(line-1) {
			break
		}
		line--
	}
	return line
}

// endsOpen reports whether a text that is truncated after the line is incomplete: the line is a directive, or in a flow collection.
func endsOpen(line string) bool {
	if strings.HasPrefix(line, "%") {
		return true
	}
	line = strings.TrimRight(line, " \t\r\n")
	return line != "" && strings.IndexByte(",[{", line[len(line)-1]) >= 0
}

// tabComment finds comments after a tab, and the line of the tab, if only comments and blank lines are above it. libyaml
// does not accept such a tab where a key or an item may begin, and the parser here does.
var tabComment = regexp.MustCompile(`(?m)^[ ]*#[^\n]*\n(?:[ \t]*\n)*( *\t[ \t]*)#[^\n]*`)

// checkTabs refuses a comment after a tab where libyaml does: the tab alone, which the parser here does not accept, shows it.
func checkTabs(s source) error {
	for n, at := 0, 0; n < linesBefore && len(s.text) <= maxSearching; n++ {
		m := tabComment.FindStringSubmatchIndex(s.text[at:])
		if m == nil {
			return nil
		}
		tab, end := at+m[2], at+m[1]
		_, _, err := decode(strings.NewReader(s.text[:at+m[3]] + "\n"))
		_, _, whole := decode(strings.NewReader(s.text[:at+m[3]] + s.text[end:]))
		if err != nil && whole != nil && strings.Contains(err.Error(), "cannot start any token") && strings.Contains(whole.Error(), "cannot start any token") {
			return s.fail(tab, `found character '\t' that cannot start any token`).WithHint("indent with spaces")
		}
		at = at + m[3]
	}
	return nil
}

// badStart finds the character that no token can begin with, among the last ones that the scanner looked at.
func (s source) badStart(end int) (off int, tab bool) {
	for i := max(end-lookahead, 0); i < end && i < len(s.text); i++ {
		switch s.text[i] {
		case '\t':
			return i, true
		case '@', '`', '%':
			return i, false
		}
	}
	return -1, false
}
