package state

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
)

const redacted = "XXX-REDACTED-XXX"

// userChanges are what an account that is there lacks, in Salt's order; a password stands there as redacted.
func (c *Call) userChanges(u host.User, w wanted, gid any) *py.Dict {
	ch := py.NewDict()
	have, shadow := c.userInfo(u), c.shadowEntry()
	if w.uid != nil && !py.Equal(w.uid, int64(0)) && !py.Equal(w.uid, int64(u.UID)) {
		ch.SetStr("uid", w.uid)
	}
	primary := u.GID
	if gid != nil {
		g, known := c.gidOf(gid)
		if !known || g != u.GID {
			ch.SetStr("gid", gid)
		}
		if known {
			primary = g
		}
	}
	want := c.groupsWanted(u, w)
	cur, drop := c.groupsApart(u, want, primary), c.groupName(primary)
	want = slices.DeleteFunc(want, func(g string) bool { return g == drop })
	if c.groupsDiffer(cur, want) && (len(want) > 0 || c.boolean("remove_groups", true)) {
		ch.SetStr("groups", stringList(want))
	}
	home := c.str("home", "")
	if home != "" && home != u.Home {
		ch.SetStr("home", home)
	}
	if c.boolean("createhome", true) && !isDir(either(home, u.Home)) {
		ch.SetStr("homeDoesNotExist", either(home, u.Home))
	}
	if s := c.str("shell", ""); s != "" && s != u.Shell {
		ch.SetStr("shell", s)
	}
	c.shadowChanges(w, shadow, ch)
	for _, f := range gecosFields() {
		if c.has(f) && c.str(f, "") != text(have, f) {
			ch.SetStr(f, c.str(f, ""))
		}
	}
	return ch
}

// shadowChanges are those of what shadow(5) keeps.
func (c *Call) shadowChanges(w wanted, shadow, ch *py.Dict) {
	passwd := text(shadow, "passwd")
	if w.password != "" && !w.empty && passwd != w.password && (passwd == noPassword || c.boolean("enforce_password", true)) {
		ch.SetStr("passwd", redacted)
	}
	if w.empty && passwd != "" {
		ch.SetStr("empty_password", true)
	}
	for _, a := range agings() {
		v, ok := c.val(a.arg)
		if was, _ := shadow.GetStr(a.key); ok && !py.Equal(was, v) && (a.arg != "expire" || py.Truth(v)) {
			ch.SetStr(a.arg, v)
		}
	}
	if v, ok := c.val("password_lock"); ok {
		locked := strings.HasPrefix(passwd, "!")
		if py.Truth(v) && !locked || v == false && locked {
			ch.SetStr("password_lock", v)
		}
	}
}

// gidOf is the number of a group that an argument names.
func (c *Call) gidOf(v any) (int, bool) {
	if n, ok := v.(int64); ok {
		return int(n), true
	}
	g, err := c.Host.Users.Group(py.Str(v))
	return g.GID, err == nil
}

