package state

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
)

// addUser adds Salt's user module, through the shadow utilities, and through those of libuser where local asks for them.
func addUser(t *Table) {
	t.add("user.present", "uid gid usergroup gid_from_name groups optional_groups remove_groups home createhome password hash_password "+
		"enforce_password empty_password shell unique system fullname roomnumber workphone homephone other nologinit "+
		"allow_uid_change allow_gid_change password_lock local persist_home loginclass? date mindays maxdays inactdays "+
		"warndays expire win_homedrive? win_profile? win_logonscript? win_description?", userPresent)
	t.add("user.absent", "purge force local", userAbsent)
}

// gecosFields are the arguments of user.present that passwd(5) keeps in one field, in its order.
func gecosFields() []string {
	return []string{"fullname", "roomnumber", "workphone", "homephone", "other"}
}

// wanted is what user.present asks for, beside what its arguments say as they are.
type wanted struct {
	uid, gid any
	// groups are those asked for that exist; grouped tells that there was such an argument, missing are those that don't.
	groups, optional, missing []string
	grouped                   bool
	password                  string
	empty                     bool
}

func (c *Call) wantedUser() (w wanted, fail string) {
	for _, f := range gecosFields()[:3] {
		if v := c.str(f, ""); strings.Contains(v, ",") {
			return w, "Unsupported char ',' in " + v
		}
	}
	w.uid, w.gid = c.number("uid"), c.number("gid")
	w.password, w.empty = c.str("password", ""), c.boolean("empty_password", false)
	_, w.grouped = c.val("groups")
	for _, g := range c.strs("groups") {
		if _, err := c.Host.Users.Group(g); err != nil {
			w.missing = append(w.missing, g)
		} else {
			w.groups = append(w.groups, g)
		}
	}
	if len(w.missing) > 0 && !c.Test {
		return w, "The following group(s) are not present: " + strings.Join(w.missing, ",")
	}
	for _, g := range c.strs("optional_groups") {
		if _, err := c.Host.Users.Group(g); err == nil {
			w.optional = append(w.optional, g)
		}
	}
	if g, err := c.Host.Users.Group(c.Name); err == nil && c.boolean("gid_from_name", false) && w.gid == nil {
		w.gid = int64(g.GID)
	} else if err != nil && c.boolean("gid_from_name", false) && !c.Test {
		return w, "Default group with name \"" + c.Name + "\" is not present"
	}
	if w.password != "" && c.boolean("hash_password", false) {
		w.password = c.hashed(w.password)
	}
	return w, ""
}

// number is an argument as a whole number where it is one, also one written as text; else the text, or nil.
func (c *Call) number(name string) any {
	s := c.str(name, "")
	if s == "" {
		return nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	return s
}

// userPresent implements user.present. Source: Salt documentation, user state.
func userPresent(c *Call) Return {
	w, fail := c.wantedUser()
	if fail != "" {
		return Failf("%s", fail)
	}
	u, err := c.Host.Users.User(c.Name)
	if errors.Is(err, host.ErrNoAccount) {
		return c.userAdd(w)
	}
	if err != nil {
		return Failf("%s", err)
	}
	return c.userUpdate(u, w)
}

// userInfo is what Salt tells of an account.
func (c *Call) userInfo(u host.User) *py.Dict {
	d := py.NewDict("gid", int64(u.GID), "groups", stringList(c.groupsOf(u)), "home", u.Home, "name", u.Name, "passwd", u.Passwd,
		"shell", u.Shell, "uid", int64(u.UID))
	parts := strings.SplitN(u.Gecos, ",", 5)
	for i, key := range gecosFields() {
		v := ""
		if i < len(parts) {
			v = parts[i]
		}
		d.SetStr(key, v)
	}
	return d
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
	slices.Sort(out)
	return slices.Compact(out)
}

// userAdd makes an account, as Salt does: the account first, then its groups, what passwd keeps of a person, and shadow.
func (c *Call) userAdd(w wanted) Return {
	if c.Test {
		r := Would(nil, "User %s set to be added", c.Name)
		if len(w.missing) > 0 {
			r.Comment += " (pending groups: " + strings.Join(w.missing, ",") + ")"
		}
		return r
	}
	argv := c.userAddLine(w)
	if !c.installed(argv[0]) {
		return Failf("Command '%s' cannot be found", argv[0])
	}
	if _, err := c.tool(argv...); err != nil {
		return Failf("Failed to create new user %s", c.Name)
	}
	if groups := append(w.groups, w.optional...); len(groups) > 0 {
		if err := c.changeGroups(groups, false); err != nil {
			return Failf("%s", err)
		}
	}
	for _, f := range gecosFields() {
		if v := c.str(f, ""); v != "" {
			if err := c.changeGecos(f, v); err != nil {
				return Failf("%s", err)
			}
		}
	}
	u, err := c.Host.Users.User(c.Name)
	if err != nil {
		return Failf("%s", err)
	}
	ret := Return{Result: True, Comment: "New user " + c.Name + " created", Changes: c.userInfo(u)}
	if !c.boolean("createhome", true) {
		ret.Set("home", "")
	}
	if err := c.shadowOfNew(w, &ret); err != nil {
		return Failf("%s", err)
	}
	return ret
}

func (c *Call) userAddLine(w wanted) []string {
	argv := []string{c.localTool("useradd")}
	local := argv[0] != "useradd"
	opt := func(flag string, v any) {
		if s := py.Str(v); v != nil && s != "" {
			argv = append(argv, flag, s)
		}
	}
	opt("-s", c.str("shell", ""))
	opt("-u", w.uid)
	usergroup, said := c.val("usergroup")
	switch {
	case w.gid != nil:
		opt("-g", w.gid)
	case said && py.Truth(usergroup):
		if !local {
			argv = append(argv, "-U")
		}
	case slices.Contains(append(slices.Clone(w.groups), w.optional...), c.Name) && c.userGroups():
		if g, err := c.Host.Users.Group(c.Name); err == nil {
			opt("-g", int64(g.GID))
		}
	}
	if usergroup == false {
		argv = append(argv, map[bool]string{true: "-n", false: "-N"}[local])
	}
	switch {
	case !c.boolean("createhome", true):
		argv = append(argv, "-M")
	case !local:
		argv = append(argv, "-m")
	}
	if c.boolean("nologinit", false) {
		argv = append(argv, "-l")
	}
	if c.has("home") {
		argv = append(argv, "-d", c.str("home", ""))
	}
	if !c.boolean("unique", true) {
		argv = append(argv, "-o")
	}
	if c.boolean("system", false) {
		argv = append(argv, "-r")
	}
	return append(argv, c.Name)
}

// userGroups reports whether this machine gives each user a group of the same name. Source: login.defs(5), USERGROUPS_ENAB.
func (c *Call) userGroups() bool {
	f, err := os.Open(filepath.Join(c.etcDir(), "login.defs"))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if l := sc.Text(); strings.Contains(l[:min(15, len(l))], "USERGROUPS_ENAB") {
			return strings.Contains(l, "yes")
		}
	}
	return false
}

