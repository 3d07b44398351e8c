package py

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// strFn is a method of str whose arguments are already counted.
type strFn func(o *Ops, s string, p []any) (any, error)

// strM returns a method of str from a function: required to most positional arguments.
func strM(required, most int, fn strFn) method {
	return func(o *Ops, self any, a args) (any, error) {
		p, err := a.positional(required, most)
		if err != nil {
			return nil, err
		}
		return fn(o, self.(string), p)
	}
}

// slow charges about so many nanoseconds for each byte of the text, before a method that takes longer than reading it.
func slow(nanos int, m method) method {
	return func(o *Ops, self any, a args) (any, error) {
		if err := o.Work(nanos * len(self.(string))); err != nil {
			return nil, err
		}
		return m(o, self, a)
	}
}

func strMethod(name string) method {
	switch name {
	case "format":
		return func(o *Ops, self any, a args) (any, error) { return o.Format(self.(string), a.pos, a.kw) }
	case "format_map":
		return strM(1, 1, func(o *Ops, s string, p []any) (any, error) {
			d, err := o.AsDict(p[0])
			if err != nil {
				return nil, err
			}
			return o.Format(s, nil, d)
		})
	case "replace":
		return strReplace
	case "split", "rsplit":
		return strSplit
	case "join":
		return strM(1, 1, func(o *Ops, s string, p []any) (any, error) { return o.joinStrict(s, p[0]) })
	case "strip", "lstrip", "rstrip":
		return slow(8, strStrip)
	case "startswith", "endswith":
		return strAffix
	case "find", "rfind", "index", "rindex", "count":
		return strFind
	case "splitlines":
		return strSplitlines
	case "partition", "rpartition":
		return strPartition
	case "encode":
		return func(_ *Ops, self any, a args) (any, error) {
			return nil, Errorf(TypeError, "str.encode() is not supported: there are no bytes here")
		}
	case "expandtabs":
		return slow(8, strExpandtabs)
	case "center", "ljust", "rjust":
		return strPad
	case "zfill":
		return strZfill
	case "removeprefix":
		return strM(1, 1, func(o *Ops, s string, p []any) (any, error) {
			x, err := needStr(p[0])
			return strings.TrimPrefix(s, x), err
		})
	case "removesuffix":
		return strM(1, 1, func(o *Ops, s string, p []any) (any, error) {
			x, err := needStr(p[0])
			return strings.TrimSuffix(s, x), err
		})
	case "translate":
		return slow(40, strTranslate)
	case "maketrans":
		return strMaketrans
	}
	if fn := strCase(name); fn != nil {
		nanos := 20
		if name == "swapcase" {
			nanos = 80
		}
		return strM(0, 0, func(o *Ops, s string, _ []any) (any, error) {
			if err := o.Alloc(len(s)); err != nil {
				return nil, err
			}
			if err := o.Work(nanos * len(s)); err != nil {
				return nil, err
			}
			return fn(s), nil
		})
	}
	if fn := strIs(name); fn != nil {
		return strM(0, 0, func(o *Ops, s string, _ []any) (any, error) { return fn(s), o.Work(10 * len(s)) })
	}
	return nil
}

// strCase returns the methods that map a string to one of another case.
func strCase(name string) func(string) string {
	switch name {
	case "lower":
		return Lower
	case "upper":
		return Upper
	case "casefold":
		return func(s string) string { return strings.ReplaceAll(Lower(s), "ß", "ss") }
	case "title":
		return Title
	case "capitalize":
		return Capitalize
	case "swapcase":
		return func(s string) string {
			return mapRunes(s, func(r rune) string {
				if unicode.IsUpper(r) {
					return Lower(string(r))
				}
				return Upper(string(r))
			})
		}
	}
	return nil
}

func mapRunes(s string, fn func(rune) string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteString(fn(r))
	}
	return b.String()
}

