package state

import (
	"errors"
	"io/fs"
	"strings"

	"corpus-git/internal/py"
)

// cronFile implements cron.file: a whole crontab from a source. Like Salt it makes of the present crontab a temporary
// file that belongs to the user, brings that to the new content, and installs it.
// Source: Salt documentation, cron state, file.
func cronFile(c *Call) Return {
	if !c.installed("crontab") {
		return Failf("crontab is not installed on this machine")
	}
	user := c.str("user", "root")
	own, ok := c.cronOwner(user)
	if !ok {
		return Failf("Could not identify group for user %s", user)
	}
	old, err := c.rawCrontab()
	if err != nil {
		return Failf("Unable to update user %s crontab. Error: %s", user, strings.Join(c.complaints(err), ""))
	}
	if !strings.HasSuffix(old, "\n") {
		old += "\n"
	}
	if !c.boolean("replace", true) { // Salt takes a user without a crontab for one whose crontab is an empty line
		return OKf("User %s already has a crontab. No changes made", user)
	}
	m := managed{path: c.Name, owner: own, follow: true}
	if fail := c.cronSource(&m); fail != "" {
		return Failf("%s", fail)
	}
	if c.Test {
		diff := diffText([]byte(old), m.data)
		if diff == "" {
			return OKf("Crontab for user %s is in the correct state", user)
		}
		ret := Would(nil, "The following values are set to be changed:\ndiff: %s\n", diff)
		ret.Diff = diff
		return ret
	}
	ret := c.changeTab(&m, old)
	switch {
	case ret.Result != True:
		return ret
	case !ret.Changes.Has("diff"):
		return OKf("Crontab for user %s is in the correct state", user)
	}
	if err := c.installCrontab(string(m.data)); err != nil {
		return Failf("Unable to update user %s crontab. Error: %s", user, strings.Join(c.complaints(err), ""))
	}
	ret.Comment = "Crontab for user " + user + " was updated"
	return ret
}

// cronOwner is the user with the first of the groups, in the order of the alphabet.
func (c *Call) cronOwner(name string) (owner, bool) {
	u, err := c.Host.Users.User(name)
	if err != nil {
		return owner{}, false
	}
	groups := c.groupsOf(u)
	if len(groups) == 0 {
		return owner{}, false
	}
	g, err := c.Host.Users.Group(groups[0])
	if err != nil {
		return owner{}, false
	}
	return owner{user: &u.UID, group: &g.GID, userName: name, grpName: groups[0]}, true
}

// cronSource reads the new crontab; what it says is Salt's complaint.
func (c *Call) cronSource(m *managed) string {
	from := *c
	from.Args = c.Args.Copy()
	for k, v := range map[string]string{"source": c.Name, "user": m.owner.userName, "group": m.owner.grpName, "mode": "0600"} {
		from.Args.SetStr(k, v)
	}
	from.Test = true // file.managed says more than cron.file
	_, err := from.sourceData(m)
	if bad := checksumError(""); errors.As(err, &bad) {
		return string(bad) + ". If the 'source_hash' value refers to a remote file with multiple possible matches, " +
			"then it may be necessary to set 'source_hash_name'."
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// changeTab brings a file with the old crontab to what the new one shall be, for what changes and for its backup.
func (c *Call) changeTab(m *managed, old string) Return {
	tmp, err := c.newScratch("", "corpus-cron-", "")
	if err != nil {
		return Failf("Unable to manage file: %s", why(err))
	}
	defer tmp.discard()
	_, err = tmp.WriteString(old)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return Failf("Unable to manage file: %s", why(err))
	}
	private := fs.FileMode(0o600)
	m.path, m.mode = tmp.name, &private
	ret := c.manage(*m)
	if ret.Changes == nil {
		ret.Changes = py.NewDict()
	}
	return ret
}
