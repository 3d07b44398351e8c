package project

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"corpus-git/internal/py"
)

// Permission is the rule of the procedure fixperms for a path and everything below it, down to a path with a rule of its own. What a rule
// leaves out comes from the rule of the nearest folder above, or from the defaults.
type Permission struct {
	// Path starts with project, data or pillar: "project/var/uploads".
	Path string
	// User and Group are names or numbers; "" takes them from the folder above, Keep leaves the file's.
	User, Group string
	// Dirs and Files are modes, nil if not set; KeepMode leaves modes as they are.
	Dirs, Files *Mode
	// ACL are the named entries; HasACL makes these the only ones, even if there are none.
	ACL    []ACLEntry
	HasACL bool
}

// Keep as an owner leaves the owner that a file has.
const Keep = "keep"

// Mode is twelve mode bits, or KeepMode.
type Mode struct {
	Bits uint32
	Keep bool
}

// ACLEntry is one named entry of an access control list (acl(5)).
type ACLEntry struct {
	// Default entries are for folders, and are inherited by what is created there.
	Default bool
	// Group entries name a group, others a user.
	Group bool
	Name  string
	// Bits are the permissions, 0 to 7. X is execute for folders, and for files that are executable for anybody.
	Bits uint32
	X    bool
}

// KeyError is an error below a key of the configuration.
type KeyError struct {
	// Keys lead to what is wrong: permissions, the path, the key.
	Keys []string
	Text string
}

// Error names the keys.
func (e *KeyError) Error() string { return strings.Join(e.Keys, ":") + ": " + e.Text }

const permissionsKey = "permissions"

// permissions reads and checks the key of this name, after references in it are resolved.
func (c *Cfg) permissions() error {
	top := c.root.get([]string{permissionsKey})
	if top.sub == nil {
		if top.value == nil {
			return nil
		}
		return permissionError(top.layer, "must be a mapping of paths, not "+py.TypeName(top.value), permissionsKey)
	}
	var err error
	rules := map[string]Permission{}
	top.sub.each(func(l *leaf) {
		if err != nil {
			return
		}
		p, ok := l.key.(string)
		if !ok || !permissionPath(p) {
			err = permissionError(l.nearest(top.layer), "must be a path that starts with project, data or pillar, without . and ..", permissionsKey, py.Str(l.key))
			return
		}
		r := Permission{Path: p}
		if l.sub == nil {
			err = permissionError(l.layer, "must be a mapping of "+strings.Join(permissionKeys(), ", "), permissionsKey, p)
			return
		}
		l.sub.each(func(l *leaf) {
			if err == nil {
				err = r.set(l)
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

func permissionKeys() []string { return []string{"user", "group", "dirs", "files", "acl"} }

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

func permissionPath(p string) bool {
	tree, _, _ := strings.Cut(p, "/")
	return slices.Contains([]string{"project", "data", "pillar"}, tree) && path.Clean(p) == p && !strings.ContainsRune(p, 0) &&
		!slices.Contains(strings.Split(p, "/"), ".git")
}

func (r *Permission) set(l *leaf) error {
	key, _ := l.key.(string)
	bad := func(format string, args ...any) error {
		return permissionError(l.layer, fmt.Sprintf(format, args...), permissionsKey, r.Path, py.Str(l.key))
	}
	if l.sub != nil {
		return bad("must not be a mapping")
	}
	switch key {
	case "user", "group":
		s, ok := owner(l.value)
		if !ok {
			return bad("must be a name, a number, or keep")
		}
		if key == "user" {
			r.User = s
		} else {
			r.Group = s
		}
	case "dirs", "files":
		m, ok := mode(l.value)
		if !ok {
			return bad("must be four octal digits in quotes such as '0640', or keep")
		}
		if key == "dirs" {
			r.Dirs = m
		} else {
			r.Files = m
		}
	case "acl":
		list, ok := l.value.(*py.List)
		if !ok {
			return bad("must be a list of entries such as group:ops:rX")
		}
		r.HasACL = true
		seen := map[string]bool{}
		for _, x := range list.Items() {
			s, _ := x.(string)
			e, ok := aclEntry(s)
			if !ok {
				return bad("an entry must be [default:]user:NAME:rwx or [default:]group:NAME:rwx, with - for none and X for execute on folders only")
			}
			if id := fmt.Sprint(e.Default, e.Group, e.Name); seen[id] {
				return bad("duplicate entry")
			} else {
				seen[id] = true
			}
			r.ACL = append(r.ACL, e)
		}
	default:
		return bad("unknown key; use one of: %s", strings.Join(permissionKeys(), ", "))
	}
	return nil
}

func owner(v any) (string, bool) {
	switch x := v.(type) {
	case int64:
		return strconv.FormatInt(x, 10), x >= 0 && x < 1<<32-1
	case string:
		n, err := strconv.ParseUint(x, 10, 32)
		return x, account.MatchString(x) || err == nil && n < 1<<32-1
	}
	return "", false
}

// mode requires a string: YAML 1.1 reads 0640 as 416, and 2770 as a decimal number.
func mode(v any) (*Mode, bool) {
	s, ok := v.(string)
	if !ok {
		return nil, false
	}
	if s == Keep {
		return &Mode{Keep: true}, true
	}
	n, err := strconv.ParseUint(s, 8, 32)
	return &Mode{Bits: uint32(n)}, err == nil && (len(s) == 3 || len(s) == 4)
}

func aclEntry(s string) (e ACLEntry, ok bool) {
	s, e.Default = strings.CutPrefix(s, "default:")
	kind, rest, _ := strings.Cut(s, ":")
	name, bits, ok := strings.Cut(rest, ":")
	_, named := owner(name)
	if !ok || !named || name == Keep || (kind != "user" && kind != "group") || bits == "" {
		return e, false
	}
	e.Group, e.Name = kind == "group", name
	for _, b := range bits {
		switch b {
		case 'r':
			e.Bits |= 4
		case 'w':
			e.Bits |= 2
		case 'x':
			e.Bits |= 1
		case 'X':
			e.X = true
		case '-':
		default:
			return e, false
		}
	}
	return e, true
}

// Permissions returns the project's own rules for fixperms, in byte order of paths; none leaves the defaults.
func (c *Cfg) Permissions() []Permission { return c.perms }
