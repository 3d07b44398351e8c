package redact

import (
	"math/bits"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A text is matched without its blanks: the significant bytes of a pattern are compared with those of the text, and then the gaps between
// them. A gap of the pattern must be a gap of the text; a gap of the text that the pattern does not have must contain a line break. So a
// value that fold, a terminal or a YAML emitter wrapped is found.

// keyLen is the number of significant bytes that select the candidates at a place of a text.
const keyLen = 4

// maxPattern limits the length of a pattern, and with it what a stream holds back and the work at one position; longer values are split into
// several.
const maxPattern = 256

// maxGap is the longest run of blanks that a match may span.
const maxGap = 4 << 10

// pattern is one form of one secret.
type pattern struct {
	sig   string // significant bytes
	gap   []bool // gap[i]: blanks are between sig[i-1] and sig[i]; nil if there are none
	label int
}

func (p *pattern) gapAt(i int) bool { return p.gap != nil && p.gap[i] }

type matcher struct {
	labels   []string
	patterns []pattern
	buckets  map[uint32][]int32 // patterns by their first keyLen bytes, longest first
	bloom    bloom              // over the keys: most positions of a text end here
	short    [keyLen]map[uint32]bool
}

// bloom is a Bloom filter of keys with one hash, in a number of bits that is a power of two. The empty one contains nothing.
type bloom struct {
	bits  []uint64
	shift uint32
}

// gateBits is the largest gate, in powers of two: 128 KiB, sparse for tens of thousands of keys. gateShare is how many bits each key gets up to that.
const gateBits, gateShare = 20, 64

// newGate returns a filter with room for so many keys.
func newGate(keys int) bloom {
	if keys == 0 {
		return bloom{}
	}
	n := min(bits.Len(uint(keys*gateShare-1)), gateBits)
	return bloom{bits: make([]uint64, 1<<n/64), shift: uint32(32 - n)}
}

func (g *bloom) bit(key uint32) (word, bit uint32) {
	h := key * 2654435761 >> g.shift // Fibonacci hashing
	return h >> 6, h & 63
}

func (g *bloom) add(key uint32) {
	w, b := g.bit(key)
	g.bits[w] |= 1 << b
}

// newMatcher returns a matcher of secrets. Patterns are kept in known by value, and reused from there: making them is most of the work.
func newMatcher(secrets []Secret, known map[string][]pattern) *matcher {
	m := &matcher{buckets: map[uint32][]int32{}}
	for i := range m.short {
		m.short[i] = map[uint32]bool{}
	}
	seen := map[string]bool{}
	var t text
	for _, s := range secrets {
		m.labels = append(m.labels, label(s, secrets))
		all, ok := known[s.Value]
		if !ok {
			all = t.patterns(s.Value)
			known[s.Value] = all
		}
		for _, p := range all {
			p.label = len(m.labels) - 1
			m.add(p, seen)
		}
	}
	m.bloom = newGate(len(m.buckets))
	for key, b := range m.buckets {
		m.bloom.add(key)
		sort.SliceStable(b, func(i, j int) bool { return len(m.patterns[b[i]].sig) > len(m.patterns[b[j]].sig) })
	}
	return m
}

// patterns returns those of all forms of a value.
func (t *text) patterns(v string) (out []pattern) {
	had := map[string]bool{}
	for _, form := range forms(v) {
		if !had[form] {
			had[form] = true
			out = t.cut(out, form)
		}
	}
	return out
}

func (m *matcher) add(p pattern, seen map[string]bool) {
	if len(p.sig) < keyLen {
		return
	}
	id := p.sig
	if p.gap != nil {
		var b strings.Builder
		for i := range len(p.sig) {
			if p.gap[i] {
				b.WriteByte(' ')
			}
			b.WriteByte(p.sig[i])
		}
		id = b.String()
	}
	if seen[id] {
		return
	}
	seen[id] = true
	var key uint32
	for i := range keyLen {
		key = key<<8 | uint32(p.sig[i])
		m.short[i][key] = true
	}
	m.buckets[key] = append(m.buckets[key], int32(len(m.patterns)))
	m.patterns = append(m.patterns, p)
}

// label returns what is shown in place of a secret. Keys are not secret, but one may hold another key's value.
func label(of Secret, secrets []Secret) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, of.Label)
	whose := of.Whose
	if whose == "" {
		whose = "pillar"
	}
	for _, l := range []string{"[" + whose + ":" + clean + "]", Closed} {
		ok := true
		for _, s := range secrets {
			if strings.Contains(l, strings.Trim(s.Value, " \t\r\n")) && strings.Trim(s.Value, " \t\r\n") != "" {
				ok = false
				break
			}
		}
		if ok {
			return l
		}
	}
	return "[***]" // shorter than any secret
}

// cut turns a form of a secret into patterns of bounded length that cover it. Bytes that are not significant in a text are not in them.
func (t *text) cut(out []pattern, form string) []pattern {
	t.strip(form)
	sig := string(t.sig)
	var gaps []bool
	for i := 1; i < len(sig); i++ {
		if t.gap[i] != noGap {
			if gaps == nil {
				gaps = make([]bool, len(sig))
			}
			gaps[i] = true
		}
	}
	for start := 0; start < len(sig); {
		end := start + maxPattern
		if rest := len(sig) - end; rest < maxPattern/2 && rest > 0 {
			end = start + (len(sig)-start)/2 // no short remainder
		}
		end = min(end, len(sig))
		p := pattern{sig: sig[start:end]}
		if gaps != nil {
			p.gap = gaps[start:end]
		}
		out = append(out, p)
		start = end
	}
	return out
}

