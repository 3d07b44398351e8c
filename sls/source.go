package sls

import (
	"strings"

	"corpus-git/internal/fault"
)

// source is a file that was rendered: what a user wrote and what YAML saw.
type source struct {
	sls     string
	display string // how messages name the file
	isInit  bool   // the file is <dir>/init.sls
	lines   []string
	// toSource maps a line of the rendered text (from 1) to a line of the file; 0 where it is unknown.
	toSource func(line int) int
}

// pos is a place in a source, by rendered line; a zero pos is unknown.
type pos struct {
	src  *source
	line int
}

// at is the place in the file as the user wrote it. The text of the line is the file's own, never the
// rendered one, which could hold a pillar value.
func (p pos) at() fault.Pos {
	if p.src == nil {
		return fault.Pos{}
	}
	out := fault.Pos{File: p.src.display}
	if p.line > 0 && p.src.toSource != nil {
		out.Line = p.src.toSource(p.line)
	}
	if out.Line > 0 && out.Line <= len(p.src.lines) {
		out.Text = strings.TrimRight(p.src.lines[out.Line-1], "\r")
	}
	return out
}

const compileOp = "compile"

// failf is an error that the author of a file caused.
func failf(p pos, format string, args ...any) *fault.Error {
	return fault.New(fault.Failed, "", format, args...).WithPos(p.at())
}

// alignLines guesses which line of a template each line of its output came from. Lines that are the same in
// both anchor the guess; a line between anchors takes the best match of its literal words.
func alignLines(tmpl, out []string) func(int) int {
	m := make([]int, len(out))
	index := map[string][]int{}
	for i, l := range tmpl {
		k := strings.TrimSpace(l)
		if k != "" {
			index[k] = append(index[k], i)
		}
	}
	last := 0
	for i, l := range out {
		k := strings.TrimSpace(l)
		if k == "" {
			m[i] = -1
			continue
		}
		if c := index[k]; len(c) > 0 {
			m[i] = nearest(c, last)
			last = m[i]
			continue
		}
		m[i] = -1
		if t := bestLine(tmpl, k, last); t >= 0 {
			m[i] = t
			last = t
		}
	}
	return func(line int) int {
		if line < 1 || line > len(m) {
			return 0
		}
		for i := line - 1; i >= 0; i-- {
			if m[i] >= 0 {
				return m[i] + 1
			}
		}
		return 0
	}
}

// nearest is the candidate that lies at or after last, else the first (a loop went round again).
func nearest(c []int, last int) int {
	for _, x := range c {
		if x >= last {
			return x
		}
	}
	return c[0]
}

// bestLine finds the template line whose literal text, with its {{…}} as gaps, could have given text.
func bestLine(tmpl []string, text string, last int) int {
	const window = 400
	try := func(i int) bool {
		lits := literals(strings.TrimSpace(tmpl[i]))
		return len(lits) > 0 && fits(lits, text)
	}
	for i := last; i < len(tmpl) && i < last+window; i++ {
		if try(i) {
			return i
		}
	}
	for i := max(0, last-window); i < last && i < len(tmpl); i++ {
		if try(i) {
			return i
		}
	}
	return -1
}

// literals splits a template line into the texts between its expressions; nil where it has none.
func literals(l string) []string {
	if !strings.Contains(l, "{{") && !strings.Contains(l, "{%") {
		return nil
	}
	var out []string
	for {
		i := strings.IndexByte(l, '{')
		for i >= 0 && i+1 < len(l) && l[i+1] != '{' && l[i+1] != '%' && l[i+1] != '#' {
			j := strings.IndexByte(l[i+1:], '{')
			if j < 0 {
				i = -1
				break
			}
			i += 1 + j
		}
		if i < 0 || i+1 >= len(l) {
			return append(out, l)
		}
		out = append(out, l[:i])
		end := map[byte]string{'{': "}}", '%': "%}", '#': "#}"}[l[i+1]]
		j := strings.Index(l[i+2:], end)
		if j < 0 {
			return append(out, "")
		}
		l = l[i+2+j+2:]
	}
}

func fits(lits []string, text string) bool {
	n := 0
	for _, l := range lits {
		n += len(strings.TrimSpace(l))
	}
	if n == 0 {
		return false
	}
	if !strings.HasPrefix(text, lits[0]) || !strings.HasSuffix(text, lits[len(lits)-1]) {
		return false
	}
	for _, l := range lits {
		i := strings.Index(text, l)
		if i < 0 {
			return false
		}
		text = text[i+len(l):]
	}
	return true
}
