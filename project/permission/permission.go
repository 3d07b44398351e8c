// Package permission holds the rules of owners, modes and access control lists that a project's configuration sets by path, and reads them.
//
// It owns what a rule may say. It changes no file and knows no account: procedures/permissions applies the rules.
package permission

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"corpus-git/internal/py"
)

// Rule is the rule of the procedure fixperms for a path and everything below it, down to a path with a rule of its own. What a rule
// leaves out comes from the rule of the nearest folder above, or from the defaults.
type Rule struct {
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

// Keys returns the keys of a rule.
func Keys() []string { return []string{"user", "group", "dirs", "files", "acl"} }

// account is what useradd(8) takes without complaint.
var account = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)

// ValidAccount reports whether useradd(8) takes a name of a user or a group without complaint.
func ValidAccount(name string) bool { return account.MatchString(name) }

// ValidPath reports whether a path starts with project, data or pillar, is clean, and leads into no .git.
func ValidPath(p string) bool {
	tree, _, _ := strings.Cut(p, "/")
	return slices.Contains([]string{"project", "data", "pillar"}, tree) && path.Clean(p) == p && !strings.ContainsRune(p, 0) &&
		!slices.Contains(strings.Split(p, "/"), ".git")
}

// Set takes in the value of a key. The error says what the value must be, without the key.
func (r *Rule) Set(key string, v any) error {
	switch key {
	case "user", "group":
		s, ok := owner(v)
		if !ok {
			return errors.New("must be a name, a number, or keep")
		}
		if key == "user" {
			r.User = s
		} else {
			r.Group = s
		}
	case "dirs", "files":
		m, ok := mode(v)
		if !ok {
			return errors.New("must be four octal digits in quotes such as '0640', or keep")
		}
		if key == "dirs" {
			r.Dirs = m
		} else {
			r.Files = m
		}
	case "acl":
		list, ok := v.(*py.List)
		if !ok {
			return errors.New("must be a list of entries such as group:ops:rX")
		}
		r.HasACL = true
		seen := map[string]bool{}
		for _, x := range list.Items() {
			s, _ := x.(string)
			e, ok := parseACL(s)
			if !ok {
				return errors.New("an entry must be [default:]user:NAME:rwx or [default:]group:NAME:rwx, with - for none and X for execute on folders only")
			}
			if id := fmt.Sprint(e.Default, e.Group, e.Name); seen[id] {
				return errors.New("duplicate entry")
			} else {
				seen[id] = true
			}
			r.ACL = append(r.ACL, e)
		}
	default:
		return fmt.Errorf("unknown key; use one of: %s", strings.Join(Keys(), ", "))
	}
	return nil
}

func owner(v any) (string, bool) {
	switch x := v.(type) {
	case int64:
		return strconv.FormatInt(x, 10), x >= 0 && x < 1<<32-1
	case string:
		n, err := strconv.ParseUint(x, 10, 32)
		return x, ValidAccount(x) || err == nil && n < 1<<32-1
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

func parseACL(s string) (e ACLEntry, ok bool) {
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
