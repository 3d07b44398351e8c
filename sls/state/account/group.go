package account

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
	"corpus-git/undo"
)

// addGroup adds Salt's group module, through the shadow utilities, or those of libuser if local requests them.
func addGroup(t *core.Table) {
	t.Add("group.present", "gid system addusers delusers members non_unique local", groupPresent)
	t.Add("group.absent", "local", groupAbsent)
}

// accountTool runs one of the programs that change accounts. Salt looks up the program before it runs it, and names a
// missing one; the failure of a program is not an error here, since the result is read from the databases afterwards.
func accountTool(c *core.Call, argv ...string) error {
	if !c.Installed(argv[0]) {
		return core.Errorf("Command '%s' cannot be found", argv[0])
	}
	var failed *core.ToolError
	if _, err := c.Tool(argv...); err != nil && !errors.As(err, &failed) {
		return err
	}
	return nil
}

// localTool returns the name of a program: that of libuser, which does not touch directories such as LDAP, for local
// accounts.
func localTool(c *core.Call, name string) string {
	if c.Bool("local", false) {
		return "l" + name
	}
	return name
}

// groupChange is one change of an existing group.
type groupChange struct {
	key   string
	value any
	users []string
	// all is the removal of all members, which Salt writes as a set.
	all bool
}

func (g groupChange) text() string {
	if !g.all {
		return py.Str(g.value)
	}
	return "{" + strings.Trim(py.Repr(g.value), "[]") + "}"
}

// groupChanges returns the changes that a group needs, in Salt's order.
func groupChanges(c *core.Call, g host.Group) (out []groupChange, fail string) {
	if v, ok := c.Value("gid"); ok && py.Truth(v) {
		gid, err := strconv.Atoi(strings.TrimSpace(py.Str(v)))
		if err != nil {
			return nil, "Invalid gid"
		}
		if gid != g.GID {
			out = append(out, groupChange{key: "gid", value: int64(gid)})
		}
	}
	if members := c.Strings("members"); c.Has("members") && !core.SameItems(members, g.Members) {
		if len(members) > 0 {
			out = append(out, groupChange{key: "members", value: core.StringList(members), users: members})
		} else {
			gone := slices.Sorted(slices.Values(g.Members))
			out = append(out, groupChange{key: "delusers", value: core.StringList(gone), users: gone, all: true})
		}
	}
	in := func(u string) bool { return slices.Contains(g.Members, u) }
	if add := slices.DeleteFunc(c.Strings("addusers"), in); len(add) > 0 {
		out = append(out, groupChange{key: "addusers", value: core.StringList(add), users: add})
	}
	if del := slices.DeleteFunc(c.Strings("delusers"), func(u string) bool { return !in(u) }); len(del) > 0 {
		out = append(out, groupChange{key: "delusers", value: core.StringList(del), users: del})
	}
	return out, ""
}

func shownChanges(changes []groupChange) *py.Dict {
	d := py.NewDict()
	for _, ch := range changes {
		d.SetStr(ch.key, ch.value)
	}
	return d
}

// groupPresent implements group.present. Source: Salt documentation, group state.
func groupPresent(c *core.Call) core.Return {
	if c.Has("members") && (c.Has("addusers") || c.Has("delusers")) {
		return core.Failf(`Error: Conflicting options "members" with "addusers" and/or "delusers" can not be used together. `)
	}
	for _, u := range c.Strings("addusers") {
		if slices.Contains(c.Strings("delusers"), u) {
			return core.Failf("Error. Same user(s) can not be added and deleted simultaneously")
		}
	}
	g, err := c.Host.Users.Group(c.Name)
	if errors.Is(err, host.ErrNoAccount) {
		return groupAdd(c)
	}
	if err != nil {
		return core.Failf("%s", err)
	}
	changes, fail := groupChanges(c, g)
	if fail != "" {
		return core.Failf("%s", fail)
	}
	if len(changes) == 0 {
		return core.OKf("Group %s is present and up to date", c.Name)
	}
	ret := core.Return{Result: core.True, Comment: "The following group attributes are set to be changed:\n"}
	for _, ch := range changes {
		ret.Comment += ch.key + ": " + ch.text() + "\n"
	}
	if c.Test {
		ret.Result = core.None
		return ret
	}
	if err := noteChangedGroup(c, g); err != nil {
		return core.Failf("%s", err)
	}
	if err := groupModify(c, changes); err != nil {
		return core.Failf("%s", err)
	}
	if g, err = c.Host.Users.Group(c.Name); err != nil {
		return core.Failf("%s", err)
	}
	if left, _ := groupChanges(c, g); len(left) > 0 {
		ret.Result = core.False
		ret.Comment += "Some changes could not be applied"
		ret.Set("Failed", shownChanges(left))
		return ret
	}
	ret.Set("Final", "All changes applied successfully")
	return ret
}

