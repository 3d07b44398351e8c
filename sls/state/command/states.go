package command

import (
	"corpus-git/sls/state/core"
)

// States adds the state functions of cmd, module and test, and corpus.output.
func States(t *core.Table) {
	addCmd(t)
	addModule(t)
	addTest(t)
	addOutput(t)
	addWait(t)
}
