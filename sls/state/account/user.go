package account

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
	"corpus-git/sls/state/core"
	"corpus-git/undo"
)

// addUser adds Salt's user module, through the shadow utilities, or those of libuser if local requests them.
func addUser(t *core.Table) {
	t.Add("user.present", "uid gid usergroup gid_from_name groups optional_groups remove_groups home createhome password hash_password "+
		"enforce_password empty_password shell unique system fullname roomnumber workphone homephone other nologinit "+
		"allow_uid_change allow_gid_change password_lock local persist_home loginclass? date mindays maxdays inactdays "+
		"warndays expire win_homedrive? win_profile? win_logonscript? win_description?", userPresent)
	t.Add("user.absent", "purge force local", userAbsent)
}

// gecosFields returns the arguments of user.present that passwd(5) stores in one field, in its order.
func gecosFields() []string {
	return []string{"fullname", "roomnumber", "workphone", "homephone", "other"}
}

// userRequest is what user.present requests, in addition to arguments that are used unchanged.
type userRequest struct {
	uid, gid any
	// groups are the requested ones that exist; grouped reports that there was such an argument, missing are those that
	// don't.
	groups, optional, missing []string
	grouped                   bool
	password                  string
	empty                     bool
}

func readUserRequest(c *core.Call) (w userRequest, fail string) {
	for _, f := range gecosFields()[:3] {
		if v := c.Str(f, ""); strings.Contains(v, ",") {
			return w, "Unsupported char ',' in " + v
		}
	}
	w.uid, w.gid = number(c, "uid"), number(c, "gid")
	w.password, w.empty = c.Str("password", ""), c.Bool("empty_password", false)
	_, w.grouped = c.Value("groups")
	for _, g := range c.Strings("groups") {
		if _, err := c.Host.Users.Group(g); err != nil {
			w.missing = append(w.missing, g)
		} else {
			w.groups = append(w.groups, g)
		}
	}
	if len(w.missing) > 0 && !c.Test {
		return w, "The following group(s) are not present: " + strings.Join(w.missing, ",")
	}
	for _, g := range c.Strings("optional_groups") {
		if _, err := c.Host.Users.Group(g); err == nil {
			w.optional = append(w.optional, g)
		}
	}
	if g, err := c.Host.Users.Group(c.Name); err == nil && c.Bool("gid_from_name", false) && w.gid == nil {
		w.gid = int64(g.GID)
	} else if err != nil && c.Bool("gid_from_name", false) && !c.Test {
		return w, "Default group with name \"" + c.Name + "\" is not present"
	}
	if w.password != "" && c.Bool("hash_password", false) {
		w.password = hashed(c, w.password)
	}
	return w, ""
}

