package state

import (
	"errors"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
)

// addAccount adds Salt's user and group modules, through the shadow utilities.
func addAccount(t *Table) {
	t.add("group.present", "gid system addusers delusers members non_unique local~", groupPresent)
	t.add("group.absent", "local~", groupAbsent)
	t.add("user.present", "uid gid usergroup gid_from_name groups optional_groups remove_groups home createhome password hash_password "+
		"enforce_password empty_password shell unique system fullname roomnumber~ workphone~ homephone~ other~ nologinit~ "+
		"allow_uid_change allow_gid_change password_lock~ local~ persist_home? loginclass? date~ mindays~ maxdays~ inactdays~ "+
		"warndays~ expire~ win_homedrive? win_profile? win_logonscript? win_description?", userPresent)
	t.add("user.absent", "purge force local~", userAbsent)
}

func stringList(l []string) *py.List {
	out := py.NewList()
	for _, s := range l {
		out.Append(s)
	}
	return out
}

func groupPresent(c *Call) Return {
	gid := c.str("gid", "")
	g, err := c.Host.Users.Group(c.Name)
	if err != nil && !errors.Is(err, host.ErrNoAccount) {
		return Failf("%s", err)
	}
	if err != nil {
		if c.Test {
			return Would(nil, "Group %s set to be added", c.Name)
		}
		argv := []string{"groupadd"}
		if gid != "" {
			argv = append(argv, "-g", gid)
		}
		if c.boolean("non_unique", false) {
			argv = append(argv, "-o")
		}
		if c.boolean("system", false) {
			argv = append(argv, "-r")
		}
		if _, err := c.tool(append(argv, c.Name)...); err != nil {
			return Failf("Failed to create new group %s: %s", c.Name, err)
		}
		if r := c.groupMembers(host.Group{Name: c.Name}); r.Result == False {
			return r
		}
		g, err = c.Host.Users.Group(c.Name)
		if err != nil {
			return Failf("%s", err)
		}
		return Return{Result: True, Comment: "New group " + c.Name + " created",
			Changes: py.NewDict("name", g.Name, "passwd", "x", "gid", int64(g.GID), "members", stringList(g.Members))}
	}
	ret := Return{Result: True}
	if gid != "" && gid != strconv.Itoa(g.GID) {
		n, err := strconv.ParseInt(gid, 10, 64)
		if err != nil {
			return Failf("Invalid gid")
		}
		ret.Set("gid", n)
		if !c.Test {
			if _, err := c.tool("groupmod", "-g", gid, c.Name); err != nil {
				return Failf("Some changes could not be applied: %s", err)
			}
		}
	}
	m := c.groupMembers(g)
	if m.Result == False {
		return m
	}
	for _, e := range m.Changes.Items() {
		ret.Set(py.Str(e.Key), e.Value)
	}
	switch {
	case !ret.Changed():
		ret.Comment = "Group " + c.Name + " is present and up to date"
	case c.Test:
		ret.Result = None
		ret.Comment = "The following group attributes are set to be changed:\n" + changeLines(ret.Changes)
		ret.Changes = nil
	default:
		ret.Comment = "The following group attributes are set to be changed:\n" + changeLines(ret.Changes)
	}
	return ret
}

func changeLines(d *py.Dict) string {
	var b strings.Builder
	for _, e := range d.Items() {
		b.WriteString(py.Str(e.Key) + ": " + py.Str(e.Value) + "\n")
	}
	return b.String()
}

// groupMembers adds and removes members.
func (c *Call) groupMembers(g host.Group) Return {
	ret := Return{Result: True}
	for _, u := range c.strs("addusers") {
		if slices.Contains(c.strs("delusers"), u) {
			return Failf("Error. Same user(s) can not be added and deleted simultaneously")
		}
	}
	want := slices.Clone(g.Members)
	if c.has("members") {
		want = c.strs("members")
	}
	for _, u := range c.strs("addusers") {
		if !slices.Contains(want, u) {
			want = append(want, u)
		}
	}
	for _, u := range c.strs("delusers") {
		want = slices.DeleteFunc(want, func(x string) bool { return x == u })
	}
	sort.Strings(want)
	have := slices.Clone(g.Members)
	sort.Strings(have)
	if slices.Equal(want, have) {
		return ret
	}
	ret.Set("members", stringList(want))
	if c.Test {
		return ret
	}
	if _, err := c.tool("gpasswd", "-M", strings.Join(want, ","), g.Name); err != nil {
		return Failf("Failed to set the members of group %s: %s", g.Name, err)
	}
	return ret
}

