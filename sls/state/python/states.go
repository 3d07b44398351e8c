package python

import (
	"corpus-git/sls/state/core"
)

// States adds the state functions of Python: pip, virtualenv, buildout.
func States(t *core.Table) {
	addVenv(t)
	addBuildout(t)
}
