package command

import (
	"corpus-git/sls/state/core"
)

// States adds the state functions of cmd, module and test.
func States(t *core.Table) {
	addCmd(t)
	addModule(t)
	addTest(t)
}
