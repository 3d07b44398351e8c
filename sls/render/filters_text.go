package render

import (
	"math/big"
	"regexp"
	"strings"
	"time"

	strftimelib "github.com/ncruces/go-strftime"

	"corpus-git/internal/py"
	"corpus-git/sls/jinja"
)

// shellSafe matches what shlex.quote keeps as it is.
var shellSafe = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

func textFilters() map[string]filter {
	return map[string]filter{
		"skip":                {decidesItself, 1, []string{"data"}, func(call) (any, error) { return "", nil }},
		"quote":               simple(quoteFilter),
		"to_num":              simple(toNum),
		"str_to_num":          simple(toNum),
		"to_bool":             {decidesItself, 1, []string{"val"}, toBool},
		"path_join":           {fn: pathJoin, required: 1, params: []string{"part", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"}},
		"contains_whitespace": simple(containsWhitespace),
		"is_hex": {undefined: decidesItself, required: 1, params: []string{"value"}, fn: func(c call) (any, error) {
			s, err := text(c.a[0])
			return err == nil && py.IntText(s, 16), nil
		}},
		"human_to_bytes": {undefined: decidesItself, fn: humanToBytes, required: 1, params: []string{"size", "default_unit", "handle_metric"}},
		"to_snake_case":  simple(snakeCase),
		"to_camelcase":   {fn: camelCase, required: 1, params: []string{"snake_input", "uppercamel"}},
		"strftime":       {fn: strftime, required: 1, params: []string{"date", "format"}},
		"date_format":    {fn: strftime, required: 1, params: []string{"date", "format"}},
	}
}

// quoteFilter is shlex.quote.
func quoteFilter(c call) (any, error) {
	some, err := py.TruthOf(c.a[0])
	if err != nil {
		return nil, err
	}
	if !some {
		return "''", nil
	}
	s, err := text(c.a[0])
	if err != nil {
		return nil, err
	}
	if err := c.Ops().Alloc(5 * len(s)); err != nil {
		return nil, err
	}
	if shellSafe.MatchString(s) {
		return c.a[0], nil
	}
	if m, ok := c.a[0].(jinja.Markup); ok { // what is added to it is escaped, the quotes included
		return jinja.Markup("&#39;") + jinja.Markup(strings.ReplaceAll(string(m), "'", `&#39;&#34;&#39;&#34;&#39;`)) + jinja.Markup("&#39;"), nil
	}
	return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'", nil
}

func toNum(c call) (any, error) {
	v := c.a[0]
	if s, err := text(v); err == nil {
		v = s
	}
	n, err := py.ToInt(v, 10)
	if !py.IsErr(err, py.ValueError) {
		return n, err
	}
	f, err := py.ToFloat(v)
	if py.IsErr(err, py.ValueError) {
		return c.a[0], nil
	}
	return f, err
}

func toBool(c call) (any, error) {
	switch x := c.a[0].(type) {
	case nil:
		return false, nil
	case bool:
		return x, nil
	case string, jinja.Markup:
		s, err := text(x)
		switch strings.ToLower(s) {
		case "yes", "1", "true":
			return true, err
		}
		return false, err
	case int64, *big.Int:
		order, err := c.Ops().Compare(x, int64(0), ">")
		return order == 1, err
	}
	if py.IsHashable(c.a[0]) {
		return false, nil
	}
	n, err := c.Ops().Len(c.a[0])
	return n > 0, err
}

// pathJoin joins parts, each normalised, below the first.
func pathJoin(c call) (any, error) {
	out := ""
	for i, p := range c.a {
		if !py.Given(p) {
			break
		}
		s, err := text(p)
		if err != nil {
			return nil, err
		}
		s = normPath(s)
		if i == 0 {
			out = s
			continue
		}
		s = strings.TrimLeft(s, "/")
		if out == "" || strings.HasSuffix(out, "/") {
			out += s
		} else {
			out += "/" + s
		}
		if err := c.Ops().Alloc(len(out)); err != nil {
			return nil, err
		}
	}
	return normPath(out), nil
}

// normPath is posixpath.normpath: two slashes at the beginning are kept.
func normPath(p string) string {
	if p == "" {
		return "."
	}
	root := ""
	if strings.HasPrefix(p, "/") {
		root = "/"
		if strings.HasPrefix(p, "//") && !strings.HasPrefix(p, "///") {
			root = "//"
		}
	}
	var parts []string
	for _, s := range strings.Split(p, "/") {
		switch {
		case s == "" || s == ".":
		case s != ".." || root == "" && len(parts) == 0 || len(parts) > 0 && parts[len(parts)-1] == "..":
			parts = append(parts, s)
		case len(parts) > 0:
			parts = parts[:len(parts)-1]
		}
	}
	if out := root + strings.Join(parts, "/"); out != "" {
		return out
	}
	return "."
}

func containsWhitespace(c call) (any, error) {
	if s, err := text(c.a[0]); err == nil {
		return strings.ContainsFunc(s, py.IsSpace), c.Ops().Touch(len(s))
	}
	items, err := c.Ops().Slice(c.a[0])
	if err != nil {
		return nil, err
	}
	for _, x := range items {
		s, err := text(x)
		if err != nil {
			return nil, py.Errorf(py.AttributeError, "'%s' object has no attribute 'isspace'", py.TypeName(x))
		}
		if s != "" && py.Strip(s) == "" {
			return true, nil
		}
	}
	return false, nil
}

func humanToBytes(c call) (any, error) {
	s, err := c.Ops().Str(c.a[0])
	if err != nil {
		return nil, err
	}
	s = py.Strip(s)
	n := 0
	for n < len(s) && (s[n] >= '0' && s[n] <= '9' || s[n] == '.') {
		n++
	}
	unit := strings.TrimFunc(s[n:], py.IsSpace)
	if unit == "" {
		if unit, err = text(c.given(1, "B")); err != nil {
			return nil, err
		}
	}
	unit = strings.ToLower(unit)
	var value any
	if value, err = py.ToInt(s[:n], 10); err != nil {
		if value, err = py.ToFloat(s[:n]); err != nil {
			return int64(0), nil
		}
	}
	power := strings.Index("bkmgtpezy", unit[:min(1, len(unit))])
	decimal := false
	switch {
	case unit == "" || power < 0:
		return int64(0), nil
	case power > 0 && unit[1:] == "b":
		if decimal, err = c.truth(2, false); err != nil {
			return nil, err
		}
	case len(unit) > 1 && (power == 0 || unit[1:] != "ib"):
		return int64(0), nil
	}
	factor := new(big.Int).Exp(big.NewInt(1024), big.NewInt(int64(power)), nil)
	if decimal {
		factor.Exp(big.NewInt(1000), big.NewInt(int64(power)), nil)
	}
	out, err := c.Ops().Mul(value, py.Norm(factor))
	if err != nil {
		return nil, err
	}
	return py.ToInt(out, 10)
}

func snakeCase(c call) (any, error) {
	s, err := text(c.a[0])
	if err != nil {
		return nil, err
	}
	if s == "" {
		return nil, py.Errorf(py.IndexError, "string index out of range")
	}
	if _, ok := c.a[0].(jinja.Markup); ok {
		return nil, notSupported("to_snake_case of Markup")
	}
	if err := c.Ops().Alloc(6 * len(s)); err != nil {
		return nil, err
	}
	in := []rune(s)
	var b strings.Builder
	for i, r := range in {
		one := string(r)
		if i > 0 && py.IsUpper(one) && (py.IsLower(string(in[i-1])) || i != len(in)-1 && py.IsLower(string(in[i+1]))) {
			b.WriteByte('_')
		}
		b.WriteString(py.Lower(one))
	}
	return b.String(), nil
}

func camelCase(c call) (any, error) {
	s, err := text(c.a[0])
	if err != nil {
		return nil, err
	}
	upper, err := c.truth(1, false)
	if err != nil {
		return nil, err
	}
	if err := c.Ops().Alloc(2 * len(s)); err != nil {
		return nil, err
	}
	words := strings.Split(s, "_")
	for i, w := range words {
		if i > 0 || upper {
			words[i] = py.Capitalize(w)
		}
	}
	return strings.Join(words, ""), nil
}

// strftime formats a number of seconds, in local time. Salt reads other dates only with timelib, which its packages do not
// include.
func strftime(c call) (any, error) {
	v := c.a[0]
	if s, err := text(v); err == nil {
		if n, ok := py.Digits(s); ok {
			v = n
		} else if v, err = py.ToFloat(s); err != nil {
			return nil, py.Errorf(py.RuntimeError, "the date cannot be read: Salt reads seconds alone without timelib")
		}
	}
	when := time.Now()
	if v != nil {
		f, err := py.ToFloat(v)
		if err != nil || f != f || f < -62135596800 || f >= 253402300800 {
			return nil, py.Errorf(py.RuntimeError, "the date cannot be read: Salt reads seconds alone without timelib")
		}
		sec := int64(f)
		when = time.Unix(sec, int64((f-float64(sec))*1e6+0.5)*1e3)
	}
	format, err := text(c.given(1, "%Y-%m-%d"))
	if err != nil {
		return nil, err
	}
	if err := c.Ops().Alloc(16 * len(format)); err != nil {
		return nil, err
	}
	// A date without a zone, as Python's here, has no name or offset of one.
	return strftimelib.Format(noZone.Replace(format), when), nil
}

var noZone = strings.NewReplacer("%%", "%%", "%Z", "", "%z", "")