func groupAbsent(c *Call) Return {
	if _, err := c.Host.Users.Group(c.Name); err != nil {
		if errors.Is(err, host.ErrNoAccount) {
			return OKf("Group not present")
		}
		return Failf("%s", err)
	}
	if c.Test {
		return Would(nil, "Group %s is set for removal", c.Name)
	}
	if _, err := c.tool("groupdel", c.Name); err != nil {
		return Failf("Failed to remove group %s: %s", c.Name, err)
	}
	return Return{Result: True, Comment: "Removed group " + c.Name, Changes: py.NewDict(c.Name, "")}
}

// wanted is what user.present asks for.
type wanted struct {
	uid, gid, home, shell, gecos string
	groups                       []string
	hasGroups                    bool
	password                     *string
}

func (c *Call) wantedUser() (wanted, string) {
	w := wanted{uid: c.str("uid", ""), home: c.str("home", ""), shell: c.str("shell", ""), gid: c.str("gid", "")}
	if c.boolean("gid_from_name", false) || c.boolean("usergroup", false) && c.has("usergroup") {
		if g, err := c.Host.Users.Group(c.Name); err == nil {
			w.gid = strconv.Itoa(g.GID)
		} else if c.boolean("gid_from_name", false) && !c.Test {
			return w, "Default group with name \"" + c.Name + "\" is not present"
		}
	}
	if w.gid != "" && !isNumber(w.gid) {
		g, err := c.Host.Users.Group(w.gid)
		if err != nil {
			if !c.Test {
				return w, "Default group with name \"" + w.gid + "\" is not present"
			}
		} else {
			w.gid = strconv.Itoa(g.GID)
		}
	}
	w.gecos = c.str("fullname", "")
	if c.has("groups") {
		w.hasGroups = true
		for _, g := range c.strs("groups") {
			if _, err := c.Host.Users.Group(g); err != nil && !c.Test {
				return w, "The following group(s) are not present: " + g
			}
			w.groups = append(w.groups, g)
		}
	}
	for _, g := range c.strs("optional_groups") {
		if _, err := c.Host.Users.Group(g); err == nil && !slices.Contains(w.groups, g) {
			w.groups, w.hasGroups = append(w.groups, g), true
		}
	}
	if c.has("password") {
		p := c.str("password", "")
		w.password = &p
	}
	if c.boolean("empty_password", false) {
		p := ""
		w.password = &p
	}
	if c.boolean("hash_password", false) {
		return w, "hash_password is not supported: give the hash itself"
	}
	return w, ""
}

// userPresent implements user.present. Source: Salt documentation, user state.
func userPresent(c *Call) Return {
	w, fail := c.wantedUser()
	if fail != "" {
		return Failf("%s", fail)
	}
	u, err := c.Host.Users.User(c.Name)
	if err != nil && !errors.Is(err, host.ErrNoAccount) {
		return Failf("%s", err)
	}
	if err != nil {
		return c.userAdd(w)
	}
	return c.userUpdate(u, w)
}

func (c *Call) userAdd(w wanted) Return {
	if c.Test {
		return Would(nil, "User %s set to be added", c.Name)
	}
	argv := []string{"useradd"}
	opt := func(flag, v string) {
		if v != "" {
			argv = append(argv, flag, v)
		}
	}
	opt("-s", w.shell)
	opt("-u", w.uid)
	opt("-g", w.gid)
	opt("-d", w.home)
	opt("-c", w.gecos)
	opt("-G", strings.Join(w.groups, ","))
	if c.boolean("system", false) {
		argv = append(argv, "-r")
	}
	if c.boolean("createhome", true) {
		argv = append(argv, "-m")
	} else {
		argv = append(argv, "-M")
	}
	if !c.boolean("unique", true) {
		argv = append(argv, "-o")
	}
	if v, ok := c.val("usergroup"); ok && w.gid == "" {
		argv = append(argv, map[bool]string{true: "-U", false: "-N"}[py.Truth(v)])
	}
	if _, err := c.tool(append(argv, c.Name)...); err != nil {
		return Failf("Failed to create new user %s: %s", c.Name, err)
	}
	if w.password != nil {
		if err := c.setPassword(*w.password); err != nil {
			return Failf("User %s created but failed to set password: %s", c.Name, err)
		}
	}
	u, err := c.Host.Users.User(c.Name)
	if err != nil {
		return Failf("%s", err)
	}
	ret := Return{Result: True, Comment: "New user " + c.Name + " created"}
	ret.Set("name", u.Name)
	ret.Set("uid", int64(u.UID))
	ret.Set("gid", int64(u.GID))
	ret.Set("groups", stringList(c.groupsOf(u)))
	ret.Set("home", u.Home)
	ret.Set("shell", u.Shell)
	ret.Set("fullname", u.Gecos)
	if w.password != nil {
		ret.Set("passwd", "XXX-REDACTED-XXX")
	}
	return ret
}

