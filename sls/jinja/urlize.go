package jinja

import (
	"regexp"
	"sort"
	"strings"
	"sync"

	"corpus-git/internal/py"
)

// The expressions of jinja2.utils.urlize. Compiled once, when a template first asks; they are not written to.
var urlRE = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^((https?://|www\.)(([\pL\pN_%-]+\.)+)?([a-z]{2,63}|xn--[\pL\pN_%]{2,59})` +
		`|([\pL\pN_%-]{2,63}\.)+(com|net|int|edu|gov|org|info|mil)` +
		`|(https?://)((([\d]{1,3})(\.[\d]{1,3}){3})|(\[([\da-f]{0,4}:){2}([\da-f]{0,4}:?){1,6}])))` +
		`(?::[\d]{1,5})?(?:[/?#]\S*)?$`)
})

var (
	emailRE  = regexp.MustCompile(`^\S+@[\pL\pN_][\pL\pN_.-]*\.[\pL\pN_]+$`)
	headRE   = regexp.MustCompile(`^([(<]|&lt;)+`)
	tailRE   = regexp.MustCompile(`([)>.,\n]|&gt;)+$`)
	schemeRE = regexp.MustCompile(`^[\pL\pN_.+-]{2,}:/{0,2}$`)
)

func filterURLize(c *Context, v any, args []any, kw *py.Dict) (any, error) {
	a, err := params("urlize", args, kw, 0, "trim_url_limit", "nofollow", "target", "rel", "extra_schemes")
	if err != nil {
		return nil, err
	}
	ops := c.rt.ops
	rels := map[string]bool{"noopener": true}
	if r := or(a[3], nil); r != nil {
		s, err := needText(r)
		if err != nil {
			return nil, err
		}
		for _, p := range strings.Fields(s) {
			rels[p] = true
		}
	}
	nofollow, err := truthArg(a[1], false)
	if err != nil {
		return nil, err
	}
	if nofollow {
		rels["nofollow"] = true
	}
	var list []string
	for r := range rels {
		list = append(list, r)
	}
	sort.Strings(list)
	u := urlizer{limit: -1, attrs: ` rel="` + escapeHTML(strings.Join(list, " ")) + `"`}
	if t := or(a[2], nil); t != nil {
		e, err := escape(ops, t)
		if err != nil {
			return nil, err
		}
		u.attrs += ` target="` + string(e) + `"`
	}
	if n := or(a[0], nil); n != nil {
		limit, err := py.Index(n)
		if err != nil {
			return nil, err
		}
		u.limit = int(max(min(limit, 1<<30), 0))
	}
	if s := or(a[4], nil); s != nil {
		schemes, err := iterate(c, s)
		if err != nil {
			return nil, err
		}
		for _, s := range schemes {
			scheme, err := needText(s)
			if err != nil {
				return nil, err
			}
			if !schemeRE.MatchString(scheme) {
				return nil, raise(ClassFilterArg, "an extra scheme is not a valid URI scheme prefix.")
			}
			u.schemes = append(u.schemes, scheme)
		}
	}
	text, err := escape(ops, v)
	if err != nil {
		return nil, err
	}
	if err := ops.Alloc(20 * len(text)); err != nil {
		return nil, err
	}
	return escapeAsks.safe(c.rt, u.run(string(text))), nil
}

type urlizer struct {
	limit   int
	attrs   string
	schemes []string
}

func (u *urlizer) run(text string) string {
	var b strings.Builder
	for text != "" {
		end := 0
		space := spaceLen(text) > 0
		for end < len(text) && spaceLen(text[end:]) > 0 == space {
			end += max(spaceLen(text[end:]), 1)
		}
		if space {
			b.WriteString(text[:end])
		} else {
			b.WriteString(u.word(text[:end]))
		}
		text = text[end:]
	}
	return b.String()
}

func (u *urlizer) trim(s string) string {
	if u.limit >= 0 && py.StrLen(s) > u.limit {
		r := []rune(s)
		return string(r[:u.limit]) + "..."
	}
	return s
}

func (u *urlizer) word(w string) string {
	head, tail := headRE.FindString(w), ""
	middle := w[len(head):]
	if loc := tailRE.FindStringIndex(middle); loc != nil {
		middle, tail = middle[:loc[0]], middle[loc[0]:]
	}
	for _, p := range [...][2]string{{"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}} {
		opens := strings.Count(middle, p[0])
		if opens <= strings.Count(middle, p[1]) {
			continue
		}
		for range min(opens, strings.Count(tail, p[1])) {
			end := strings.Index(tail, p[1]) + len(p[1])
			middle += tail[:end]
			tail = tail[end:]
		}
	}
	switch {
	case urlRE().MatchString(middle):
		href := middle
		if !strings.HasPrefix(middle, "https://") && !strings.HasPrefix(middle, "http://") {
			href = "https://" + middle
		}
		middle = `<a href="` + href + `"` + u.attrs + `>` + u.trim(middle) + `</a>`
	case strings.HasPrefix(middle, "mailto:") && emailRE.MatchString(middle[7:]):
		middle = `<a href="` + middle + `">` + middle[7:] + `</a>`
	case strings.Contains(middle, "@") && !strings.HasPrefix(middle, "www.") && !strings.HasPrefix(middle, "@") &&
		!strings.Contains(middle, ":") && emailRE.MatchString(middle):
		middle = `<a href="mailto:` + middle + `">` + middle + `</a>`
	default:
		for _, s := range u.schemes {
			if middle != s && strings.HasPrefix(middle, s) {
				middle = `<a href="` + middle + `"` + u.attrs + `>` + middle + `</a>`
			}
		}
	}
	return head + middle + tail
}
