package system

import (
	"corpus-git/sls/state/core"
)

// States adds the state functions of sysctl and alternatives.
func States(t *core.Table) {
	addSysctl(t)
	addAlternatives(t)
}