// setPassword goes through standard input: an argument could be seen by others.
func (c *Call) setPassword(hash string) error {
	q := *c
	q.Output = nil
	_, err := q.toolAs(host.Shell{Argv: []string{"chpasswd", "-e"}, Stdin: c.Name + ":" + hash + "\n"})
	return err
}

func (c *Call) groupsOf(u host.User) []string {
	ids, err := c.Host.Users.GroupsOf(u)
	if err != nil {
		return nil
	}
	var out []string
	for _, id := range ids {
		out = append(out, c.groupName(id))
	}
	sort.Strings(out)
	return out
}

func (c *Call) userUpdate(u host.User, w wanted) Return {
	ch := py.NewDict()
	var argv []string
	set := func(key, flag, want, have string, v any) {
		if want != "" && want != have {
			ch.SetStr(key, v)
			argv = append(argv, flag, want)
		}
	}
	if w.uid != "" && w.uid != strconv.Itoa(u.UID) && !c.boolean("allow_uid_change", false) {
		return Failf("Encountered error checking for needed changes. Changing uid (%d -> %s) not permitted, set allow_uid_change to True to force this change. Note that this will not change file ownership.", u.UID, w.uid)
	}
	set("uid", "-u", w.uid, strconv.Itoa(u.UID), w.uid)
	if w.gid != "" && w.gid != strconv.Itoa(u.GID) && !c.boolean("allow_gid_change", false) {
		return Failf("Encountered error checking for needed changes. Changing gid (%d -> %s) not permitted, set allow_gid_change to True to force this change. Note that this will not change file ownership.", u.GID, w.gid)
	}
	set("gid", "-g", w.gid, strconv.Itoa(u.GID), w.gid)
	set("home", "-d", w.home, u.Home, w.home)
	set("shell", "-s", w.shell, u.Shell, w.shell)
	set("fullname", "-c", w.gecos, strings.SplitN(u.Gecos, ",", 2)[0], w.gecos)
	if w.hasGroups {
		primary := c.groupName(u.GID)
		have := slices.DeleteFunc(c.groupsOf(u), func(g string) bool { return g == primary })
		want := slices.Clone(w.groups)
		if !c.boolean("remove_groups", true) {
			for _, g := range have {
				if !slices.Contains(want, g) {
					want = append(want, g)
				}
			}
		}
		want = slices.DeleteFunc(want, func(g string) bool { return g == primary })
		sort.Strings(want)
		if !slices.Equal(want, have) {
			ch.SetStr("groups", stringList(want))
			argv = append(argv, "-G", strings.Join(want, ","))
		}
	}
	newPassword := w.password != nil && c.boolean("enforce_password", true) && c.shadow() != *w.password
	if newPassword {
		ch.SetStr("passwd", "XXX-REDACTED-XXX")
	}
	if ch.Len() == 0 {
		return OKf("User %s is present and up to date", c.Name)
	}
	if c.Test {
		return Would(nil, "The following user attributes are set to be changed:\n%s", changeLines(ch))
	}
	if len(argv) > 0 {
		if _, err := c.tool(append(append([]string{"usermod"}, argv...), c.Name)...); err != nil {
			return Failf("These values could not be changed: %s", err)
		}
	}
	if newPassword {
		if err := c.setPassword(*w.password); err != nil {
			return Failf("The password could not be changed: %s", err)
		}
	}
	return Return{Result: True, Comment: "Updated user " + c.Name, Changes: ch}
}

// shadow is the password hash of the user, "" where it cannot be read.
func (c *Call) shadow() string {
	b, err := os.ReadFile("/etc/shadow")
	if err != nil {
		return ""
	}
	for _, l := range strings.Split(string(b), "\n") {
		if f := strings.Split(l, ":"); len(f) > 1 && f[0] == c.Name {
			return f[1]
		}
	}
	return ""
}

func userAbsent(c *Call) Return {
	if _, err := c.Host.Users.User(c.Name); err != nil {
		if errors.Is(err, host.ErrNoAccount) {
			return OKf("User %s is not present", c.Name)
		}
		return Failf("%s", err)
	}
	if c.Test {
		return Would(nil, "User %s set for removal", c.Name)
	}
	argv := []string{"userdel"}
	if c.boolean("purge", false) {
		argv = append(argv, "-r")
	}
	if c.boolean("force", false) {
		argv = append(argv, "-f")
	}
	if _, err := c.tool(append(argv, c.Name)...); err != nil {
		return Failf("Failed to remove user %s: %s", c.Name, err)
	}
	return Return{Result: True, Comment: "Removed user " + c.Name, Changes: py.NewDict(c.Name, "removed")}
}
