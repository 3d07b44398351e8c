package sls

import "slices"

// reqType is a kind of requisite. The order of the constants is Salt's order of precedence.
// Source: Salt documentation, "Requisites and Other Global State Arguments".
type reqType uint8

const (
	reqOnfail reqType = iota
	reqOnfailAny
	reqOnfailAll
	reqRequire
	reqRequireAny
	reqOnchanges
	reqOnchangesAny
	reqWatch
	reqWatchAny
	reqPrereq
	reqListen
	reqCount
)

func (t reqType) String() string {
	return [...]string{"onfail", "onfail_any", "onfail_all", "require", "require_any", "onchanges",
		"onchanges_any", "watch", "watch_any", "prereq", "listen"}[t]
}

// base is the type without _any or _all.
func (t reqType) base() reqType {
	switch t {
	case reqOnfailAny, reqOnfailAll:
		return reqOnfail
	case reqRequireAny:
		return reqRequire
	case reqOnchangesAny:
		return reqOnchanges
	case reqWatchAny:
		return reqWatch
	}
	return t
}

// any is true where one good requisite is enough.
func (t reqType) any() bool {
	return t == reqOnfailAny || t == reqRequireAny || t == reqOnchangesAny || t == reqWatchAny
}

func parseReqType(s string) (reqType, bool) {
	for t := reqType(0); t < reqCount; t++ {
		if t.String() == s {
			return t, true
		}
	}
	return 0, false
}

// reqIn maps the *_in forms to their type; listen_in is kept on its own.
func reqIn(s string) (reqType, bool) {
	switch s {
	case "require_in":
		return reqRequire, true
	case "watch_in":
		return reqWatch, true
	case "onfail_in":
		return reqOnfail, true
	case "onchanges_in":
		return reqOnchanges, true
	case "prereq_in":
		return reqPrereq, true
	}
	return 0, false
}

// globalNames are the arguments that every state takes and no function sees, requisites apart.
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

// Requisites are the names of all requisites that a state may declare, their _in forms among them.
// Source: Salt documentation, "Requisites and Other Global State Arguments".
func Requisites() []string {
	var out []string
	for t := reqType(0); t < reqCount; t++ {
		out = append(out, t.String())
		if _, ok := reqIn(t.String() + "_in"); ok {
			out = append(out, t.String()+"_in")
		}
	}
	return append(out, "listen_in", "use", "use_in")
}

// GlobalArguments are the other arguments that every state takes.
func GlobalArguments() []string {
	all := Requisites()
	return slices.DeleteFunc(globalNames(), func(s string) bool { return slices.Contains(all, s) })
}
