package receive

import (
	"strings"

	"corpus-git/internal/fault"
)

// maxWords limits the number of words of one command.
const maxWords = 1000

// Words splits a command line as a shell does: blanks separate words, quotes and backslashes keep them together (POSIX Shell Command
// Language, 2.2 Quoting). Nothing is expanded: a character with a special meaning to a shell is an error outside quotes, and so is an
// unclosed quote. git quotes paths in single quotes, a quote itself as '\”.
func Words(s string) ([]string, error) {
	w := words{s: s}
	for w.i < len(s) {
		if err := w.next(); err != nil {
			return nil, err
		}
	}
	return w.out, w.end()
}

type words struct {
	s   string
	i   int
	out []string
	b   strings.Builder
	in  bool // within a word
}

func badWords(format string, args ...any) error {
	return fault.New(fault.Usage, "", format, args...).WithHint("give one command and its arguments, with quotes around arguments that contain spaces; try  help")
}

func (w *words) end() error {
	if !w.in {
		return nil
	}
	if len(w.out) == maxWords {
		return badWords("more than %d words", maxWords)
	}
	w.out = append(w.out, w.b.String())
	w.b.Reset()
	w.in = false
	return nil
}

// next reads one character, or one quoted string.
func (w *words) next() error {
	c := w.s[w.i]
	w.i++
	switch c {
	case 0:
		return badWords("the command contains a NUL byte")
	case ' ', '\t':
		return w.end()
	case '\'':
		w.in = true
		text, rest, ok := strings.Cut(w.s[w.i:], "'")
		if !ok || strings.IndexByte(text, 0) >= 0 {
			return badWords("unterminated single quote")
		}
		w.b.WriteString(text)
		w.i = len(w.s) - len(rest)
		return nil
	case '"':
		w.in = true
		return w.doubleQuoted()
	case '\\':
		if w.i == len(w.s) || w.s[w.i] == 0 {
			return badWords("trailing backslash")
		}
		w.in = true
		w.b.WriteByte(w.s[w.i])
		w.i++
		return nil
	case ';', '&', '|', '<', '>', '(', ')', '$', '`', '\n', '\r':
		return badWords("%q is not supported: commands are not run by a shell", c)
	}
	w.in = true
	w.b.WriteByte(c)
	return nil
}

// doubleQuoted reads the rest of a string in double quotes, where a backslash is special before " and \ only, since
// nothing else is special here.
func (w *words) doubleQuoted() error {
	for w.i < len(w.s) {
		c := w.s[w.i]
		w.i++
		switch {
		case c == 0:
			return badWords("the command contains a NUL byte")
		case c == '"':
			return nil
		case c == '$' || c == '`':
			return badWords("%q is not supported: commands are not run by a shell", c)
		case c == '\\' && w.i < len(w.s) && strings.IndexByte("\"\\$`", w.s[w.i]) >= 0:
			w.b.WriteByte(w.s[w.i])
			w.i++
		default:
			w.b.WriteByte(c)
		}
	}
	return badWords("unterminated double quote")
}
