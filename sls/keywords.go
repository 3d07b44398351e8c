package sls

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

// globalArgs are the arguments that every state takes and no function sees.
func globalArg(s string) bool {
	switch s {
	case "check_cmd", "cmd_opts_exclude", "failhard", "onlyif", "unless", "creates", "retry", "order", "parallel",
		"reload_modules", "reload_grains", "reload_pillar", "runas", "runas_password", "no_log", "fire_event",
		"saltenv", "umask", "use", "use_in", "listen_in", "onfail_stop", "aggregate", "provider", "timeout_state":
		return true
	}
	if _, ok := parseReqType(s); ok {
		return true
	}
	_, ok := reqIn(s)
	return ok
}
