package project

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/project/permission"
)

const (
	unitsKey = "units"
	logsKey  = "logs"
	maxUnits = 100
	maxGlobs = 100
)

// Units returns the units of the project, from the key units, in its order.
func (c *Cfg) Units() []Unit { return c.unitList }

// Logs returns the files that the key logs names, in its order.
func (c *Cfg) Logs() []LogFiles { return c.logList }

func unitError(l Layer, says string, keys ...string) error {
	e := cfgError(l, keys[0], "%s", says)
	e.Err = &KeyError{Keys: keys, Text: says}
	return e.WithHint("as in  units: {web: 'app-*.service', queue: {supervisor: 'app:*'}, old: {start: ./run start, stop: ./run stop, status: ./run status}}")
}

// units reads and validates the key of the same name, after references in it are resolved.
func (c *Cfg) units() error {
	top := c.root.get([]string{unitsKey})
	if top == nil || top.sub == nil && top.value == nil {
		return nil
	}
	add := func(u Unit, says string, l Layer, keys ...string) error {
		if says != "" {
			return unitError(l, says, keys...)
		}
		c.unitList = append(c.unitList, u)
		if len(c.unitList) > maxUnits {
			return unitError(top.layer, fmt.Sprintf("more than %d", maxUnits), unitsKey)
		}
		return nil
	}
	if top.sub == nil {
		list, says := textList(top.value)
		for _, text := range list {
			u := Unit{Name: text}
			if err := add(u, u.systemd(text), top.layer, unitsKey); err != nil {
				return err
			}
		}
		if says != "" {
			return unitError(top.layer, "must be a mapping of names, or a list of systemd units", unitsKey)
		}
		return nil
	}
	var err error
	top.sub.each(func(l *leaf) {
		name := py.Str(l.key)
		switch text, isText := l.value.(string); {
		case err != nil || l.sub == nil && l.value == nil: // null in a later layer removes a unit
		case !checkName.MatchString(name):
			err = unitError(l.nearest(top.layer), "a name has at most 64 of A-Z a-z 0-9 . _ -", unitsKey, name)
		case l.sub != nil:
			u, key, says := readUnit(name, l.sub)
			err = add(u, says, l.nearest(top.layer), append([]string{unitsKey, name}, key...)...)
		case isText:
			u := Unit{Name: name}
			err = add(u, u.systemd(text), l.layer, unitsKey, name)
		default:
			err = unitError(l.layer, "must be the name of a systemd unit, or a mapping", unitsKey, name)
		}
	})
	return err
}

// systemdGlob is a name of systemd.unit(5), with wildcards after its first character: a project can never match every unit of a
// machine.
var systemdGlob = regexp.MustCompile(`^[A-Za-z0-9:_.\\][A-Za-z0-9:_.\\@*?\[\]-]*$`)

// supervisorGlob is a program, GROUP:PROGRAM or GROUP:* of supervisord.
var supervisorGlob = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.:*?\[\]-]*$`)

func (u *Unit) systemd(text string) (says string) {
	u.Kind, u.Pattern = UnitSystemd, FullUnitName(text)
	if _, err := path.Match(text, ""); err != nil || len(text) > maxUnit || !systemdGlob.MatchString(text) {
		return "must be the name of a systemd unit or a glob such as app-*.service, which does not begin with a wildcard"
	}
	return ""
}

func (u *Unit) supervisor(text string) (says string) {
	u.Kind, u.Pattern = UnitSupervisor, text
	if _, err := path.Match(text, ""); err != nil || len(text) > maxUnit || !supervisorGlob.MatchString(text) {
		return "must be a program of supervisord or a glob such as app:*, which does not begin with a wildcard"
	}
	return ""
}

// readUnit reads one entry; key is the location of an error.
func readUnit(name string, t *tree) (u Unit, key []string, says string) {
	u.Name = name
	texts := map[string]*string{"start": &u.Start, "stop": &u.Stop, "restart": &u.Restart, "status": &u.Status, "user": &u.User}
	var kinds []UnitKind
	t.each(func(l *leaf) {
		k := py.Str(l.key)
		text, ok := l.value.(string)
		switch {
		case says != "" || l.sub == nil && l.value == nil:
			return
		case !ok || strings.TrimSpace(text) == "" || strings.ContainsRune(text, 0):
			says = "must be a text"
		case k == string(UnitSystemd):
			says = u.systemd(text)
			kinds = append(kinds, UnitSystemd)
		case k == string(UnitSupervisor):
			says = u.supervisor(text)
			kinds = append(kinds, UnitSupervisor)
		case texts[k] != nil:
			*texts[k] = text
		default:
			says = "unknown key; a unit has systemd, supervisor, or start, stop, restart, status and user"
		}
		if says != "" {
			key = []string{k}
		}
	})
	if says != "" {
		return u, key, says
	}
	own := u.Start + u.Stop + u.Restart + u.Status
	switch {
	case len(kinds) > 1 || len(kinds) == 1 && own+u.User != "":
		return u, nil, "is one of systemd, supervisor, or commands"
	case len(kinds) == 1:
		return u, nil, ""
	case own == "":
		return u, nil, "must have systemd, supervisor, or one of start, stop, restart, status"
	case u.User != "" && !permission.ValidAccount(u.User):
		return u, []string{"user"}, "must be the name of an account"
	}
	u.Kind = UnitCommand
	return u, nil, ""
}

// textList returns a string, or a list of strings.
func textList(v any) (out []string, says string) {
	items := []any{v}
	if list, ok := v.(*py.List); ok {
		items = list.Items()
	}
	for _, x := range items {
		text, ok := x.(string)
		if !ok || text == "" || strings.ContainsRune(text, 0) {
			return nil, "must be a text or a list of texts"
		}
		out = append(out, text)
	}
	return out, ""
}

// logs reads and validates the key of the same name. A path that is not absolute is relative to the live tree.
func (c *Cfg) logs(live string) error {
	top := c.root.get([]string{logsKey})
	if top == nil || top.sub == nil && top.value == nil {
		return nil
	}
	n := 0
	read := func(name string, l *leaf, keys ...string) error {
		list, says := textList(l.value)
		for i, g := range list {
			if !path.IsAbs(g) {
				g = path.Join(live, g)
			}
			if _, err := path.Match(g, ""); err != nil {
				says = "is not a glob: " + list[i]
			}
			list[i] = path.Clean(g)
		}
		if n += len(list); n > maxGlobs {
			says = fmt.Sprintf("more than %d", maxGlobs)
		}
		if says != "" {
			e := cfgError(l.nearest(top.layer), logsKey, "%s", says)
			e.Err = &KeyError{Keys: keys, Text: says}
			return e.WithHint("as in  logs: ['{data_root}/log/*.log']")
		}
		c.logList = append(c.logList, LogFiles{Name: name, Globs: list})
		return nil
	}
	if top.sub == nil {
		return read("", top, logsKey)
	}
	var err error
	top.sub.each(func(l *leaf) {
		name := py.Str(l.key)
		switch {
		case err != nil || l.sub == nil && l.value == nil:
		case !checkName.MatchString(name):
			err = read(name, &leaf{layer: l.layer}, logsKey, name)
		default:
			err = read(name, l, logsKey, name)
		}
	})
	return err
}