// groupsWanted are the groups that the user is to be in.
func (c *Call) groupsWanted(u host.User, w wanted) []string {
	out := append(slices.Clone(w.groups), w.optional...)
	if !c.boolean("remove_groups", true) || !w.grouped && len(w.optional) == 0 {
		out = append(out, c.groupsOf(u)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// groupsApart are the groups that the user is in, without those that count as the primary one: the one it is to be, the one
// that it was, and one that has the name of the user and is not asked for.
func (c *Call) groupsApart(u host.User, want []string, primary int) []string {
	now, old := c.groupName(primary), c.groupName(u.GID)
	return slices.DeleteFunc(c.groupsOf(u), func(g string) bool {
		return g == now || g == old || g == c.Name && !slices.Contains(want, g)
	})
}

// groupsDiffer reports whether the groups have to change. Two names of the same group are no difference.
func (c *Call) groupsDiffer(cur, want []string) bool {
	remove := c.boolean("remove_groups", true)
	if sameItems(cur, want) || !remove && containsAll(cur, want) {
		return false
	}
	var diff []string
	for _, g := range want {
		if !slices.Contains(cur, g) {
			diff = append(diff, g)
		}
	}
	for _, g := range cur {
		if remove && !slices.Contains(want, g) {
			diff = append(diff, g)
		}
	}
	all := append(slices.Clone(cur), want...)
	return slices.ContainsFunc(diff, func(g string) bool {
		id, known := c.gidOf(g)
		return !known || !slices.ContainsFunc(all, func(o string) bool {
			other, ok := c.gidOf(o)
			return o != g && ok && other == id
		})
	})
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// unwelcome is Salt's complaint about a number that must not change.
func (c *Call) unwelcome(u host.User, ch *py.Dict) string {
	var out []string
	for _, n := range []struct {
		key string
		was int
	}{{"uid", u.UID}, {"gid", u.GID}} {
		if v, ok := ch.GetStr(n.key); ok && !c.boolean("allow_"+n.key+"_change", false) {
			out = append(out, fmt.Sprintf("Changing %[1]s (%[2]d -> %[3]s) not permitted, set allow_%[1]s_change to True to force this change. "+
				"Note that this will not change file ownership.", n.key, n.was, py.Str(v)))
		}
	}
	switch len(out) {
	case 0:
		return ""
	case 1:
		return "Encountered error checking for needed changes. Additional info follows:\n\n- " + out[0]
	}
	return "Encountered error checking for needed changes. Additional info follows:\n\n- " + strings.Join(out, "\n- ")
}

func changeLines(d *py.Dict) string {
	var b strings.Builder
	for _, e := range d.Items() {
		b.WriteString(py.Str(e.Key) + ": " + py.Str(e.Value) + "\n")
	}
	return b.String()
}

func (c *Call) userUpdate(u host.User, w wanted) Return {
	gid := w.gid
	if c.boolean("usergroup", false) {
		if _, ok := c.gidOf(c.Name); ok {
			gid = c.Name
		}
	}
	ch := c.userChanges(u, w, gid)
	if fail := c.unwelcome(u, ch); fail != "" {
		return Failf("%s", fail)
	}
	if ch.Len() == 0 {
		return OKf("User %s is present and up to date", c.Name)
	}
	if c.Test {
		r := Would(nil, "The following user attributes are set to be changed:\n%s", changeLines(ch))
		if len(w.missing) > 0 {
			r.Comment += "groups (pending creation): " + strings.Join(w.missing, ",") + "\n"
		}
		return r
	}
	before, shadow := c.userInfo(u), c.shadowEntry()
	if err := c.userModify(u, w, ch); err != nil {
		return Failf("%s", err)
	}
	now, err := c.Host.Users.User(c.Name)
	if err != nil {
		return Failf("%s", err)
	}
	ret := OKf("User %s is present and up to date", c.Name)
	shown := func(was, is *py.Dict) {
		for _, e := range is.Items() {
			key := py.Str(e.Key)
			if old, _ := was.GetStr(key); !py.Equal(old, e.Value) {
				ret.Set(key, e.Value)
			}
		}
	}
	shown(before, c.userInfo(now))
	if w.password == "" || text(shadow, "passwd") != w.password {
		shown(shadow, c.shadowEntry())
		if _, ok := ret.Changes.GetStr("passwd"); ok {
			ret.Set("passwd", redacted)
		}
	}
	if ret.Changed() {
		ret.Comment = "Updated user " + c.Name
	}
	if left := c.userChanges(now, w, w.gid); left.Len() > 0 {
		ret.Result, ret.Comment = False, "These values could not be changed: "+py.Repr(left)
	}
	return ret
}

// userModify changes an account, one attribute after the other, in Salt's order: the primary group before the others.
func (c *Call) userModify(u host.User, w wanted, ch *py.Dict) error {
	has := func(key string) bool { _, ok := ch.GetStr(key); return ok }
	if has("passwd") {
		if err := c.setPassword(w.password); err != nil {
			return err
		}
	}
	if has("empty_password") {
		if err := c.accountTool("passwd", "-d", c.Name); err != nil {
			return err
		}
	}
	if v, ok := ch.GetStr("password_lock"); ok {
		if err := c.lockPassword(py.Truth(v)); err != nil {
			return err
		}
	}
	ages := agings()
	if has("date") {
		if err := c.chage(ages[0]); err != nil {
			return err
		}
	}
	if err := c.changeHome(u, ch); err != nil {
		return err
	}
	for _, a := range ages[1:] {
		if !has(a.arg) {
			continue
		}
		if err := c.chage(a); err != nil {
			return err
		}
	}
	for _, o := range []struct{ key, flag, have string }{{"uid", "-u", strconv.Itoa(u.UID)}, {"gid", "-g", strconv.Itoa(u.GID)}, {"shell", "-s", u.Shell}} {
		if v, ok := ch.GetStr(o.key); ok && py.Str(v) != o.have {
			if err := c.accountTool("usermod", o.flag, py.Str(v), c.Name); err != nil {
				return err
			}
		}
	}
	for _, f := range gecosFields() {
		if !has(f) {
			continue
		}
		if err := c.changeGecos(f, c.str(f, "")); err != nil {
			return err
		}
	}
	if v, ok := ch.GetStr("groups"); ok {
		return c.changeGroups(texts(v), !c.boolean("remove_groups", true))
	}
	return nil
}

// changeHome gives the account another home, and makes one that is missing.
func (c *Call) changeHome(u host.User, ch *py.Dict) error {
	if home, ok := ch.GetStr("home"); ok {
		argv := []string{"usermod"}
		if c.boolean("persist_home", false) {
			argv = append(argv, "-m")
		}
		if err := c.accountTool(append(argv, "-d", py.Str(home), c.Name)...); err != nil {
			return err
		}
	}
	if dir, ok := ch.GetStr("homeDoesNotExist"); ok {
		return c.makeHome(py.Str(dir), u)
	}
	return nil
}
