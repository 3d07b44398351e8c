package account

import (
	"corpus-git/sls/state/core"
)

// States adds the state functions of accounts: user, group, ssh_auth, webutil (htpasswd).
func States(t *core.Table) {
	addUser(t)
	addGroup(t)
	addSSHAuth(t)
	addKnownHosts(t)
	addWebutil(t)
}
