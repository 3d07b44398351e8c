package project

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"corpus-git/internal/py"
	"corpus-git/internal/quantity"
	"corpus-git/project/permission"
)

const checksKey = "checks"

// Limits of checks: values beyond them are probably typos.
const (
	maxChecks        = 100
	maxCheckAttempts = 1000
	maxCheckTime     = 24 * time.Hour
	minCheckInterval = time.Second
)

// NewCheck returns a check of a kind and target, with the defaults of everything else.
func NewCheck(kind CheckKind, target string) Check {
	c := defaultCheck()
	c.Kind, c.Target = kind, target
	return c
}

// defaultCheck returns the check for an entry that gives its kind and target only.
func defaultCheck() Check {
	return Check{
		HTTP:     HTTPCheck{Method: http.MethodGet, Status: []StatusRange{{200, 299}}},
		MinValid: 14 * quantity.Day, Attempts: 10, Every: time.Second, Timeout: 5 * time.Second,
		On: []CheckOccasion{OnDeploy, OnRollback, OnConverge},
	}
}

// Checks returns the checks of the key checks, in its order.
func (c *Cfg) Checks() []Check { return c.checkList }

// checks reads and validates the key of the same name, after references in it are resolved.
func (c *Cfg) checks() error {
	top := c.root.get([]string{checksKey})
	if top == nil || top.sub == nil && top.value == nil {
		return nil
	}
	if top.sub == nil {
		return checkError(top.layer, "must be a mapping of names, not "+py.TypeName(top.value), checksKey)
	}
	var err error
	top.sub.each(func(l *leaf) {
		if err != nil {
			return
		}
		name, ok := l.key.(string)
		switch {
		case !ok || !checkName.MatchString(name):
			err = checkError(l.nearest(top.layer), "a name has at most 64 of A-Z a-z 0-9 . _ -", checksKey, py.Str(l.key))
		case l.sub == nil && l.value == nil:
			// null in a later layer removes a check
		case l.sub == nil:
			err = checkError(l.layer, "must be a mapping", checksKey, name)
		default:
			var check Check
			if check, err = readCheck(name, l); err == nil {
				c.checkList = append(c.checkList, check)
			}
		}
	})
	if err == nil && len(c.checkList) > maxChecks {
		err = checkError(top.layer, fmt.Sprintf("there are %d, at most %d are allowed", len(c.checkList), maxChecks), checksKey)
	}
	return err
}

var checkName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

func checkError(l Layer, says string, keys ...string) error {
	e := cfgError(l, keys[0], "%s", says)
	e.Err = &KeyError{Keys: keys, Text: says}
	return e.WithHint("as in  checks: {home: {http: 'http://127.0.0.1:8080/', contains: Welcome, attempts: 20}}")
}

// readCheck reads one check: its kind and target, then the keys of its kind and those of all kinds.
func readCheck(name string, l *leaf) (Check, error) {
	c := defaultCheck()
	c.Name = name
	var keys []string
	layer := l.nearest(l.layer)
	l.sub.each(func(k *leaf) {
		if k.sub == nil && k.value == nil {
			return // null in a later layer removes a key
		}
		s, _ := k.key.(string)
		keys = append(keys, s)
		if slices.Contains(CheckKinds(), CheckKind(s)) {
			c.Kind = CheckKind(s)
		}
	})
	kinds := 0
	for _, k := range keys {
		if slices.Contains(CheckKinds(), CheckKind(k)) {
			kinds++
		}
	}
	if kinds != 1 {
		return c, checkError(layer, "must have one of "+kindList(), checksKey, name)
	}
	var err error
	l.sub.each(func(k *leaf) {
		if err != nil || k.sub == nil && k.value == nil {
			return
		}
		key := checkKey(k.key)
		if says := c.set(key, k); says != "" {
			err = checkError(k.nearest(layer), says, checksKey, name, key)
		}
	})
	if err != nil {
		return c, err
	}
	if says := c.settled(); says != "" {
		return c, checkError(layer, says, checksKey, name)
	}
	return c, nil
}

// checkKey returns a key as it was written, since YAML 1.1 reads a bare on as true.
func checkKey(key any) string {
	if key == true {
		return "on"
	}
	return py.Str(key)
}

func kindList() string {
	var out []string
	for _, k := range CheckKinds() {
		out = append(out, string(k))
	}
	return strings.Join(out, ", ")
}

// checkSetter reads the value of one key into a check, and returns what is wrong with it.
type checkSetter func(c *Check, l *leaf) string

