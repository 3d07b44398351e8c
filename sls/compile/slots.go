package compile

import (
	"errors"
	"strings"

	"corpus-git/internal/py"
)

// slotMark is the prefix of an argument that is computed by an execution function right before the state runs:
// __slot__:salt:module.function(argument, key=value).path ~ text to append. Source: Salt documentation, "Slots".
const slotMark = "__slot__:"

// Slot is one such argument.
type Slot struct {
	Fun  string
	Args []any
	Kw   *py.Dict
	// Path selects a part of the function's result, "" for all of it; tail is appended to a text.
	Path, Tail string
	HasTail    bool
}

// ParseSlot parses a slot; ok is false for other text, which is not changed.
func ParseSlot(text string) (s Slot, ok bool, err error) {
	parts := strings.SplitN(text, ":", 3)
	if !strings.HasPrefix(text, slotMark) || len(parts) != 3 || parts[1] != "salt" {
		return s, false, nil
	}
	s.Fun, s.Args, s.Kw, err = parseFunction(parts[2])
	if err != nil || s.Fun == "" {
		return s, false, err
	}
	call, tail, hasTail := strings.Cut(parts[2], "~")
	if at := strings.LastIndexByte(call, ')'); at >= 0 {
		if _, path, dotted := strings.Cut(call[at+1:], "."); dotted {
			s.Path = strings.TrimSpace(path)
		}
	}
	if s.HasTail = hasTail; hasTail {
		s.Tail = strings.TrimSpace(tail)
		if n := len(s.Tail); n >= 2 && s.Tail[0] == s.Tail[n-1] && strings.ContainsAny(s.Tail[:1], `"'`) {
			s.Tail = s.Tail[1 : n-1]
		}
	}
	return s, true, nil
}

// parseFunction reads module.function(argument, key=value); fun is "" if the text is not such a call. White space outside quotes is
// ignored, and every argument is a string. Source: Salt, utils/args.py, parse_function.
func parseFunction(text string) (fun string, args []any, kw *py.Dict, err error) {
	tokens, err := shlexTokens(text)
	if err != nil {
		return "", nil, nil, err
	}
	i := 0
	for ; i < len(tokens) && tokens[i] != "("; i++ {
		fun += tokens[i]
	}
	if i == len(tokens) {
		return "", nil, nil, nil
	}
	kw = py.NewDict()
	var word, key string
	var open []string
	words, keyed := 0, false
	for _, tok := range tokens[i+1:] {
		switch {
		case tok == "[" || tok == "{" || tok == "(":
			open = append(open, map[string]string{"[": "]", "{": "}", "(": ")"}[tok])
		case (tok == "," || tok == ")") && len(open) == 0:
			if keyed && key != "" {
				kw.SetStr(key, word)
			} else if words > 0 {
				args = append(args, word)
			}
			if tok == ")" {
				return fun, args, kw, nil
			}
			word, key, words, keyed = "", "", 0, false
			continue
		case tok == "]" || tok == "}" || tok == ")":
			if len(open) == 0 || open[len(open)-1] != tok {
				return "", nil, nil, nil
			}
			open = open[:len(open)-1]
		case tok == "=" && len(open) == 0:
			key, keyed = word, true
			word, words = "", 0
			continue
		}
		word += tok
		words++
	}
	return "", nil, nil, nil
}

var errOpenQuote = errors.New("No closing quotation") //nolint:staticcheck // as Python says it

// shlexTokens splits a text as Python's shlex does in POSIX mode: words of letters, digits and underscores, and every
// other character by itself; quoted text is part of the word. Source: Python documentation, shlex.
func shlexTokens(text string) (out []string, err error) {
	var word strings.Builder
	in, quoted := false, false
	emit := func() {
		if in || quoted {
			out = append(out, word.String())
		}
		word.Reset()
		in, quoted = false, false
	}
	for i := 0; i < len(text); i++ {
		ch := text[i]
		switch {
		case strings.IndexByte(" \t\r\n", ch) >= 0:
			emit()
		case ch == '#':
			emit()
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case ch == '\\':
			if i++; i == len(text) {
				return nil, errors.New("No escaped character") //nolint:staticcheck // as Python says it
			}
			word.WriteByte(text[i])
			in = true
		case ch == '"' || ch == '\'':
			quoted = true
			for i++; ; i++ {
				if i >= len(text) {
					return nil, errOpenQuote
				}
				if text[i] == ch {
					break
				}
				if text[i] == '\\' && i+1 < len(text) {
					if next := text[i+1]; next != '\\' && next != ch {
						word.WriteByte('\\')
					}
					i++
				}
				word.WriteByte(text[i])
			}
		case ch == '_' || ch >= '0' && ch <= '9' || ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z' || ch >= 0x80:
			word.WriteByte(ch)
			in = true
		default:
			emit()
			out = append(out, string(ch))
		}
	}
	emit()
	return out, nil
}

// SlotTexts calls fn for every text of the arguments in which Salt looks for a slot, and replaces it with the result: an argument, a value
// of a mapping, an entry of a list, and a value of a mapping in a list, no deeper.
func SlotTexts(args *py.Dict, fn func(text string) (any, error)) error {
	text := func(v any) (string, bool) {
		s, ok := v.(string)
		return s, ok && strings.HasPrefix(s, slotMark)
	}
	inDict := func(d *py.Dict) (*py.Dict, error) {
		out := d
		for _, e := range d.Items() {
			s, ok := text(e.Value)
			if !ok {
				continue
			}
			v, err := fn(s)
			if err != nil {
				return nil, err
			}
			if out == d {
				out = d.Copy()
			}
			if err := out.Set(e.Key, v); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	for _, e := range args.Items() {
		if e.Key == "name" { // a state's name is fixed by then
			continue
		}
		var now any
		var err error
		switch x := e.Value.(type) {
		case string:
			s, ok := text(x)
			if !ok {
				continue
			}
			now, err = fn(s)
		case *py.Dict:
			now, err = inDict(x)
		case *py.List:
			l := py.NewList()
			for _, it := range x.Items() {
				if s, ok := text(it); ok {
					it, err = fn(s)
				} else if d, ok := it.(*py.Dict); ok {
					it, err = inDict(d)
				}
				if err != nil {
					return err
				}
				l.Append(it)
			}
			now = l
		default:
			continue
		}
		if err != nil {
			return err
		}
		if err := args.Set(e.Key, now); err != nil {
			return err
		}
	}
	return nil
}

// slotFunctions returns the functions that the slots of a state call.
func slotFunctions(args *py.Dict) (out []string) {
	_ = SlotTexts(args.Copy(), func(text string) (any, error) {
		if s, ok, err := ParseSlot(text); ok && err == nil {
			out = append(out, s.Fun)
		}
		return text, nil
	})
	return out
}
