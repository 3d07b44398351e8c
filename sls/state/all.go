package state

import (
	"sync"

	"corpus-git/sls/state/account"
	"corpus-git/sls/state/archive"
	"corpus-git/sls/state/command"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/cron"
	"corpus-git/sls/state/file"
	"corpus-git/sls/state/git"
	"corpus-git/sls/state/pkg"
	"corpus-git/sls/state/pkgrepo"
	"corpus-git/sls/state/python"
	"corpus-git/sls/state/service"
	"corpus-git/sls/state/system"
)

// All returns the table of every state function that is built in: this is the only list of
// families. It is the same table each time, and nothing changes it.
func All() *core.Table { return table() }

// table is made once, because that takes longer than compiling a small file.
var table = sync.OnceValue(func() *core.Table {
	return core.NewTable(
		account.States,
		archive.States,
		command.States,
		cron.States,
		file.States,
		git.States,
		pkg.States,
		pkgrepo.States,
		python.States,
		service.States,
		system.States,
	)
})