// checkKeys returns the keys that checks of a kind accept in addition to the key of the kind itself.
func checkKeys(kind CheckKind) map[string]checkSetter {
	keys := map[string]checkSetter{
		"start_after": durationOf(func(c *Check) *time.Duration { return &c.StartAfter }, 0),
		"every":       durationOf(func(c *Check) *time.Duration { return &c.Every }, 0),
		"timeout":     durationOf(func(c *Check) *time.Duration { return &c.Timeout }, time.Millisecond),
		"also_after":  durationOf(func(c *Check) *time.Duration { return &c.AlsoAfter }, 0),
		"attempts":    setAttempts,
		"on":          setOccasions,
		string(kind):  setTarget,
	}
	text := func(key string, to func(*Check) *string) { keys[key] = textOf(to) }
	switch kind {
	case CheckHTTP:
		text("method", func(c *Check) *string { return &c.HTTP.Method })
		text("body", func(c *Check) *string { return &c.HTTP.Body })
		text("contains", func(c *Check) *string { return &c.HTTP.Contains })
		text("resolve", func(c *Check) *string { return &c.HTTP.Resolve })
		text("socket", func(c *Check) *string { return &c.HTTP.Socket })
		text("tls_name", func(c *Check) *string { return &c.TLSName })
		text("ca", func(c *Check) *string { return &c.CA })
		keys["headers"], keys["status"], keys["json"], keys["follow"] = setHeaders, setStatus, setJSON, setFollow
	case CheckCertificate:
		text("tls_name", func(c *Check) *string { return &c.TLSName })
		text("ca", func(c *Check) *string { return &c.CA })
		keys["days"] = setDays
	case CheckCommand:
		text("user", func(c *Check) *string { return &c.User })
	}
	return keys
}

func (c *Check) set(key string, l *leaf) string {
	keys := checkKeys(c.Kind)
	if f := keys[key]; f != nil {
		return f(c, l)
	}
	var names []string
	for k := range keys {
		names = append(names, k)
	}
	slices.Sort(names)
	if slices.Contains(CheckKinds(), CheckKind(key)) {
		return "a check has one kind: it is " + string(c.Kind) + " already"
	}
	return "unknown key; a check of kind " + string(c.Kind) + " takes " + strings.Join(names, ", ")
}

func textOf(to func(*Check) *string) checkSetter {
	return func(c *Check, l *leaf) string {
		s, ok := l.value.(string)
		if !ok || s == "" || strings.ContainsRune(s, 0) {
			return "must be a text"
		}
		*to(c) = s
		return ""
	}
}

func durationOf(to func(*Check) *time.Duration, least time.Duration) checkSetter {
	return func(c *Check, l *leaf) string {
		d, ok := checkDuration(l.value)
		if !ok || d < least || d > maxCheckTime {
			return "must be a duration such as 500ms, 5s or 2m, at most " + quantity.FormatDuration(maxCheckTime)
		}
		*to(c) = d
		return ""
	}
}

// checkDuration parses 5s, and plain numbers such as 5 and 0.5 as seconds.
func checkDuration(v any) (time.Duration, bool) {
	switch x := v.(type) {
	case int64:
		return time.Duration(x) * time.Second, x >= 0 && x <= int64(maxCheckTime/time.Second)
	case float64:
		return time.Duration(x * float64(time.Second)), x >= 0 && x <= maxCheckTime.Seconds()
	case string:
		d, err := quantity.ParseDuration(x)
		return d, err == nil
	}
	return 0, false
}

func setAttempts(c *Check, l *leaf) string {
	n, ok := asInt(l.value)
	if !ok || n < 1 || n > maxCheckAttempts {
		return fmt.Sprintf("must be an integer from 1 to %d", maxCheckAttempts)
	}
	c.Attempts = int(n)
	return ""
}

// setOccasions reads  on: [deploy, rollback, converge, every: 1m].
func setOccasions(c *Check, l *leaf) string {
	bad := "must be a list of deploy, rollback, converge and  every: DURATION"
	items := []any{l.value}
	if list, ok := l.value.(*py.List); ok {
		items = list.Items()
	} else if l.sub != nil {
		items = []any{l.sub.dict()}
	}
	c.On, c.Interval = nil, 0
	for _, x := range items {
		switch x := x.(type) {
		case string:
			o := CheckOccasion(x)
			if o != OnDeploy && o != OnRollback && o != OnConverge {
				return bad
			}
			if !c.Runs(o) {
				c.On = append(c.On, o)
			}
		case *py.Dict:
			v, ok := x.GetStr("every")
			if !ok || x.Len() != 1 {
				return bad
			}
			d, ok := checkDuration(v)
			if !ok || d < minCheckInterval || d > 30*maxCheckTime {
				return "every must be a duration of at least " + quantity.FormatDuration(minCheckInterval)
			}
			c.Interval = d
		default:
			return bad
		}
	}
	return ""
}

func setTarget(c *Check, l *leaf) string {
	s, ok := l.value.(string)
	if !ok || strings.TrimSpace(s) == "" || strings.ContainsRune(s, 0) {
		return "must be a text"
	}
	c.Target = s
	switch c.Kind {
	case CheckHTTP:
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
			return "must be an address such as http://127.0.0.1:8080/health; a user and password go into headers"
		}
	case CheckTCP, CheckCertificate:
		if c.Kind == CheckCertificate && !strings.Contains(s, ":") {
			c.Target = s + ":443"
		}
		if !hostPort(c.Target) {
			return "must be HOST:PORT"
		}
	case CheckUnix:
		if !strings.HasPrefix(s, "/") || len(s) > 107 {
			return "must be an absolute path of at most 107 bytes"
		}
	case CheckUnit:
		if len(s) > maxUnit || !unitName.MatchString(s) {
			return "must be the name of a systemd unit, such as app.service"
		}
	}
	return ""
}

