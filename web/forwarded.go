package web

import (
	"iter"
	"net/http"
	"strings"
)

// forwardedHops returns the addresses in the header Forwarded (RFC 7239), the last one first; values that are not addresses, such as "unknown", are returned
// unchanged. They end at an element that is malformed or names no client.
func forwardedHops(h http.Header) iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest, more := strings.Join(h.Values("Forwarded"), ","), true; more; {
			var elem string
			rest, elem, more = cutLast(rest)
			node, _, ok := parseForwarded(elem)
			if !ok || node == "" || !yield(node) {
				return
			}
		}
	}
}

// protoOf returns the protocol of the request to the last proxy according to its element of Forwarded; "" if it has none.
func protoOf(h http.Header) string {
	_, elem, _ := cutLast(strings.Join(h.Values("Forwarded"), ","))
	_, proto, ok := parseForwarded(elem)
	if !ok {
		return ""
	}
	return proto
}

// cutLast cuts the last element off a comma-separated list with quoted strings (RFC 9110, sections 5.6.1 and 5.6.4). It reads from the end, which the trusted
// proxy wrote, so an unterminated quote of a client does not affect later elements.
func cutLast(list string) (before, elem string, more bool) {
	quoted := false
	for i := len(list) - 1; i >= 0; i-- {
		switch list[i] {
		case '"':
			slashes := 0
			for j := i - 1; quoted && j >= 0 && list[j] == '\\'; j-- {
				slashes++
			}
			if slashes%2 == 0 {
				quoted = !quoted
			}
		case ',':
			if !quoted {
				return list[:i], strings.Trim(list[i+1:], " \t"), true
			}
		}
	}
	return "", strings.Trim(list, " \t"), false
}

// parseForwarded reads one element: pairs with semicolons between them, each name once (RFC 7239, section 4).
func parseForwarded(elem string) (node, proto string, ok bool) {
	seen := map[string]bool{}
	for elem != "" {
		name, rest, found := strings.Cut(elem, "=")
		name = strings.ToLower(name)
		if !found || !isToken(name) || seen[name] {
			return "", "", false
		}
		seen[name] = true
		var value string
		if value, elem, ok = forwardedValue(rest); !ok {
			return "", "", false
		}
		switch name {
		case "for":
			node = value
		case "proto":
			proto = value
		}
		if elem != "" {
			if elem[0] != ';' {
				return "", "", false
			}
			elem = strings.TrimLeft(elem[1:], " \t") // as the examples of RFC 7239 have it
		}
	}
	return node, proto, true
}

// forwardedValue reads a token or a quoted string at the beginning of a text.
func forwardedValue(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexByte(s, ';')
		if end < 0 {
			end = len(s)
		}
		return s[:end], s[end:], isToken(s[:end])
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], true
		case '\\':
			if i++; i == len(s) {
				return "", "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}

// isToken reports whether a text is a token (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 {
			continue
		}
		return false
	}
	return s != ""
}
