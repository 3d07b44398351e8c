package py

import "strings"

// ShlexSplit is shlex.split: words as a shell would split them, without expansions. An unterminated quotation is a ValueError, whose message reports that.
// Source: Python documentation, shlex, parsing rules of POSIX mode.
func ShlexSplit(s string) ([]string, error) {
	var out []string
	var word strings.Builder
	in, quote, escaped := false, byte(0), false
	for i := range len(s) {
		c := s[i]
		switch {
		case escaped:
			if quote == '"' && c != '"' && c != '\\' {
				word.WriteByte('\\')
			}
			word.WriteByte(c)
			escaped = false
		case c == '\\' && quote != '\'':
			escaped, in = true, true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, in = c, true
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if in {
				out = append(out, word.String())
				word.Reset()
			}
			in = false
		default:
			word.WriteByte(c)
			in = true
		}
	}
	switch {
	case escaped:
		return nil, Errorf(ValueError, "No escaped character")
	case quote != 0:
		return nil, Errorf(ValueError, "No closing quotation")
	case in:
		out = append(out, word.String())
	}
	return out, nil
}
