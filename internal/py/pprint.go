package py

import (
	"sort"
	"strings"
)

// Pformat is pprint.pformat(v): repr() broken into lines of at most 80 columns, with the keys of dicts sorted.
func (o *Ops) Pformat(v any) (string, error) {
	p := pprinter{ops: o}
	if err := p.format(v, 0, 0, 0); err != nil {
		return "", err
	}
	return p.b.String(), nil
}

const pprintWidth = 80

type pprinter struct {
	ops *Ops
	b   strings.Builder
}

// repr returns the one-line form, with sorted keys.
func (p *pprinter) repr(v any, depth int) (string, error) {
	if depth > maxDepth {
		return "", Errorf(RecursionError, "maximum recursion depth exceeded")
	}
	join := func(items []any) (string, error) {
		parts := make([]string, len(items))
		n := 0
		for i, e := range items {
			s, err := p.repr(e, depth+1)
			if err != nil {
				return "", err
			}
			parts[i] = s
			n += len(s) + 2
		}
		return strings.Join(parts, ", "), p.ops.Alloc(n)
	}
	switch x := v.(type) {
	case *Dict:
		items := p.sorted(x)
		parts := make([]string, len(items))
		n := 0
		for i, it := range items {
			k, err := p.repr(it.Key, depth+1)
			if err != nil {
				return "", err
			}
			s, err := p.repr(it.Value, depth+1)
			if err != nil {
				return "", err
			}
			parts[i] = k + ": " + s
			n += len(parts[i]) + 2
		}
		return "{" + strings.Join(parts, ", ") + "}", p.ops.Alloc(n)
	case *List:
		s, err := join(x.items)
		return "[" + s + "]", err
	case Tuple:
		s, err := join(x)
		if len(x) == 1 {
			s += ","
		}
		return "(" + s + ")", err
	}
	s, err := p.ops.Repr(v)
	if err == nil {
		err = p.ops.Step(1 + len(s)/16)
	}
	return s, err
}

// text is repr() of a part of a text, charged.
func (p *pprinter) text(s string) (string, error) {
	if err := p.ops.Work(150 + 35*len(s)); err != nil {
		return "", err
	}
	return Repr(s), nil
}

// sorted returns the entries in order of their keys; keys that cannot be compared are ordered by type.
func (p *pprinter) sorted(d *Dict) []Item {
	items := d.Items()
	sort.SliceStable(items, func(i, j int) bool {
		c, err := p.ops.Compare(items[i].Key, items[j].Key, "<")
		if err != nil {
			return TypeName(items[i].Key) < TypeName(items[j].Key)
		}
		return c == -1
	})
	return items
}

// format writes v at a column; allowance is the room that what follows on the last line needs.
func (p *pprinter) format(v any, indent, allowance, depth int) error {
	rep, err := p.repr(v, depth)
	if err != nil {
		return err
	}
	if StrLen(rep) <= pprintWidth-indent-allowance {
		p.b.WriteString(rep)
		return nil
	}
	switch x := v.(type) {
	case *Dict:
		if x.Len() > 0 {
			return p.dict(x, indent, allowance, depth)
		}
	case *List:
		return p.items(x.items, "[", "]", indent, allowance, depth)
	case Tuple:
		end := ")"
		if len(x) == 1 {
			end = ",)"
		}
		return p.items(x, "(", end, indent, allowance, depth)
	case string:
		return p.str(x, indent, allowance, depth)
	}
	p.b.WriteString(rep)
	return nil
}

func (p *pprinter) newline(indent int) error {
	p.b.WriteString("\n" + strings.Repeat(" ", indent))
	return p.ops.Alloc(indent + 1)
}

func (p *pprinter) dict(d *Dict, indent, allowance, depth int) error {
	p.b.WriteByte('{')
	items := p.sorted(d)
	for i, it := range items {
		if i > 0 {
			p.b.WriteByte(',')
			if err := p.newline(indent + 1); err != nil {
				return err
			}
		}
		k, err := p.repr(it.Key, depth+1)
		if err != nil {
			return err
		}
		p.b.WriteString(k + ": ")
		room := 1
		if i == len(items)-1 {
			room = allowance + 1
		}
		if err := p.format(it.Value, indent+1+StrLen(k)+2, room, depth+1); err != nil {
			return err
		}
	}
	p.b.WriteByte('}')
	return nil
}

func (p *pprinter) items(items []any, open, end string, indent, allowance, depth int) error {
	p.b.WriteString(open)
	for i, e := range items {
		if i > 0 {
			p.b.WriteByte(',')
			if err := p.newline(indent + 1); err != nil {
				return err
			}
		}
		room := 1
		if i == len(items)-1 {
			room = allowance + len(end)
		}
		if err := p.format(e, indent+1, room, depth+1); err != nil {
			return err
		}
	}
	p.b.WriteString(end)
	return nil
}

// str breaks a long string into several literals, at line ends and between words.
func (p *pprinter) str(s string, indent, allowance, depth int) error {
	if err := p.ops.Work(10 * len(s)); err != nil {
		return err
	}
	lines := SplitLines(s, true)
	if depth == 0 {
		indent++
		allowance++
	}
	most := pprintWidth - indent
	var chunks []string
	rep := ""
	for i, line := range lines {
		var err error
		if rep, err = p.text(line); err != nil {
			return err
		}
		width := most
		if i == len(lines)-1 {
			width -= allowance
		}
		if StrLen(rep) <= width {
			chunks = append(chunks, rep)
			continue
		}
		if err := p.ops.Work(15 * len(line)); err != nil {
			return err
		}
		parts := words(line)
		cur := ""
		for j, part := range parts {
			candidate := cur + part
			width := most
			if j == len(parts)-1 && i == len(lines)-1 {
				width -= allowance
			}
			if err := p.ops.Alloc(len(candidate)); err != nil {
				return err
			}
			r, err := p.text(candidate)
			if err != nil {
				return err
			}
			if StrLen(r) > width {
				if cur != "" {
					chunks = append(chunks, Repr(cur))
				}
				cur = part
			} else {
				cur = candidate
			}
		}
		if cur != "" {
			chunks = append(chunks, Repr(cur))
		}
	}
	if len(chunks) == 1 {
		p.b.WriteString(rep)
		return nil
	}
	if depth == 0 {
		p.b.WriteByte('(')
	}
	for i, c := range chunks {
		if i > 0 {
			if err := p.newline(indent); err != nil {
				return err
			}
		}
		p.b.WriteString(c)
	}
	if depth == 0 {
		p.b.WriteByte(')')
	}
	return p.ops.Alloc(len(s))
}

// words splits into runs of non-space with the whitespace after them.
func words(s string) []string {
	var out []string
	for s != "" {
		end := strings.IndexFunc(s, IsSpace)
		if end < 0 {
			return append(out, s)
		}
		rest := strings.TrimLeftFunc(s[end:], IsSpace)
		n := len(s) - len(rest)
		out = append(out, s[:n])
		s = rest
	}
	return out
}
