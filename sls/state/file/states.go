package file

import (
	"corpus-git/sls/state/core"
)

// States adds the state functions of file.
func States(t *core.Table) {
	addFile(t)
	addFileEdit(t)
	addFileCopy(t)
	addFileLine(t)
	addConfigured(t)
}
