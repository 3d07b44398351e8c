package account

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
)

const redacted = "XXX-REDACTED-XXX"

// userChanges returns what has to change in an existing account, in Salt's order; a password is shown as redacted.
func userChanges(c *core.Call, u host.User, w userRequest, gid any) *py.Dict {
	ch := py.NewDict()
	have, shadow := userInfo(c, u), shadowEntry(c)
	if w.uid != nil && !py.Equal(w.uid, int64(0)) && !py.Equal(w.uid, int64(u.UID)) {
		ch.SetStr("uid", w.uid)
	}
	primary := u.GID
	if gid != nil {
		g, known := gidOf(c, gid)
		if !known || g != u.GID {
			ch.SetStr("gid", gid)
		}
		if known {
			primary = g
		}
	}
	want := groupsWanted(c, u, w)
	cur, drop := otherGroups(c, u, want, primary), c.GroupName(primary)
	want = slices.DeleteFunc(want, func(g string) bool { return g == drop })
	if groupsDiffer(c, cur, want) && (len(want) > 0 || c.Bool("remove_groups", true)) {
		ch.SetStr("groups", core.StringList(want))
	}
	home := c.Str("home", "")
	if home != "" && home != u.Home {
		ch.SetStr("home", home)
	}
	if c.Bool("createhome", true) && !core.IsDir(cmp.Or(home, u.Home)) {
		ch.SetStr("homeDoesNotExist", cmp.Or(home, u.Home))
	}
	if s := c.Str("shell", ""); s != "" && s != u.Shell {
		ch.SetStr("shell", s)
	}
	shadowChanges(c, w, shadow, ch)
	for _, f := range gecosFields() {
		if c.Has(f) && c.Str(f, "") != core.DictText(have, f) {
			ch.SetStr(f, c.Str(f, ""))
		}
	}
	return ch
}

// shadowChanges adds the changes of the shadow(5) fields.
func shadowChanges(c *core.Call, w userRequest, shadow, ch *py.Dict) {
	passwd := core.DictText(shadow, "passwd")
	if w.password != "" && !w.empty && passwd != w.password && (passwd == noPassword || c.Bool("enforce_password", true)) {
		ch.SetStr("passwd", redacted)
	}
	if w.empty && passwd != "" {
		ch.SetStr("empty_password", true)
	}
	for _, a := range agings() {
		v, ok := c.Value(a.arg)
		if was, _ := shadow.GetStr(a.key); ok && !py.Equal(was, v) && (a.arg != "expire" || py.Truth(v)) {
			ch.SetStr(a.arg, v)
		}
	}
	if v, ok := c.Value("password_lock"); ok {
		locked := strings.HasPrefix(passwd, "!")
		if py.Truth(v) && !locked || v == false && locked {
			ch.SetStr("password_lock", v)
		}
	}
}

// gidOf returns the number of a group that an argument names.
func gidOf(c *core.Call, v any) (int, bool) {
	if n, ok := v.(int64); ok {
		return int(n), true
	}
	g, err := c.Host.Users.Group(py.Str(v))
	return g.GID, err == nil
}