func groupModify(c *core.Call, changes []groupChange) error {
	for _, ch := range changes {
		var cmds [][]string
		switch ch.key {
		case "gid":
			flag := "-g"
			if c.Bool("non_unique", false) {
				flag = "-og"
			}
			cmds = append(cmds, []string{"groupmod", flag, py.Str(ch.value), c.Name})
		case "members":
			cmds = append(cmds, []string{"gpasswd", "--members", strings.Join(ch.users, ","), c.Name})
		default:
			flag := map[string]string{"addusers": "--add", "delusers": "--del"}[ch.key]
			for _, u := range ch.users {
				cmds = append(cmds, []string{"gpasswd", flag, u, c.Name})
			}
		}
		for _, argv := range cmds {
			if err := accountTool(c, argv...); err != nil {
				return err
			}
		}
	}
	return nil
}

func groupAdd(c *core.Call) core.Return {
	if c.Test {
		return core.Would(nil, "Group %s set to be added", c.Name)
	}
	gid := c.Str("gid", "")
	shared := c.Bool("non_unique", false)
	if gid != "" && !shared {
		if taken, err := c.Host.Users.Group(gid); err == nil && strconv.Itoa(taken.GID) == gid {
			return core.Failf("Group %s is not present but gid %s is already taken by group %s", c.Name, gid, taken.Name)
		}
	}
	tool := localTool(c, "groupadd")
	argv := []string{tool}
	if gid != "" && gid != "0" {
		argv = append(argv, "-g", gid)
		if shared && tool == "groupadd" {
			argv = append(argv, "-o")
		}
	}
	if c.Bool("system", false) {
		argv = append(argv, "-r")
	}
	if !c.Installed(tool) {
		return core.Failf("Command '%s' cannot be found", tool)
	}
	if err := c.BeforeAction(undo.Action{Noun: "group", Name: c.Name, Probe: []string{"getent", "group", c.Name}, Undo: []string{"groupdel", c.Name}}); err != nil {
		return core.Failf("%s", err)
	}
	if _, err := c.Tool(append(argv, c.Name)...); err != nil {
		return core.Failf("Failed to create new group %s", c.Name)
	}
	members := c.Strings("members")
	if add := c.Strings("addusers"); len(add) > 0 {
		members = add
	}
	if len(members) > 0 {
		if err := accountTool(c, "gpasswd", "--members", strings.Join(members, ","), c.Name); err != nil {
			return core.Failf("%s", err)
		}
	}
	g, err := c.Host.Users.Group(c.Name)
	if err != nil {
		return core.Failf("%s", err)
	}
	if left, fail := groupChanges(c, g); len(left) > 0 || fail != "" {
		ret := core.Failf("Group %s has been created but, some changes could not be applied", c.Name)
		ret.Set("Failed", shownChanges(left))
		return ret
	}
	return core.Return{Result: core.True, Comment: "New group " + c.Name + " created",
		Changes: py.NewDict("name", g.Name, "passwd", g.Passwd, "gid", int64(g.GID), "members", core.StringList(g.Members))}
}

func groupAbsent(c *core.Call) core.Return {
	g, err := c.Host.Users.Group(c.Name)
	if err != nil {
		if errors.Is(err, host.ErrNoAccount) {
			return core.OKf("Group not present")
		}
		return core.Failf("%s", err)
	}
	if c.Test {
		return core.Would(nil, "Group %s is set for removal", c.Name)
	}
	tool := localTool(c, "groupdel")
	if !c.Installed(tool) {
		return core.Failf("Command '%s' cannot be found", tool)
	}
	if err := noteChangedGroup(c, g); err != nil {
		return core.Failf("%s", err)
	}
	if _, err := c.Tool(tool, c.Name); err != nil {
		return core.Failf("Failed to remove group %s", c.Name)
	}
	return core.Return{Result: core.True, Comment: "Removed group " + c.Name, Changes: py.NewDict(c.Name, "")}
}
