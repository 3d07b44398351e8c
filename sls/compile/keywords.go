package compile

import "slices"

// ReqType is a kind of requisite. The order of the constants is Salt's order of precedence.
// Source: Salt documentation, "Requisites and Other Global State Arguments".
type ReqType uint8

// The requisites.
const (
	ReqOnfail ReqType = iota
	ReqOnfailAny
	ReqOnfailAll
	ReqRequire
	ReqRequireAny
	ReqOnchanges
	ReqOnchangesAny
	ReqWatch
	ReqWatchAny
	ReqPrereq
	ReqListen
	ReqCount
)

func (t ReqType) String() string {
	return [...]string{"onfail", "onfail_any", "onfail_all", "require", "require_any", "onchanges",
		"onchanges_any", "watch", "watch_any", "prereq", "listen"}[t]
}

// Base returns the type without _any or _all.
func (t ReqType) Base() ReqType {
	switch t {
	case ReqOnfailAny, ReqOnfailAll:
		return ReqOnfail
	case ReqRequireAny:
		return ReqRequire
	case ReqOnchangesAny:
		return ReqOnchanges
	case ReqWatchAny:
		return ReqWatch
	}
	return t
}

// Any returns true if one good requisite is enough.
func (t ReqType) Any() bool {
	return t == ReqOnfailAny || t == ReqRequireAny || t == ReqOnchangesAny || t == ReqWatchAny
}

func parseReqType(s string) (ReqType, bool) {
	for t := ReqType(0); t < ReqCount; t++ {
		if t.String() == s {
			return t, true
		}
	}
	return 0, false
}

// reqIn maps the *_in forms to their type; listen_in is handled separately.
func reqIn(s string) (ReqType, bool) {
	switch s {
	case "require_in":
		return ReqRequire, true
	case "watch_in":
		return ReqWatch, true
	case "onfail_in":
		return ReqOnfail, true
	case "onchanges_in":
		return ReqOnchanges, true
	case "prereq_in":
		return ReqPrereq, true
	}
	return 0, false
}

// globalNames returns the arguments that every state accepts and no function sees, without requisites.
func globalNames() []string {
	return []string{"check_cmd", "cmd_opts_exclude", "failhard", "onlyif", "unless", "creates", "retry", "order", "parallel",
		"reload_modules", "reload_grains", "reload_pillar", "runas", "runas_password", "no_log", "fire_event",
		"saltenv", "umask", "use", "use_in", "listen_in", "onfail_stop", "aggregate", "provider"}
}

func globalArg(s string) bool {
	if _, ok := parseReqType(s); ok {
		return true
	}
	if _, ok := reqIn(s); ok {
		return true
	}
	return slices.Contains(globalNames(), s)
}

// Requisites returns the names of all requisites that a state may declare, including their _in forms.
// Source: Salt documentation, "Requisites and Other Global State Arguments".
func Requisites() []string {
	var out []string
	for t := ReqType(0); t < ReqCount; t++ {
		out = append(out, t.String())
		if _, ok := reqIn(t.String() + "_in"); ok {
			out = append(out, t.String()+"_in")
		}
	}
	return append(out, "listen_in", "use", "use_in")
}

// GlobalArguments returns the other arguments that every state accepts.
func GlobalArguments() []string {
	all := Requisites()
	return slices.DeleteFunc(globalNames(), func(s string) bool { return slices.Contains(all, s) })
}
