package state

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
)

// addGroup adds Salt's group module, through the shadow utilities, and through those of libuser where local asks for them.
func addGroup(t *Table) {
	t.add("group.present", "gid system addusers delusers members non_unique local", groupPresent)
	t.add("group.absent", "local", groupAbsent)
}

func stringList(l []string) *py.List {
	out := py.NewList()
	for _, s := range l {
		out.Append(s)
	}
	return out
}

// accountTool runs one of the programs that change accounts. Salt looks it up before it runs it, and names one that is
// missing; that one ran and failed is no error here: what came of it is asked of the databases afterwards.
func (c *Call) accountTool(argv ...string) error {
	if !c.installed(argv[0]) {
		return saltSays("Command '%s' cannot be found", argv[0])
	}
	var failed *toolError
	if _, err := c.tool(argv...); err != nil && !errors.As(err, &failed) {
		return err
	}
	return nil
}

// localTool is the name of a program: that of libuser, which leaves directories such as LDAP alone, for local accounts.
func (c *Call) localTool(name string) string {
	if c.boolean("local", false) {
		return "l" + name
	}
	return name
}

// groupChange is one thing to change of a group that is there.
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

// groupChanges are the changes that a group needs, in Salt's order.
func (c *Call) groupChanges(g host.Group) (out []groupChange, fail string) {
	if v, ok := c.val("gid"); ok && py.Truth(v) {
		gid, err := strconv.Atoi(strings.TrimSpace(py.Str(v)))
		if err != nil {
			return nil, "Invalid gid"
		}
		if gid != g.GID {
			out = append(out, groupChange{key: "gid", value: int64(gid)})
		}
	}
	if members := c.strs("members"); c.has("members") && !sameItems(members, g.Members) {
		if len(members) > 0 {
			out = append(out, groupChange{key: "members", value: stringList(members), users: members})
		} else {
			gone := slices.Sorted(slices.Values(g.Members))
			out = append(out, groupChange{key: "delusers", value: stringList(gone), users: gone, all: true})
		}
	}
	in := func(u string) bool { return slices.Contains(g.Members, u) }
	if add := slices.DeleteFunc(c.strs("addusers"), in); len(add) > 0 {
		out = append(out, groupChange{key: "addusers", value: stringList(add), users: add})
	}
	if del := slices.DeleteFunc(c.strs("delusers"), func(u string) bool { return !in(u) }); len(del) > 0 {
		out = append(out, groupChange{key: "delusers", value: stringList(del), users: del})
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
func groupPresent(c *Call) Return {
	if c.has("members") && (c.has("addusers") || c.has("delusers")) {
		return Failf(`Error: Conflicting options "members" with "addusers" and/or "delusers" can not be used together. `)
	}
	for _, u := range c.strs("addusers") {
		if slices.Contains(c.strs("delusers"), u) {
			return Failf("Error. Same user(s) can not be added and deleted simultaneously")
		}
	}
	g, err := c.Host.Users.Group(c.Name)
	if errors.Is(err, host.ErrNoAccount) {
		return c.groupAdd()
	}
	if err != nil {
		return Failf("%s", err)
	}
	changes, fail := c.groupChanges(g)
	if fail != "" {
		return Failf("%s", fail)
	}
	if len(changes) == 0 {
		return OKf("Group %s is present and up to date", c.Name)
	}
	ret := Return{Result: True, Comment: "The following group attributes are set to be changed:\n"}
	for _, ch := range changes {
		ret.Comment += ch.key + ": " + ch.text() + "\n"
	}
	if c.Test {
		ret.Result = None
		return ret
	}
	if err := c.groupModify(changes); err != nil {
		return Failf("%s", err)
	}
	if g, err = c.Host.Users.Group(c.Name); err != nil {
		return Failf("%s", err)
	}
	if left, _ := c.groupChanges(g); len(left) > 0 {
		ret.Result = False
		ret.Comment += "Some changes could not be applied"
		ret.Set("Failed", shownChanges(left))
		return ret
	}
	ret.Set("Final", "All changes applied successfully")
	return ret
}

func (c *Call) groupModify(changes []groupChange) error {
	for _, ch := range changes {
		var cmds [][]string
		switch ch.key {
		case "gid":
			flag := "-g"
			if c.boolean("non_unique", false) {
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
			if err := c.accountTool(argv...); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Call) groupAdd() Return {
	if c.Test {
		return Would(nil, "Group %s set to be added", c.Name)
	}
	gid := c.str("gid", "")
	shared := c.boolean("non_unique", false)
	if gid != "" && !shared {
		if taken, err := c.Host.Users.Group(gid); err == nil && strconv.Itoa(taken.GID) == gid {
			return Failf("Group %s is not present but gid %s is already taken by group %s", c.Name, gid, taken.Name)
		}
	}
	tool := c.localTool("groupadd")
	argv := []string{tool}
	if gid != "" && gid != "0" {
		argv = append(argv, "-g", gid)
		if shared && tool == "groupadd" {
			argv = append(argv, "-o")
		}
	}
	if c.boolean("system", false) {
		argv = append(argv, "-r")
	}
	if !c.installed(tool) {
		return Failf("Command '%s' cannot be found", tool)
	}
	if _, err := c.tool(append(argv, c.Name)...); err != nil {
		return Failf("Failed to create new group %s", c.Name)
	}
	members := c.strs("members")
	if add := c.strs("addusers"); len(add) > 0 {
		members = add
	}
	if len(members) > 0 {
		if err := c.accountTool("gpasswd", "--members", strings.Join(members, ","), c.Name); err != nil {
			return Failf("%s", err)
		}
	}
	g, err := c.Host.Users.Group(c.Name)
	if err != nil {
		return Failf("%s", err)
	}
	if left, fail := c.groupChanges(g); len(left) > 0 || fail != "" {
		ret := Failf("Group %s has been created but, some changes could not be applied", c.Name)
		ret.Set("Failed", shownChanges(left))
		return ret
	}
	return Return{Result: True, Comment: "New group " + c.Name + " created",
		Changes: py.NewDict("name", g.Name, "passwd", g.Passwd, "gid", int64(g.GID), "members", stringList(g.Members))}
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
	tool := c.localTool("groupdel")
	if !c.installed(tool) {
		return Failf("Command '%s' cannot be found", tool)
	}
	if _, err := c.tool(tool, c.Name); err != nil {
		return Failf("Failed to remove group %s", c.Name)
	}
	return Return{Result: True, Comment: "Removed group " + c.Name, Changes: py.NewDict(c.Name, "")}
}