// groupsWanted returns the groups that the user is to be in.
func groupsWanted(c *core.Call, u host.User, w userRequest) []string {
	out := append(slices.Clone(w.groups), w.optional...)
	if !c.Bool("remove_groups", true) || !w.grouped && len(w.optional) == 0 {
		out = append(out, c.GroupsOf(u)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// otherGroups returns the groups that the user is in, without those that count as the primary one: the new one, the old one,
// and one with the name of the user that is not requested.
func otherGroups(c *core.Call, u host.User, want []string, primary int) []string {
	now, old := c.GroupName(primary), c.GroupName(u.GID)
	return slices.DeleteFunc(c.GroupsOf(u), func(g string) bool {
		return g == now || g == old || g == c.Name && !slices.Contains(want, g)
	})
}

// groupsDiffer reports whether the groups have to change. Two names of the same group do not count as a difference.
func groupsDiffer(c *core.Call, cur, want []string) bool {
	remove := c.Bool("remove_groups", true)
	if core.SameItems(cur, want) || !remove && containsAll(cur, want) {
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
		id, known := gidOf(c, g)
		return !known || !slices.ContainsFunc(all, func(o string) bool {
			other, ok := gidOf(c, o)
			return o != g && ok && other == id
		})
	})
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// refusedChange returns Salt's error about an ID that must not change.
func refusedChange(c *core.Call, u host.User, ch *py.Dict) string {
	var out []string
	for _, n := range []struct {
		key string
		was int
	}{{"uid", u.UID}, {"gid", u.GID}} {
		if v, ok := ch.GetStr(n.key); ok && !c.Bool("allow_"+n.key+"_change", false) {
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

func userUpdate(c *core.Call, u host.User, w userRequest) core.Return {
	gid := w.gid
	if c.Bool("usergroup", false) {
		if _, ok := gidOf(c, c.Name); ok {
			gid = c.Name
		}
	}
	ch := userChanges(c, u, w, gid)
	if fail := refusedChange(c, u, ch); fail != "" {
		return core.Failf("%s", fail)
	}
	if ch.Len() == 0 {
		return core.OKf("User %s is present and up to date", c.Name)
	}
	if c.Test {
		r := core.Would(nil, "The following user attributes are set to be changed:\n%s", changeLines(ch))
		if len(w.missing) > 0 {
			r.Comment += "groups (pending creation): " + strings.Join(w.missing, ",") + "\n"
		}
		return r
	}
	before, shadow := userInfo(c, u), shadowEntry(c)
	if err := noteChangedUser(c, u); err != nil {
		return core.Failf("%s", err)
	}
	if err := userModify(c, u, w, ch); err != nil {
		return core.Failf("%s", err)
	}
	now, err := c.Host.Users.User(c.Name)
	if err != nil {
		return core.Failf("%s", err)
	}
	ret := core.OKf("User %s is present and up to date", c.Name)
	shown := func(was, is *py.Dict) {
		for _, e := range is.Items() {
			key := py.Str(e.Key)
			if old, _ := was.GetStr(key); !py.Equal(old, e.Value) {
				ret.Set(key, e.Value)
			}
		}
	}
	shown(before, userInfo(c, now))
	if w.password == "" || core.DictText(shadow, "passwd") != w.password {
		shown(shadow, shadowEntry(c))
		if _, ok := ret.Changes.GetStr("passwd"); ok {
			ret.Set("passwd", redacted)
		}
	}
	if ret.Changed() {
		ret.Comment = "Updated user " + c.Name
	}
	if left := userChanges(c, now, w, w.gid); left.Len() > 0 {
		ret.Result, ret.Comment = core.False, "These values could not be changed: "+py.Repr(left)
	}
	return ret
}

// userModify changes an account, one attribute after the other, in Salt's order: the primary group before the others.
func userModify(c *core.Call, u host.User, w userRequest, ch *py.Dict) error {
	has := func(key string) bool { _, ok := ch.GetStr(key); return ok }
	if has("passwd") {
		if err := setPassword(c, w.password); err != nil {
			return err
		}
	}
	if has("empty_password") {
		if err := accountTool(c, "passwd", "-d", c.Name); err != nil {
			return err
		}
	}
	if v, ok := ch.GetStr("password_lock"); ok {
		if err := lockPassword(c, py.Truth(v)); err != nil {
			return err
		}
	}
	ages := agings()
	if has("date") {
		if err := chage(c, ages[0]); err != nil {
			return err
		}
	}
	if err := changeHome(c, u, ch); err != nil {
		return err
	}
	for _, a := range ages[1:] {
		if !has(a.arg) {
			continue
		}
		if err := chage(c, a); err != nil {
			return err
		}
	}
	for _, o := range []struct{ key, flag, have string }{{"uid", "-u", strconv.Itoa(u.UID)}, {"gid", "-g", strconv.Itoa(u.GID)}, {"shell", "-s", u.Shell}} {
		if v, ok := ch.GetStr(o.key); ok && py.Str(v) != o.have {
			if err := accountTool(c, "usermod", o.flag, py.Str(v), c.Name); err != nil {
				return err
			}
		}
	}
	for _, f := range gecosFields() {
		if !has(f) {
			continue
		}
		if err := changeGecos(c, f, c.Str(f, "")); err != nil {
			return err
		}
	}
	if v, ok := ch.GetStr("groups"); ok {
		return changeGroups(c, core.Texts(v), !c.Bool("remove_groups", true))
	}
	return nil
}

// changeHome changes the home of the account, and creates a missing one.
func changeHome(c *core.Call, u host.User, ch *py.Dict) error {
	if home, ok := ch.GetStr("home"); ok {
		argv := []string{"usermod"}
		if c.Bool("persist_home", false) {
			if err := c.Manual(); err != nil { // its contents stay at the new place
				return err
			}
			argv = append(argv, "-m")
		}
		if err := accountTool(c, append(argv, "-d", py.Str(home), c.Name)...); err != nil {
			return err
		}
	}
	if dir, ok := ch.GetStr("homeDoesNotExist"); ok {
		return makeHome(c, py.Str(dir), u)
	}
	return nil
}
