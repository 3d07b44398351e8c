package difflib

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"corpus-git/sls/state/core"
)

// The unified diff of Python's difflib, which Salt reports: other algorithms produce other, equally correct
// diffs. Source: Python documentation, difflib, SequenceMatcher and unified_diff.

// maxDiffLines limits the texts that are compared; matching takes quadratic time in the worst case.
const maxDiffLines = 20000

// Text returns the unified diff of two files as Salt shows it, "" if they are equal.
func Text(old, new []byte) string {
	if bytes.Equal(old, new) {
		return ""
	}
	switch oldBin, newBin := core.IsBinary(old), core.IsBinary(new); {
	case oldBin && newBin:
		return "Replace binary file"
	case oldBin:
		return "Replace binary file with text file"
	case newBin:
		return "Replace text file with binary file"
	}
	return strings.Join(Unified(Lines(old), Lines(new), "\n"), "")
}

// Lines returns the lines of a text; one that is not UTF-8 counts as Latin-1.
func Lines(b []byte) []string {
	lines := core.SplitKeep(string(b))
	for i, l := range lines {
		if utf8.ValidString(l) {
			continue
		}
		rs := make([]rune, len(l))
		for j := range len(l) {
			rs[j] = rune(l[j])
		}
		lines[i] = string(rs)
	}
	return lines
}

type opcode struct {
	tag            byte // e(qual), r(eplace), d(elete), i(nsert)
	i1, i2, j1, j2 int
}

// Unified is difflib.unified_diff with three lines of context and no file names.
func Unified(a, b []string, lineterm string) []string {
	if len(a)+len(b) > maxDiffLines {
		return []string{fmt.Sprintf("diff of %d and %d lines not shown", len(a), len(b))}
	}
	var out []string
	for _, group := range groups(opcodes(a, b), 3) {
		if len(out) == 0 {
			out = append(out, "--- "+lineterm, "+++ "+lineterm)
		}
		first, last := group[0], group[len(group)-1]
		out = append(out, "@@ -"+span(first.i1, last.i2)+" +"+span(first.j1, last.j2)+" @@"+lineterm)
		for _, o := range group {
			if o.tag == 'e' {
				for _, l := range a[o.i1:o.i2] {
					out = append(out, " "+l)
				}
				continue
			}
			if o.tag == 'r' || o.tag == 'd' {
				for _, l := range a[o.i1:o.i2] {
					out = append(out, "-"+l)
				}
			}
			if o.tag == 'r' || o.tag == 'i' {
				for _, l := range b[o.j1:o.j2] {
					out = append(out, "+"+l)
				}
			}
		}
	}
	return out
}

func span(start, stop int) string {
	n := stop - start
	beginning := start + 1
	if n == 1 {
		return fmt.Sprint(beginning)
	}
	if n == 0 {
		beginning--
	}
	return fmt.Sprintf("%d,%d", beginning, n)
}

func groups(codes []opcode, n int) [][]opcode {
	if len(codes) == 0 {
		codes = []opcode{{'e', 0, 1, 0, 1}}
	}
	codes = append([]opcode(nil), codes...)
	if c := &codes[0]; c.tag == 'e' {
		c.i1, c.j1 = max(c.i1, c.i2-n), max(c.j1, c.j2-n)
	}
	if c := &codes[len(codes)-1]; c.tag == 'e' {
		c.i2, c.j2 = min(c.i2, c.i1+n), min(c.j2, c.j1+n)
	}
	var out [][]opcode
	var cur []opcode
	for _, c := range codes {
		if c.tag == 'e' && c.i2-c.i1 > 2*n {
			cur = append(cur, opcode{'e', c.i1, min(c.i2, c.i1+n), c.j1, min(c.j2, c.j1+n)})
			out = append(out, cur)
			cur = nil
			c.i1, c.j1 = max(c.i1, c.i2-n), max(c.j1, c.j2-n)
		}
		cur = append(cur, c)
	}
	if len(cur) > 0 && !(len(cur) == 1 && cur[0].tag == 'e') {
		out = append(out, cur)
	}
	return out
}

type match struct{ a, b, size int }

func opcodes(a, b []string) []opcode {
	var out []opcode
	i, j := 0, 0
	for _, m := range matches(a, b) {
		tag := byte(0)
		switch {
		case i < m.a && j < m.b:
			tag = 'r'
		case i < m.a:
			tag = 'd'
		case j < m.b:
			tag = 'i'
		}
		if tag != 0 {
			out = append(out, opcode{tag, i, m.a, j, m.b})
		}
		i, j = m.a+m.size, m.b+m.size
		if m.size > 0 {
			out = append(out, opcode{'e', m.a, i, m.b, j})
		}
	}
	return out
}

// matches returns the matching blocks, in order, terminated by an empty one.
func matches(a, b []string) []match {
	b2j := map[string][]int{}
	for j, l := range b {
		b2j[l] = append(b2j[l], j)
	}
	if n := len(b); n >= 200 { // lines that are more than 1 % of a long text do not count
		for l, at := range b2j {
			if len(at) > n/100+1 {
				delete(b2j, l)
			}
		}
	}
	type area struct{ alo, ahi, blo, bhi int }
	queue := []area{{0, len(a), 0, len(b)}}
	var found []match
	for len(queue) > 0 {
		q := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		m := longest(a, b, b2j, q.alo, q.ahi, q.blo, q.bhi)
		if m.size == 0 {
			continue
		}
		found = append(found, m)
		if q.alo < m.a && q.blo < m.b {
			queue = append(queue, area{q.alo, m.a, q.blo, m.b})
		}
		if m.a+m.size < q.ahi && m.b+m.size < q.bhi {
			queue = append(queue, area{m.a + m.size, q.ahi, m.b + m.size, q.bhi})
		}
	}
	sortMatches(found)
	var out []match
	cur := match{}
	for _, m := range found {
		if cur.a+cur.size == m.a && cur.b+cur.size == m.b {
			cur.size += m.size
			continue
		}
		if cur.size > 0 {
			out = append(out, cur)
		}
		cur = m
	}
	if cur.size > 0 {
		out = append(out, cur)
	}
	return append(out, match{len(a), len(b), 0})
}

func longest(a, b []string, b2j map[string][]int, alo, ahi, blo, bhi int) match {
	best := match{alo, blo, 0}
	j2len := map[int]int{}
	for i := alo; i < ahi; i++ {
		next := map[int]int{}
		for _, j := range b2j[a[i]] {
			if j < blo {
				continue
			}
			if j >= bhi {
				break
			}
			k := j2len[j-1] + 1
			next[j] = k
			if k > best.size {
				best = match{i - k + 1, j - k + 1, k}
			}
		}
		j2len = next
	}
	for best.a > alo && best.b > blo && a[best.a-1] == b[best.b-1] {
		best.a, best.b, best.size = best.a-1, best.b-1, best.size+1
	}
	for best.a+best.size < ahi && best.b+best.size < bhi && a[best.a+best.size] == b[best.b+best.size] {
		best.size++
	}
	return best
}

func sortMatches(m []match) {
	for i := 1; i < len(m); i++ {
		for j := i; j > 0 && (m[j].a < m[j-1].a || m[j].a == m[j-1].a && m[j].b < m[j-1].b); j-- {
			m[j], m[j-1] = m[j-1], m[j]
		}
	}
}
