package cron

import (
	"errors"
	"io/fs"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/difflib"
	"corpus-git/sls/state/fetch"
	"corpus-git/sls/state/file"
)

// cronFile implements cron.file: a whole crontab from a source. Like Salt, it writes the current crontab to a
// temporary file owned by the user, changes that to the new content, and installs it.
// Source: Salt documentation, cron state, file.
func cronFile(c *core.Call) core.Return {
	if !c.Installed("crontab") {
		return core.Failf("crontab is not installed on this machine")
	}
	user := c.Str("user", "root")
	own, ok := cronOwner(c, user)
	if !ok {
		return core.Failf("Could not identify group for user %s", user)
	}
	old, err := rawCrontab(c)
	if err != nil {
		return core.Failf("Unable to update user %s crontab. Error: %s", user, strings.Join(c.Problems(err), ""))
	}
	if !strings.HasSuffix(old, "\n") {
		old += "\n"
	}
	if !c.Bool("replace", true) { // Salt treats a user without a crontab as one whose crontab is an empty line
		return core.OKf("User %s already has a crontab. No changes made", user)
	}
	m := file.Managed{Path: c.Name, Owner: own, Follow: true}
	if fail := cronSource(c, &m); fail != "" {
		return core.Failf("%s", fail)
	}
	if c.Test {
		diff := difflib.Text([]byte(old), m.Data)
		if diff == "" {
			return core.OKf("Crontab for user %s is in the correct state", user)
		}
		ret := core.Would(nil, "The following values are set to be changed:\ndiff: %s\n", diff)
		ret.Diff = diff
		return ret
	}
	ret := changeTab(c, &m, old)
	switch {
	case ret.Result != core.True:
		return ret
	case !ret.Changes.Has("diff"):
		return core.OKf("Crontab for user %s is in the correct state", user)
	}
	if err := installCrontab(c, string(m.Data)); err != nil {
		return core.Failf("Unable to update user %s crontab. Error: %s", user, strings.Join(c.Problems(err), ""))
	}
	ret.Comment = "Crontab for user " + user + " was updated"
	return ret
}

// cronOwner returns the user with the first of the groups, in alphabetical order.
func cronOwner(c *core.Call, name string) (core.Owner, bool) {
	u, err := c.Host.Users.User(name)
	if err != nil {
		return core.Owner{}, false
	}
	groups := c.GroupsOf(u)
	if len(groups) == 0 {
		return core.Owner{}, false
	}
	g, err := c.Host.Users.Group(groups[0])
	if err != nil {
		return core.Owner{}, false
	}
	return core.Owner{User: &u.UID, Group: &g.GID, UserName: name, GrpName: groups[0]}, true
}

// cronSource reads the new crontab; the string is Salt's error message.
func cronSource(c *core.Call, m *file.Managed) string {
	from := *c
	from.Args = c.Args.Copy()
	for k, v := range map[string]string{"source": c.Name, "user": m.Owner.UserName, "group": m.Owner.GrpName, "mode": "0600"} {
		from.Args.SetStr(k, v)
	}
	from.Test = true // file.managed reports more than cron.file
	_, err := file.SourceData(&from, m)
	if bad := fetch.ChecksumError(""); errors.As(err, &bad) {
		return string(bad) + ". If the 'source_hash' value refers to a remote file with multiple possible matches, " +
			"then it may be necessary to set 'source_hash_name'."
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// changeTab changes a file with the old crontab to the new one, for the reported changes and the backup.
func changeTab(c *core.Call, m *file.Managed, old string) core.Return {
	tmp, err := c.NewTempFile("", "corpus-cron-", "")
	if err != nil {
		return core.Failf("Unable to manage file: %s", core.Cause(err))
	}
	defer tmp.Discard()
	_, err = tmp.WriteString(old)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return core.Failf("Unable to manage file: %s", core.Cause(err))
	}
	private := fs.FileMode(0o600)
	m.Path, m.Mode = tmp.Name(), &private
	ret := file.Manage(c, *m)
	if ret.Changes == nil {
		ret.Changes = py.NewDict()
	}
	return ret
}