// text is a piece of a stream without its blanks.
type text struct {
	sig []byte
	off []int32 // where each significant byte is in raw
	gap []byte  // what is before it
	// ended: the blanks at the end are too many for a match to continue after them
	ended bool
	// inside: the content of escape sequences counts as text
	inside bool
}

const (
	noGap    = iota
	blankGap // spaces and tabs
	breakGap // a line break among them
	wideGap  // too long to reach over
)

// classes of bytes, for strip
const (
	significant = iota
	space
	newline
	escBegins // of an escape sequence
	control   // a control byte
	wide      // begins, or is in, a character of several bytes that may be an invisible one, or no character
)

var class = func() (c [256]byte) {
	for i := range c {
		switch {
		case i < ' ' || i == 0x7f:
			c[i] = control
		case i >= utf8.RuneSelf:
			c[i] = wide
		}
	}
	c[' '], c['\t'], c['\n'], c['\r'], c[0x1b] = space, space, newline, newline, escBegins
	return c
}()

// strip fills t from raw. Not significant are blanks, and everything that a reader does not see: control bytes (including the NULs of
// UTF-16), escape sequences, format characters, and bytes that are not UTF-8.
func (t *text) strip(raw string) {
	if cap(t.sig) < len(raw) {
		n := maxPattern // most texts are short
		if len(raw) > n {
			n = max(len(raw), chunk+8*maxPattern)
		}
		t.sig, t.off, t.gap = make([]byte, n), make([]int32, n), make([]byte, n)
	}
	sig, off, gaps := t.sig[:cap(t.sig)], t.off[:cap(t.sig)], t.gap[:cap(t.sig)]
	n, since, gap := 0, 0, byte(noGap)
	for i := 0; i < len(raw); {
		c := raw[i]
		size := 1
		switch class[c] {
		case newline:
			gap = breakGap
			i++
			continue
		case space:
			gap = max(gap, blankGap)
			i++
			continue
		case control:
			i++
			continue
		case escBegins:
			if n := escape(raw[i:]); n > 0 && !t.inside {
				i += n
			} else {
				i++
			}
			continue
		case wide:
			r, w := utf8.DecodeRuneInString(raw[i:])
			if unseen(r) {
				i += w
				continue
			}
			size = w
		}
		if i-since > maxGap {
			gap = wideGap
		}
		for range size {
			sig[n], off[n], gaps[n] = raw[i], int32(i), gap
			n, gap = n+1, noGap
			i++
		}
		since = i - 1
	}
	t.sig, t.off, t.gap = sig[:n], off[:n], gaps[:n]
	t.ended = len(raw)-since > maxGap
}

// unseen reports whether a character beyond ASCII shows nothing, or represents bytes that are not characters.
func unseen(r rune) bool {
	switch {
	case r == utf8.RuneError, r < 0xa0, r == 0xad, r == 0x34f, r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef:
		return true
	case r < 0x600:
		return false
	}
	return unicode.Is(unicode.Cf, r) || r == 0x2028 || r == 0x2029
}

// escape returns the length of the control sequence at the start of s (ECMA-48: ESC [ parameters, a final byte), 0 for none.
func escape(s string) int {
	if len(s) < 3 || s[1] != '[' {
		return 0
	}
	for i := 2; i < len(s) && i <= 2+maxParams; i++ {
		switch c := s[i]; {
		case c >= 0x40 && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x3f:
			return 0
		}
	}
	return 0
}

// maxParams is the longest parameter text of a control sequence that is skipped.
const maxParams = 32

// compare matches a pattern at significant byte p of a text: it returns how many bytes agree, and whether that is all of the
// pattern, or all of the text.
func (t *text) compare(pat *pattern, p int) (n int, full, partial bool) {
	for n < len(pat.sig) {
		i := p + n
		if i == len(t.sig) {
			return n, false, !t.ended
		}
		if t.sig[i] != pat.sig[n] {
			return n, false, false
		}
		if n > 0 {
			switch g := t.gap[i]; {
			case g == wideGap, g == noGap && pat.gapAt(n), g == blankGap && !pat.gapAt(n):
				return n, false, false
			}
		}
		n++
	}
	return n, true, false
}

// match is what begins at one position of a text: the longest secret, and the longest one that the end of the text truncates, with its full
// length. A length of 0 means none.
type match struct {
	full, label              int
	cutOff, whole, cutOffLab int
}

// key returns the first keyLen significant bytes from p on.
func (t *text) key(p int) uint32 {
	s := t.sig[p : p+keyLen]
	return uint32(s[0])<<24 | uint32(s[1])<<16 | uint32(s[2])<<8 | uint32(s[3])
}

// holds reports whether a secret can begin where the key is, which has at least keyLen significant bytes.
func (g *bloom) holds(key uint32) bool {
	if len(g.bits) == 0 {
		return false
	}
	w, b := g.bit(key)
	return g.bits[w]&(1<<b) != 0
}

// at finds what begins at significant byte p.
func (m *matcher) at(t *text, p int) (f match) {
	rest := len(t.sig) - p
	if rest < keyLen {
		// Too short for a key: only a beginning can be here.
		var key uint32
		for i := range rest {
			key = key<<8 | uint32(t.sig[p+i])
		}
		if rest > 0 && !t.ended && m.short[rest-1][key] {
			f.cutOff, f.whole = rest, 1<<30
		}
		return f
	}
	for _, id := range m.buckets[t.key(p)] {
		pat := &m.patterns[id]
		n, isFull, isPart := t.compare(pat, p)
		switch {
		case isFull && n > f.full:
			f.full, f.label = n, pat.label
		case isPart && (f.cutOff == 0 || len(pat.sig) < f.whole):
			f.cutOff, f.whole, f.cutOffLab = n, len(pat.sig), pat.label
		}
	}
	return f
}