// Lower is str.lower().
func Lower(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	if strings.ContainsRune(s, 'İ') {
		s = strings.ReplaceAll(s, "İ", "i̇")
	}
	out := []rune(strings.ToLower(s))
	for i, r := range out { // a sigma at the end of a word
		if r == 'σ' && []rune(s)[i] == 'Σ' && i > 0 && unicode.IsLetter(out[i-1]) && (i+1 == len(out) || !unicode.IsLetter(out[i+1])) {
			out[i] = 'ς'
		}
	}
	return string(out)
}

// Upper is str.upper().
func Upper(s string) string {
	if isASCII(s) {
		return strings.ToUpper(s)
	}
	return mapRunes(s, func(r rune) string {
		switch r {
		case 'ß':
			return "SS"
		case 'ŉ':
			return "ʼN"
		case 'ﬁ':
			return "FI"
		case 'ﬂ':
			return "FL"
		}
		return string(unicode.ToUpper(r))
	})
}

// Title is str.title().
func Title(s string) string {
	cased := false
	return mapRunes(s, func(r rune) string {
		was := cased
		cased = unicode.IsLetter(r) && (unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r))
		switch {
		case !cased:
			return string(r)
		case was:
			return Lower(string(r))
		case r == 'ß':
			return "Ss"
		}
		return string(unicode.ToTitle(r))
	})
}

// Capitalize is str.capitalize().
func Capitalize(s string) string {
	if s == "" {
		return s
	}
	n := runeLen(s)
	first, _ := utf8.DecodeRuneInString(s)
	head := string(unicode.ToTitle(first))
	if first == 'ß' {
		head = "Ss"
	}
	return head + Lower(s[n:])
}

// strIs returns the methods that test what characters a string consists of.
func strIs(name string) func(string) bool {
	all := func(ok func(rune) bool) func(string) bool {
		return func(s string) bool {
			for _, r := range s {
				if !ok(r) {
					return false
				}
			}
			return s != ""
		}
	}
	switch name {
	case "isdigit":
		return all(func(r rune) bool { return unicode.IsDigit(r) || isSuper(r) })
	case "isdecimal":
		return all(unicode.IsDigit)
	case "isnumeric":
		return all(unicode.IsNumber)
	case "isalpha":
		return all(unicode.IsLetter)
	case "isalnum":
		return all(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
	case "isspace":
		return all(IsSpace)
	case "isascii":
		return isASCII
	case "islower":
		return IsLower
	case "isupper":
		return IsUpper
	case "istitle":
		return isTitle
	case "isidentifier":
		return func(s string) bool {
			for i, r := range s {
				if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
					return false
				}
			}
			return s != ""
		}
	case "isprintable":
		return func(s string) bool {
			for _, r := range s {
				if !unicode.IsPrint(r) {
					return false
				}
			}
			return true
		}
	}
	return nil
}

func isSuper(r rune) bool {
	return r == '²' || r == '³' || r == '¹' || r >= '⁰' && r <= '₉' && unicode.Is(unicode.No, r)
}

// IsSpace is str.isspace() of one character.
func IsSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// IsLower is str.islower().
func IsLower(s string) bool {
	found := false
	for _, r := range s {
		if unicode.IsUpper(r) || unicode.IsTitle(r) {
			return false
		}
		found = found || unicode.IsLower(r)
	}
	return found
}

// IsUpper is str.isupper().
func IsUpper(s string) bool {
	found := false
	for _, r := range s {
		if unicode.IsLower(r) || unicode.IsTitle(r) {
			return false
		}
		found = found || unicode.IsUpper(r)
	}
	return found
}

func isTitle(s string) bool {
	cased, found := false, false
	for _, r := range s {
		switch {
		case unicode.IsUpper(r) || unicode.IsTitle(r):
			if cased {
				return false
			}
			cased, found = true, true
		case unicode.IsLower(r):
			if !cased {
				return false
			}
			found = true
		default:
			cased = false
		}
	}
	return found
}
