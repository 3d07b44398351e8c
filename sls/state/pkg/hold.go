package pkg

import (
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
	"corpus-git/sls/state/core"
)

// held is the result of holding a package, or of no longer holding it.
type held struct {
	name    string
	result  core.Tri
	comment string
	// old and new are the states of selection, if it changed; old is nil if dpkg has none under that name.
	old, new any
}

func (h held) changed() bool { return h.new != nil }

// selections returns what dpkg is set to do with packages, by name. Source: dpkg(1), --get-selections.
func selections(c *core.Call, pattern string) (map[string]string, error) {
	out, err := c.Query("dpkg", "--get-selections", pattern)
	if err != nil && out == "" {
		return map[string]string{}, nil // dpkg fails where nothing matches
	}
	all := map[string]string{}
	for _, l := range strings.Split(out, "\n") {
		if f := strings.Fields(l); len(f) == 2 {
			all[f[0]] = f[1]
		}
	}
	return all, nil
}

func selectPkg(c *core.Call, name, state string) error {
	_, err := c.ToolShell(host.Shell{Argv: []string{"dpkg", "--set-selections"}, Stdin: name + " " + state})
	return err
}

// holdAll holds packages, or releases them, as set by the argument hold; nil if it is not set.
func holdAll(c *core.Call, names []string) (out []held, err error) {
	v, said := c.Args.GetStr("hold")
	if !said {
		return nil, nil
	}
	for _, n := range names {
		h, err := holdOne(c, n, py.Truth(v))
		if err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	return out, nil
}

func holdOne(c *core.Call, name string, on bool) (held, error) {
	h := held{name: name, result: core.True}
	now, err := selections(c, name)
	if err != nil {
		return h, err
	}
	state, words := "install", [3]string{"is set not to be held", "is no longer being held", "is already set not to be held"}
	if on {
		state, words = "hold", [3]string{"is set to be held", "is now being held", "is already set to be held"}
	}
	is := false
	for _, s := range now {
		is = is || s == "hold"
	}
	switch {
	case !on && len(now) == 0:
		h.result, h.comment = core.False, "Package "+name+" does not have a state."
	case is == on:
		h.comment = "Package " + name + " " + words[2] + "."
	case c.Test:
		h.result, h.comment = core.None, "Package "+name+" "+words[0]+"."
	default:
		all, err := selections(c, "*")
		if err != nil {
			return h, err
		}
		if err := selectPkg(c, name, state); err != nil {
			return h, core.Errorf("failed to set state %s for package %s", state, name)
		}
		h.comment, h.new = "Package "+name+" "+words[1]+".", state
		if was, ok := all[name]; ok {
			h.old = was
		}
	}
	return h, nil
}

// heldTargets returns the held packages among those that are to be installed: they are released for that, and held again.
func heldTargets(c *core.Call, targets []string) ([]string, error) {
	all, err := selections(c, "*")
	if err != nil {
		return nil, err
	}
	var out []string
	for n, s := range all {
		if s == "hold" && slices.ContainsFunc(targets, func(t string) bool { bare, _, _ := strings.Cut(t, "="); return bare == n }) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}

// withHolds adds to the return of packages that need no change already what hold did.
func withHolds(c *core.Call, r core.Return, names []string) core.Return {
	holds, err := holdAll(c, names)
	if err != nil {
		return core.Failf("%s", err)
	}
	for _, kind := range []func(held) bool{held.changed,
		func(h held) bool { return !h.changed() && h.result == core.True }, func(h held) bool { return h.result != core.True }} {
		for _, h := range holds {
			if !kind(h) {
				continue
			}
			r.Comment += ".\n" + h.comment
			r.Result = h.result
			if h.changed() {
				r.Set(h.name, py.NewDict("old", h.old, "new", h.new))
			}
		}
	}
	return r
}

// show adds a hold to the change of version of the same package.
func (h held) show(changes *py.Dict) {
	was, ok := changes.GetStr(h.name)
	d, isDict := was.(*py.Dict)
	if !ok || !isDict {
		changes.SetStr(h.name, py.NewDict("new", h.new))
		return
	}
	for key, v := range map[string]any{"old": h.old, "new": h.new} {
		s := core.DictText(d, key)
		if s != "" {
			s += "\n"
		}
		d.SetStr(key, s+py.Str(v))
	}
}
