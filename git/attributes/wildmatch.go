package attributes

import "strings"

// wildmatch matches a path against a pattern in which "*" and "?" stop at slashes and "**" beside slashes does not. It works on bytes,
// as git does. Source: gitignore(5), "PATTERN FORMAT"; if the manual is silent (malformed classes, "**" elsewhere), the behaviour of git 2.39.
func wildmatch(pattern, name string) bool {
	m := matcher{pattern: pattern, name: name}
	return m.match(0, 0)
}

// matcher tries each pair of positions at most once, so the time for a pattern of many stars is bounded by the product of the lengths.
type matcher struct {
	pattern, name string
	failed        []uint64 // by position in pattern and name; nil until a second star
	stars         int
}

// match reports whether the pattern from p matches the name from n.
func (m *matcher) match(p, n int) bool {
	for ; p < len(m.pattern); p++ {
		c := m.pattern[p]
		if c == '*' {
			return m.star(p, n)
		}
		if n == len(m.name) {
			return false
		}
		ch := m.name[n]
		n++
		switch c {
		case '?':
			if ch == '/' {
				return false
			}
		case '[':
			end, in := class(m.pattern, p, ch)
			if !in || ch == '/' {
				return false
			}
			p = end
		case '\\':
			if p++; p == len(m.pattern) || m.pattern[p] != ch {
				return false
			}
		default:
			if c != ch {
				return false
			}
		}
	}
	return n == len(m.name)
}

// star matches from a star on.
func (m *matcher) star(p, n int) bool {
	begin := p
	for p < len(m.pattern) && m.pattern[p] == '*' {
		p++
	}
	rest := m.pattern[p:]
	across := p-begin > 1 && (begin == 0 || m.pattern[begin-1] == '/') && (rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`))
	if rest == "" {
		return across || strings.IndexByte(m.name[n:], '/') < 0
	}
	if m.known(begin, n) {
		return false
	}
	// "**/" also matches no folder.
	if across && rest[0] == '/' && m.match(p+1, n) {
		return true
	}
	for ; n < len(m.name); n++ {
		if m.match(p, n) {
			return true
		}
		if !across && m.name[n] == '/' {
			break
		}
	}
	return false
}

// known reports whether this star was tried at this position of the name, and records it.
func (m *matcher) known(p, n int) bool {
	if m.stars++; m.stars == 1 {
		return false
	}
	if m.failed == nil {
		m.failed = make([]uint64, (len(m.pattern)*(len(m.name)+1)+63)/64)
	}
	at := p*(len(m.name)+1) + n
	word, bit := &m.failed[at/64], uint64(1)<<(at%64)
	was := *word&bit != 0
	*word |= bit
	return was
}

// class reports whether the bracket expression at p of a pattern contains ch, and where it ends. An expression without an end contains nothing.
func class(pattern string, p int, ch byte) (end int, in bool) {
	at := func(i int) byte {
		if i < len(pattern) {
			return pattern[i]
		}
		return 0
	}
	p++
	not := at(p) == '!' || at(p) == '^'
	if not {
		p++
	}
	var last byte // the character before, 0 after a range or a named class
	for first := true; first || at(p) != ']'; p++ {
		first = false
		c := at(p)
		switch {
		case c == 0:
			return p, false
		case c == '\\':
			p++
			if c = at(p); c == 0 {
				return p, false
			}
			in = in || ch == c
		case c == '-' && last != 0 && at(p+1) != 0 && at(p+1) != ']':
			p++
			if c = at(p); c == '\\' {
				p++
				if c = at(p); c == 0 {
					return p, false
				}
			}
			in = in || last <= ch && ch <= c
			c = 0
		case c == '[' && at(p+1) == ':':
			close := strings.IndexByte(pattern[p+2:], ']')
			if close < 0 {
				return p, false
			}
			if close == 0 || pattern[p+2+close-1] != ':' {
				in = in || ch == '[' // an ordinary character after all
				break
			}
			has, known := named(pattern[p+2:p+2+close-1], ch)
			if !known {
				return p, false
			}
			in = in || has
			p += 2 + close
			c = 0
		default:
			in = in || ch == c
		}
		last = c
	}
	return p, in != not
}

// named reports whether a character is in a POSIX class, in the C locale.
func named(name string, c byte) (has, known bool) {
	lower, upper, digit := 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9'
	graph := ' ' < c && c < 0x7f
	switch name {
	case "alnum":
		return lower || upper || digit, true
	case "alpha":
		return lower || upper, true
	case "blank":
		return c == ' ' || c == '\t', true
	case "cntrl":
		return c < ' ' || c == 0x7f, true
	case "digit":
		return digit, true
	case "graph":
		return graph, true
	case "lower":
		return lower, true
	case "print":
		return graph || c == ' ', true
	case "punct":
		return graph && !lower && !upper && !digit, true
	case "space":
		return c == ' ' || '\t' <= c && c <= '\r', true
	case "upper":
		return upper, true
	case "xdigit":
		return digit || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F', true
	}
	return false, false
}