// changeGroups sets or extends the groups beside the primary one.
func (c *Call) changeGroups(groups []string, more bool) error {
	u, err := c.Host.Users.User(c.Name)
	if err != nil || sameItems(c.groupsOf(u), groups) {
		return err
	}
	argv := []string{"usermod"}
	if more {
		argv = append(argv, "-a")
	}
	return c.accountTool(append(argv, "-G", strings.Join(groups, ","), c.Name)...)
}

// changeGecos sets one of the parts of the field, and leaves the others as they are.
func (c *Call) changeGecos(key, value string) error {
	u, err := c.Host.Users.User(c.Name)
	if err != nil {
		return err
	}
	d := c.userInfo(u)
	if text(d, key) == value {
		return nil
	}
	d.SetStr(key, value)
	var parts []string
	for _, f := range gecosFields() {
		parts = append(parts, text(d, f))
	}
	return c.accountTool("usermod", "-c", strings.TrimRight(strings.Join(parts, ","), ","), c.Name)
}

// shadowOfNew sets what shadow(5) keeps of a new account, and tells what of it did not come about.
func (c *Call) shadowOfNew(w wanted, ret *Return) error {
	fail := func(format string) {
		ret.Result, ret.Comment = False, "User "+c.Name+" created but failed to "+format
	}
	if w.password != "" && !w.empty {
		if err := c.setPassword(w.password); err != nil || text(c.shadowEntry(), "passwd") != w.password {
			fail("set password to XXX-REDACTED-XXX")
		}
		ret.Set("password", "XXX-REDACTED-XXX")
	}
	if w.empty && w.password == "" {
		if err := c.accountTool("passwd", "-d", c.Name); err != nil {
			return err
		}
		if text(c.shadowEntry(), "passwd") != "" {
			fail("empty password")
		}
		ret.Set("password", "")
	}
	for _, a := range agings() {
		v, ok := c.val(a.arg)
		if !ok || !a.fromZero && !py.Truth(v) {
			continue
		}
		if err := c.chage(a); err != nil {
			return err
		}
		if is, _ := c.shadowEntry().GetStr(a.key); !py.Equal(is, v) {
			fail("set " + a.what + " " + py.Str(v))
		}
		ret.Set(a.arg, v)
	}
	return nil
}

func userAbsent(c *Call) Return {
	u, err := c.Host.Users.User(c.Name)
	if err != nil {
		if errors.Is(err, host.ErrNoAccount) {
			return OKf("User %s is not present", c.Name)
		}
		return Failf("%s", err)
	}
	if c.Test {
		return Would(nil, "User %s set for removal", c.Name)
	}
	argv := []string{c.localTool("userdel")}
	if c.boolean("purge", false) {
		argv = append(argv, "-r")
	}
	if c.boolean("force", false) && argv[0] == "userdel" {
		argv = append(argv, "-f")
	}
	if !c.installed(argv[0]) {
		return Failf("Command '%s' cannot be found", argv[0])
	}
	groups := c.groupsOf(u)
	if _, err := c.tool(append(argv, c.Name)...); err != nil && !onlyMailIsMissing(err) {
		return Failf("Failed to remove user %s", c.Name)
	}
	ret := Return{Result: True, Comment: "Removed user " + c.Name}
	for _, g := range groups {
		if _, err := c.Host.Users.Group(g); errors.Is(err, host.ErrNoAccount) {
			ret.Set(g+" group", "removed")
		}
	}
	ret.Set(c.Name, "removed")
	return ret
}

// onlyMailIsMissing reports whether userdel removed the account and complains about a mail spool that never was there.
func onlyMailIsMissing(err error) bool {
	var t *toolError
	return errors.As(err, &t) && t.code == 12 && (strings.Contains(t.msg, "var/mail") || strings.Contains(t.msg, "var/spool/mail"))
}

// makeHome makes a home that is missing, as the user's own.
func (c *Call) makeHome(dir string, u host.User) error {
	if isDir(dir) {
		return nil
	}
	mode := fs.FileMode(0o755)
	return c.makeDirs(dir, owner{user: &u.UID, group: &u.GID}, &mode)
}