// number returns an argument as an integer if it is one, including one written as text; otherwise the text, or nil.
func number(c *core.Call, name string) any {
	s := c.Str(name, "")
	if s == "" {
		return nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	return s
}

// userPresent implements user.present. Source: Salt documentation, user state.
func userPresent(c *core.Call) core.Return {
	w, fail := readUserRequest(c)
	if fail != "" {
		return core.Failf("%s", fail)
	}
	u, err := c.Host.Users.User(c.Name)
	if errors.Is(err, host.ErrNoAccount) {
		return userAdd(c, w)
	}
	if err != nil {
		return core.Failf("%s", err)
	}
	return userUpdate(c, u, w)
}

// userInfo returns an account as Salt shows it.
func userInfo(c *core.Call, u host.User) *py.Dict {
	d := py.NewDict("gid", int64(u.GID), "groups", core.StringList(c.GroupsOf(u)), "home", u.Home, "name", u.Name, "passwd", u.Passwd,
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

// noteUser records in the undo log an account that is about to be created, and its home if that is created with it.
func noteUser(c *core.Call, argv []string) error {
	home := "/home/" + c.Name
	if i := slices.Index(argv, "-d"); i >= 0 && i+1 < len(argv) {
		home = argv[i+1]
	}
	if slices.Contains(argv, "-m") && !core.Lexists(home) {
		if err := c.BeforeWhole(home); err != nil {
			return err
		}
	}
	return c.BeforeAction(undo.Action{Noun: "user", Name: c.Name, Probe: []string{"getent", "passwd", c.Name}, Undo: []string{"userdel", c.Name}})
}

// userAdd creates an account, as Salt does: first the account, then its groups, the personal fields in passwd, and shadow.
func userAdd(c *core.Call, w userRequest) core.Return {
	if c.Test {
		r := core.Would(nil, "User %s set to be added", c.Name)
		if len(w.missing) > 0 {
			r.Comment += " (pending groups: " + strings.Join(w.missing, ",") + ")"
		}
		return r
	}
	argv := userAddLine(c, w)
	if !c.Installed(argv[0]) {
		return core.Failf("Command '%s' cannot be found", argv[0])
	}
	if err := noteUser(c, argv); err != nil {
		return core.Failf("%s", err)
	}
	if _, err := c.Tool(argv...); err != nil {
		return core.Failf("Failed to create new user %s", c.Name)
	}
	if groups := append(w.groups, w.optional...); len(groups) > 0 {
		if err := changeGroups(c, groups, false); err != nil {
			return core.Failf("%s", err)
		}
	}
	for _, f := range gecosFields() {
		if v := c.Str(f, ""); v != "" {
			if err := changeGecos(c, f, v); err != nil {
				return core.Failf("%s", err)
			}
		}
	}
	u, err := c.Host.Users.User(c.Name)
	if err != nil {
		return core.Failf("%s", err)
	}
	ret := core.Return{Result: core.True, Comment: "New user " + c.Name + " created", Changes: userInfo(c, u)}
	if !c.Bool("createhome", true) {
		ret.Set("home", "")
	}
	if err := shadowOfNew(c, w, &ret); err != nil {
		return core.Failf("%s", err)
	}
	return ret
}

func userAddLine(c *core.Call, w userRequest) []string {
	argv := []string{localTool(c, "useradd")}
	local := argv[0] != "useradd"
	opt := func(flag string, v any) {
		if s := py.Str(v); v != nil && s != "" {
			argv = append(argv, flag, s)
		}
	}
	opt("-s", c.Str("shell", ""))
	opt("-u", w.uid)
	usergroup, said := c.Value("usergroup")
	switch {
	case w.gid != nil:
		opt("-g", w.gid)
	case said && py.Truth(usergroup):
		if !local {
			argv = append(argv, "-U")
		}
	case slices.Contains(append(slices.Clone(w.groups), w.optional...), c.Name) && userGroups(c):
		if g, err := c.Host.Users.Group(c.Name); err == nil {
			opt("-g", int64(g.GID))
		}
	}
	if usergroup == false {
		argv = append(argv, map[bool]string{true: "-n", false: "-N"}[local])
	}
	switch {
	case !c.Bool("createhome", true):
		argv = append(argv, "-M")
	case !local:
		argv = append(argv, "-m")
	}
	if c.Bool("nologinit", false) {
		argv = append(argv, "-l")
	}
	if c.Has("home") {
		argv = append(argv, "-d", c.Str("home", ""))
	}
	if !c.Bool("unique", true) {
		argv = append(argv, "-o")
	}
	if c.Bool("system", false) {
		argv = append(argv, "-r")
	}
	return append(argv, c.Name)
}

// userGroups reports whether this machine gives each user a group of the same name. Source: login.defs(5), USERGROUPS_ENAB.
func userGroups(c *core.Call) bool {
	f, err := os.Open(filepath.Join(etcDir(c), "login.defs"))
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

// changeGroups sets or extends the groups other than the primary one.
func changeGroups(c *core.Call, groups []string, more bool) error {
	u, err := c.Host.Users.User(c.Name)
	if err != nil || core.SameItems(c.GroupsOf(u), groups) {
		return err
	}
	argv := []string{"usermod"}
	if more {
		argv = append(argv, "-a")
	}
	return accountTool(c, append(argv, "-G", strings.Join(groups, ","), c.Name)...)
}

// changeGecos sets one of the parts of the field, and leaves the others as they are.
func changeGecos(c *core.Call, key, value string) error {
	u, err := c.Host.Users.User(c.Name)
	if err != nil {
		return err
	}
	d := userInfo(c, u)
	if core.DictText(d, key) == value {
		return nil
	}
	d.SetStr(key, value)
	var parts []string
	for _, f := range gecosFields() {
		parts = append(parts, core.DictText(d, f))
	}
	return accountTool(c, "usermod", "-c", strings.TrimRight(strings.Join(parts, ","), ","), c.Name)
}

// shadowOfNew sets the shadow(5) fields of a new account, and reports which of them failed.
func shadowOfNew(c *core.Call, w userRequest, ret *core.Return) error {
	fail := func(format string) {
		ret.Result, ret.Comment = core.False, "User "+c.Name+" created but failed to "+format
	}
	if w.password != "" && !w.empty {
		if err := setPassword(c, w.password); err != nil || core.DictText(shadowEntry(c), "passwd") != w.password {
			fail("set password to XXX-REDACTED-XXX")
		}
		ret.Set("password", "XXX-REDACTED-XXX")
	}
	if w.empty && w.password == "" {
		if err := accountTool(c, "passwd", "-d", c.Name); err != nil {
			return err
		}
		if core.DictText(shadowEntry(c), "passwd") != "" {
			fail("empty password")
		}
		ret.Set("password", "")
	}
	for _, a := range agings() {
		v, ok := c.Value(a.arg)
		if !ok || !a.fromZero && !py.Truth(v) {
			continue
		}
		if err := chage(c, a); err != nil {
			return err
		}
		if is, _ := shadowEntry(c).GetStr(a.key); !py.Equal(is, v) {
			fail("set " + a.what + " " + py.Str(v))
		}
		ret.Set(a.arg, v)
	}
	return nil
}

func userAbsent(c *core.Call) core.Return {
	u, err := c.Host.Users.User(c.Name)
	if err != nil {
		if errors.Is(err, host.ErrNoAccount) {
			return core.OKf("User %s is not present", c.Name)
		}
		return core.Failf("%s", err)
	}
	if c.Test {
		return core.Would(nil, "User %s set for removal", c.Name)
	}
	argv := []string{localTool(c, "userdel")}
	if c.Bool("purge", false) {
		argv = append(argv, "-r")
	}
	if c.Bool("force", false) && argv[0] == "userdel" {
		argv = append(argv, "-f")
	}
	if !c.Installed(argv[0]) {
		return core.Failf("Command '%s' cannot be found", argv[0])
	}
	groups := c.GroupsOf(u)
	if err := noteChangedUser(c, u); err != nil {
		return core.Failf("%s", err)
	}
	if slices.Contains(argv, "-r") {
		if err := c.Manual(); err != nil { // the home is removed, too
			return core.Failf("%s", err)
		}
	}
	if _, err := c.Tool(append(argv, c.Name)...); err != nil && !onlyMailIsMissing(err) {
		return core.Failf("Failed to remove user %s", c.Name)
	}
	ret := core.Return{Result: core.True, Comment: "Removed user " + c.Name}
	for _, g := range groups {
		if _, err := c.Host.Users.Group(g); errors.Is(err, host.ErrNoAccount) {
			ret.Set(g+" group", "removed")
		}
	}
	ret.Set(c.Name, "removed")
	return ret
}

// onlyMailIsMissing reports whether userdel removed the account and complains about a mail spool that never existed.
func onlyMailIsMissing(err error) bool {
	var t *core.ToolError
	return errors.As(err, &t) && t.Code == 12 && (strings.Contains(t.Stderr, "var/mail") || strings.Contains(t.Stderr, "var/spool/mail"))
}

// makeHome creates a missing home, owned by the user.
func makeHome(c *core.Call, dir string, u host.User) error {
	if core.IsDir(dir) {
		return nil
	}
	mode := fs.FileMode(0o755)
	return c.MakeDirs(dir, core.Owner{User: &u.UID, Group: &u.GID}, &mode)
}
