package regex

import (
	"strconv"
	"strings"
	"time"

	"corpus-git/internal/pyre"
	"corpus-git/sls/state/core"
)

// regexLimits bound an expression that only backtracking can run. A state may take longer than a template.
var regexLimits = pyre.Limits{Text: 8 << 20, Time: 10 * time.Second}

// Pattern is a regular expression of Python, over text or over bytes.
type Pattern struct {
	re    *pyre.Regexp
	bytes bool
}

// Text compiles an expression that Salt holds against text; flags are letters as in (?im). why is what is wrong.
func Text(expr, flags string) (p *Pattern, why string) {
	return compilePattern(expr, flags, false)
}

// Bytes compiles an expression that Salt holds against bytes: a dot is one byte, \w is ASCII, and so is the
// case that is ignored.
func Bytes(expr, flags string) (p *Pattern, why string) {
	return compilePattern(bytePattern(expr), flags+"a", true)
}

func compilePattern(expr, flags string, bytes bool) (*Pattern, string) {
	if flags != "" {
		expr = "(?" + flags + ")" + expr
	}
	re, err := pyre.CompileLimits(expr, 0, regexLimits)
	if err != nil {
		return nil, err.Error()
	}
	return &Pattern{re, bytes}, ""
}

// firstByte stands for byte 0 if bytes above ASCII are characters: a private one, without case, that is not a letter and no space.
const firstByte = 0xe000

// bytesOf returns each byte above ASCII as a character of its own.
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

// bytePattern returns an expression as bytesOf gives its text; \xNN is a byte, too.
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

// Matches reports whether the expression is found, with atStart only where the text begins. A search that takes too long
// fails the state.
func (p *Pattern) Matches(text string, atStart bool) bool {
	if p.bytes {
		text = bytesOf(text)
	}
	m, err := p.re.Find(text, atStart)
	if err != nil {
		core.BadArg("%s", err.Error())
	}
	return m != nil
}

// Subn is re.subn: it replaces the first count matches (0: all) by a template, or by repl itself where it is literal.
func (p *Pattern) Subn(text, repl string, literal bool, count int) (out string, n int) {
	if p.bytes {
		text, repl = bytesOf(text), bytesOf(repl)
	}
	if literal {
		repl = strings.ReplaceAll(repl, `\`, `\\`)
	}
	t, err := p.re.Template(repl)
	if err != nil {
		core.BadArg("%s", err.Error())
	}
	all, err := p.re.FindAll(text)
	if err != nil {
		core.BadArg("%s", err.Error())
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
