package system

import (
	"corpus-git/sls/state/core"
)

// States adds the state functions of sysctl, of alternatives, of the modules of Apache, of debconf, of locales and of the time zone.
func States(t *core.Table) {
	addSysctl(t)
	addAlternatives(t)
	addApache(t)
	addDebconf(t)
	addLocale(t, "/")
	addTimezone(t, "/")
}