// maxUnit is the length of a unit's name at most. In the expressions it would cost each start of the program that they are compiled, a fifth of a millisecond each.
const maxUnit = 255

// unitName is what systemd.unit(5) allows, with or without a type suffix.
var unitName = regexp.MustCompile(`^[A-Za-z0-9:_.\\][A-Za-z0-9:_.\\@-]*$`)

func hostPort(s string) bool {
	host, port, err := net.SplitHostPort(s)
	n, perr := strconv.Atoi(port)
	return err == nil && perr == nil && host != "" && n > 0 && n < 1<<16
}

func setHeaders(c *Check, l *leaf) string {
	bad := "must be a mapping of header names and texts"
	if l.sub == nil {
		return bad
	}
	says := ""
	c.HTTP.Headers = nil
	l.sub.each(func(h *leaf) {
		name, ok := h.key.(string)
		if !ok || h.sub != nil || !headerName.MatchString(name) {
			says = bad
			return
		}
		if h.value == nil {
			return
		}
		v := py.Str(h.value)
		if strings.ContainsAny(v, "\r\n\x00") {
			says = bad
			return
		}
		c.HTTP.Headers = append(c.HTTP.Headers, Header{textproto.CanonicalMIMEHeaderKey(name), v})
	})
	return says
}

var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$") // token, RFC 9110 section 5.6.2

// setStatus reads 200, 2xx, 200-299, or a list of them.
func setStatus(c *Check, l *leaf) string {
	items := []any{l.value}
	if list, ok := l.value.(*py.List); ok {
		items = list.Items()
	}
	c.HTTP.Status = nil
	for _, x := range items {
		r, ok := statusRange(x)
		if !ok {
			return "must be a status such as 200, 2xx or 200-204, or a list of them"
		}
		c.HTTP.Status = append(c.HTTP.Status, r)
	}
	if len(c.HTTP.Status) == 0 {
		return "must name a status"
	}
	return ""
}

func statusRange(v any) (StatusRange, bool) {
	s := py.Str(v)
	if len(s) == 3 && s[0] >= '1' && s[0] <= '5' && strings.EqualFold(s[1:], "xx") {
		n := int(s[0]-'0') * 100
		return StatusRange{n, n + 99}, true
	}
	first, last, isRange := strings.Cut(s, "-")
	if !isRange {
		last = first
	}
	a, err := strconv.Atoi(first)
	b, err2 := strconv.Atoi(last)
	return StatusRange{a, b}, err == nil && err2 == nil && a >= 100 && b <= 599 && a <= b
}

// setJSON reads a mapping of paths and values.
func setJSON(c *Check, l *leaf) string {
	if l.sub == nil {
		return "must be a mapping of paths, such as db.state or items[0].name, and values"
	}
	says := ""
	c.HTTP.JSON = nil
	l.sub.each(func(j *leaf) {
		path, ok := j.key.(string)
		if !ok || !jsonPath.MatchString(path) {
			says = "a path is names and [numbers], such as db.state or items[0].name"
			return
		}
		if j.sub != nil {
			says = "the value of a path must be a text, a number, true, false or null"
			return
		}
		switch j.value.(type) {
		case nil, string, bool, int64, float64:
		default:
			says = "the value of a path must be a text, a number, true, false or null"
			return
		}
		text, err := json.Marshal(j.value)
		if err != nil {
			says = "the value of a path must be a text, a number, true, false or null"
			return
		}
		c.HTTP.JSON = append(c.HTTP.JSON, JSONValue{path, string(text)})
	})
	return says
}

var jsonPath = regexp.MustCompile(`^(\[\d{1,6}\]|[^.\[\]]+)(\[\d{1,6}\]|\.[^.\[\]]+)*$`)

func setFollow(c *Check, l *leaf) string {
	b, ok := l.value.(bool)
	if !ok {
		return "must be true or false"
	}
	c.HTTP.Follow = b
	return ""
}

func setDays(c *Check, l *leaf) string {
	n, ok := asInt(l.value)
	if !ok || n < 0 || n > 3650 {
		return "must be an integer from 0 to 3650"
	}
	c.MinValid = time.Duration(n) * quantity.Day
	return ""
}

// settled checks that the keys of a check are consistent with each other.
func (c *Check) settled() string {
	h := c.HTTP
	switch {
	case h.Socket != "" && h.Resolve != "":
		return "socket and resolve exclude each other"
	case h.Socket != "" && !strings.HasPrefix(h.Socket, "/"):
		return "socket must be an absolute path"
	case c.CA != "" && !strings.HasPrefix(c.CA, "/"):
		return "ca must be an absolute path"
	case !headerName.MatchString(h.Method):
		return "method must be one such as GET or POST"
	case c.User != "" && !permission.ValidAccount(c.User):
		return "user must be the name of an account"
	case c.Longest() > maxCheckTime:
		return "all attempts together take more than " + quantity.FormatDuration(maxCheckTime)
	}
	return ""
}
