package project

import (
	"maps"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/project/permission"
)

// KeyError is an error below a key of the configuration.
type KeyError struct {
	// Keys is the path to what is wrong: permissions, the path, the key.
	Keys []string
	Text string
}

// Error names the keys.
func (e *KeyError) Error() string { return strings.Join(e.Keys, ":") + ": " + e.Text }

const permissionsKey = "permissions"

// permissions reads and validates the key of the same name, after references in it are resolved.
func (c *Cfg) permissions() error {
	top := c.root.get([]string{permissionsKey})
	if top.sub == nil {
		if top.value == nil {
			return nil
		}
		return permissionError(top.layer, "must be a mapping of paths, not "+py.TypeName(top.value), permissionsKey)
	}
	var err error
	rules := map[string]permission.Rule{}
	top.sub.each(func(l *leaf) {
		if err != nil {
			return
		}
		p, ok := l.key.(string)
		if !ok || !permission.ValidPath(p) {
			err = permissionError(l.nearest(top.layer), "must be a path that starts with project, data or pillar, without . and ..", permissionsKey, py.Str(l.key))
			return
		}
		r := permission.Rule{Path: p}
		if l.sub == nil {
			err = permissionError(l.layer, "must be a mapping of "+strings.Join(permission.Keys(), ", "), permissionsKey, p)
			return
		}
		l.sub.each(func(l *leaf) {
			if err == nil {
				err = setPermission(&r, l)
			}
		})
		rules[p] = r
	})
	if err != nil {
		return err
	}
	for _, p := range slices.Sorted(maps.Keys(rules)) {
		c.perms = append(c.perms, rules[p])
	}
	return nil
}

// nearest returns the layer of the first value below.
func (l *leaf) nearest(or Layer) Layer {
	if l.sub == nil {
		return l.layer
	}
	out := or
	l.sub.each(func(s *leaf) { out = s.nearest(or) })
	return out
}

func permissionError(l Layer, says string, keys ...string) error {
	e := cfgError(l, keys[0], "%s", says)
	e.Err = &KeyError{Keys: keys, Text: says}
	return e.WithHint("as in  permissions: {project/uploads: {user: www-data, dirs: '2770', files: '0660', acl: ['group:ops:rX']}}")
}

func setPermission(r *permission.Rule, l *leaf) error {
	says := "must not be a mapping"
	if l.sub == nil {
		key, _ := l.key.(string)
		err := r.Set(key, l.value)
		if err == nil {
			return nil
		}
		says = err.Error()
	}
	return permissionError(l.layer, says, permissionsKey, r.Path, py.Str(l.key))
}

// Permissions returns the project's own rules for fixperms, in byte order of paths; none leaves the defaults.
func (c *Cfg) Permissions() []permission.Rule { return c.perms }
