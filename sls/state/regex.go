package state

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"corpus-git/internal/py"
	"corpus-git/internal/pyre"
)

// regexLimits bound an expression that only backtracking can run. A state may take longer than a template.
var regexLimits = pyre.Limits{Text: 8 << 20, Time: 10 * time.Second}

// pattern is a regular expression of Python, over text or over bytes.
type pattern struct {
	re    *pyre.Regexp
	bytes bool
}

// textRegex compiles an expression that Salt holds against text; flags are letters as in (?im). why is what is wrong.
func textRegex(expr, flags string) (p *pattern, why string) {
	return compilePattern(expr, flags, false)
}

// byteRegex compiles an expression that Salt holds against bytes: a dot is one byte, \w is ASCII, and so is the
// case that is ignored.
func byteRegex(expr, flags string) (p *pattern, why string) {
	return compilePattern(bytePattern(expr), flags+"a", true)
}

func compilePattern(expr, flags string, bytes bool) (*pattern, string) {
	if flags != "" {
		expr = "(?" + flags + ")" + expr
	}
	re, err := pyre.CompileLimits(expr, 0, regexLimits)
	if err != nil {
		return nil, err.Error()
	}
	return &pattern{re, bytes}, ""
}

// firstByte stands for byte 0 where bytes above ASCII are characters: a private one, without case, that is no letter and no space.
const firstByte = 0xe000

// bytesOf gives each byte above ASCII as a character of its own.
func bytesOf(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0 {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		if s[i] < 0x80 {
			b.WriteByte(s[i])
		} else {
			b.WriteRune(firstByte + rune(s[i]))
		}
	}
	return b.String()
}

// ofBytes undoes bytesOf.
func ofBytes(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r >= firstByte+0x80 && r <= firstByte+0xff {
			b.WriteByte(byte(r - firstByte))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// bytePattern is an expression as bytesOf gives its text; \xNN is a byte, too.
func bytePattern(expr string) string {
	expr = bytesOf(expr)
	var b strings.Builder
	for i := 0; i < len(expr); i++ {
		if expr[i] == '\\' && i+1 < len(expr) {
			if i+3 < len(expr) && expr[i+1] == 'x' {
				if n, err := strconv.ParseUint(expr[i+2:i+4], 16, 8); err == nil && n >= 0x80 {
					b.WriteRune(firstByte + rune(n))
					i += 3
					continue
				}
			}
			b.WriteByte(expr[i])
			i++
		}
		b.WriteByte(expr[i])
	}
	return b.String()
}

// matches reports whether the expression is found, with atStart only where the text begins. A search that takes too long
// fails the state.
func (p *pattern) matches(text string, atStart bool) bool {
	if p.bytes {
		text = bytesOf(text)
	}
	m, err := p.re.Find(text, atStart)
	if err != nil {
		badArg("%s", err.Error())
	}
	return m != nil
}

// subn is re.subn: it replaces the first count matches (0: all) by a template, or by repl itself where it is literal.
func (p *pattern) subn(text, repl string, literal bool, count int) (out string, n int) {
	if p.bytes {
		text, repl = bytesOf(text), bytesOf(repl)
	}
	if literal {
		repl = strings.ReplaceAll(repl, `\`, `\\`)
	}
	t, err := p.re.Template(repl)
	if err != nil {
		badArg("%s", err.Error())
	}
	all, err := p.re.FindAll(text)
	if err != nil {
		badArg("%s", err.Error())
	}
	if count > 0 && len(all) > count {
		all = all[:count]
	}
	out = t.Replace(text, all)
	if p.bytes {
		out = ofBytes(out)
	}
	return out, len(all)
}

// regexFlags reads flags as Salt does: a number as Python's re has it, a name, or a list of names.
func (c *Call) regexFlags() string {
	v, ok := c.val("flags")
	if !ok {
		return "m"
	}
	out := ""
	if n, isInt := v.(int64); isInt {
		for _, f := range []struct {
			bit int64
			ch  string
		}{{2, "i"}, {8, "m"}, {16, "s"}, {64, "x"}} {
			if n&f.bit != 0 {
				out += f.ch
			}
		}
		return out
	}
	for _, s := range c.strs("flags") {
		switch strings.ToUpper(s) {
		case "I", "IGNORECASE":
			out += "i"
		case "M", "MULTILINE":
			out += "m"
		case "S", "DOTALL":
			out += "s"
		case "X", "VERBOSE":
			out += "x"
		case "A", "ASCII":
		default:
			badArg("Invalid re flag given: %s", s)
		}
	}
	return out
}

// whitespaceRegex is an expression that a piece of text matches with more or less white space, but in quotes. It has Go's
// syntax and is held against bytes. why is what is wrong. Source: Salt, utils/stringutils.py, build_whitespace_split_regex.
func whitespaceRegex(piece string) (re *regexp.Regexp, why string) {
	const gap = `[\s\v]*`
	var b strings.Builder
	b.WriteString("(?m)^")
	for _, line := range py.SplitLines(piece, false) {
		parts, ok := quotedFields(line)
		if !ok {
			return nil, "No closing quotation"
		}
		for i, p := range parts {
			parts[i] = regexp.QuoteMeta(p)
		}
		b.WriteString(gap + strings.Join(parts, gap) + gap)
	}
	b.WriteString("$")
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, "the text is too long to look for: " + err.Error()
	}
	return re, ""
}

// quotedFields splits a line at white space as Python's shlex does without its POSIX rules; where a line has both kinds of
// quotes, the double ones keep what is in them together. ok is false where one is not closed.
func quotedFields(line string) (fields []string, ok bool) {
	quotes := strings.Contains(line, "'") && !strings.Contains(line, `'\"`)
	for rest := strings.TrimLeft(line, " \t\r\n"); rest != ""; rest = strings.TrimLeft(rest, " \t\r\n") {
		end := strings.IndexAny(rest, " \t\r\n")
		if quotes && rest[0] == '"' {
			if end = strings.IndexByte(rest[1:], '"'); end < 0 {
				return nil, false
			}
			end += 2
		}
		if end < 0 {
			end = len(rest)
		}
		fields, rest = append(fields, rest[:end]), rest[end:]
	}
	return fields, true
}
