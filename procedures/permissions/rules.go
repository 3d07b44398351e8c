package permissions

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/project"
	"corpus-git/project/permission"
	"corpus-git/sls/host"
)

// phase is the operation named in errors.
const phase = "fixperms"

// Rule is the wanted state of entries; -1 keeps an owner.
type Rule struct {
	uid, gid int
	// setgid sets the set-group-ID bit of folders.
	setgid bool
	// groupFromOwner gives the group the owner's permissions.
	groupFromOwner bool
	// umask are the mode bits that no entry may have.
	umask uint32
	// dirs and files are the modes that the project sets, nil if it sets none; with KeepMode modes are left as they are.
	dirs, files         *uint32
	keepDirs, keepFiles bool
	// acl is nil if access control lists are left alone.
	acl *acl
	// others skips what belongs to another account than uid and root, and pid files of root: daemons need them unchanged. all skips
	// everything: the content of a folder of such an account. A rule that sets an owner has neither.
	others, all bool
}

// Owner returns the owner and permissions for a new file.
func (r *Rule) Owner() *project.Owner {
	return &project.Owner{UID: r.uid, GID: r.gid, Perm: r.perm}
}

// leaves reports whether the owners of an entry are not changed, nor its mode if no rule sets one.
func (r *Rule) leaves(name string, st vfs.Stat) bool {
	switch {
	case !r.others || name == ".":
		return false
	case r.all, st.UID != 0 && (r.uid < 0 || st.UID != uint32(r.uid)):
		return true
	}
	return st.UID == 0 && st.IsRegular() && (name == "pid" || strings.HasSuffix(name, ".pid"))
}

// acl holds the named entries of an access control list.
type acl struct{ access, def []aclName }

type aclName struct {
	tag  uint16
	id   uint32
	bits uint32
	x    bool
}

// node is the rule of a path, and the rules of paths below it.
type node struct {
	rule *Rule
	sub  map[string]*node
}

// at descends to a name: the node there, nil if there are no rules, and the rule that applies.
func (n *node) at(name string, above *Rule) (*node, *Rule) {
	if n == nil {
		return nil, above
	}
	sub := n.sub[name]
	if sub == nil || sub.rule == nil {
		return sub, above
	}
	return sub, sub.rule
}

// place adds a project's rule below a tree; what it leaves out comes from the nearest rule above. look finds accounts.
func (n *node) place(p permission.Rule, owns bool, look Accounts) error {
	_, rel, _ := strings.Cut(p.Path, "/")
	at, above := n, n.rule
	for el := range strings.SplitSeq(rel, "/") {
		if rel == "" {
			break
		}
		if at.sub == nil {
			at.sub = map[string]*node{}
		}
		if at.sub[el] == nil {
			at.sub[el] = &node{}
		}
		if at = at.sub[el]; at.rule != nil {
			above = at.rule
		}
	}
	r := *above
	if owns {
		if err := r.owners(p, look); err != nil {
			return err
		}
	}
	set := func(m *permission.Mode, to **uint32, keep *bool) {
		if m != nil {
			*to, *keep = &m.Bits, m.Keep
		}
	}
	set(p.Dirs, &r.dirs, &r.keepDirs)
	set(p.Files, &r.files, &r.keepFiles)
	if p.HasACL {
		acl, err := aclNames(p, look)
		if err != nil {
			return err
		}
		r.acl = acl
	}
	at.rule = &r
	return nil
}

func (r *Rule) owners(p permission.Rule, look Accounts) error {
	r.others = r.others && p.User == "" && p.Group == ""
	for _, o := range []struct {
		name  string
		group bool
		to    *int
	}{{p.User, false, &r.uid}, {p.Group, true, &r.gid}} {
		switch o.name {
		case "":
		case permission.Keep:
			*o.to = -1
		default:
			id, ok, err := look.id(p.Path, o.name, o.group)
			if err != nil {
				return err
			}
			if *o.to = int(id); !ok {
				*o.to = -1
			}
		}
	}
	return nil
}

// Accounts looks up the names in rules.
type Accounts struct {
	Users host.Users
	// Missing receives accounts that do not exist yet and that a step may create; nil makes them an error.
	Missing *[]string
}

// id returns the ID of a user or a group; a number is its own ID. ok is false if there is no such account yet.
func (a Accounts) id(rule, name string, group bool) (id uint32, ok bool, err error) {
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(n), true, nil
	}
	kind := "user"
	if group {
		var g host.Group
		kind = "group"
		g, err = a.Users.Group(name)
		id = uint32(g.GID)
	} else {
		var u host.User
		u, err = a.Users.User(name)
		id = uint32(u.UID)
	}
	if err == nil {
		return id, true, nil
	}
	if a.Missing != nil {
		*a.Missing = append(*a.Missing, fmt.Sprintf("permissions:%s: there is no %s %s yet", rule, kind, name))
		return 0, false, nil
	}
	return 0, false, fault.New(fault.Failed, phase, "permissions:%s: %s %s: %w", rule, kind, name, err).
		WithHint("let a step create the account, or change the rule")
}

// The tags of posix_acl_xattr_entry, in the order that the kernel wants. Source: linux/posix_acl.h, acl(5).
const (
	aclUserObj  = 0x01
	aclUser     = 0x02
	aclGroupObj = 0x04
	aclGroup    = 0x08
	aclMask     = 0x10
	aclOther    = 0x20

	aclAccess  = "system.posix_acl_access"
	aclDefault = "system.posix_acl_default"
	aclVersion = 2
)

func aclNames(p permission.Rule, look Accounts) (*acl, error) {
	out := &acl{}
	for _, e := range p.ACL {
		id, ok, err := look.id(p.Path, e.Name, e.Group)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		n := aclName{tag: aclUser, id: id, bits: e.Bits, x: e.X}
		if e.Group {
			n.tag = aclGroup
		}
		if e.Default {
			out.def = append(out.def, n)
		} else {
			out.access = append(out.access, n)
		}
	}
	for _, l := range [][]aclName{out.access, out.def} {
		slices.SortFunc(l, func(a, b aclName) int {
			if a.tag != b.tag {
				return int(a.tag) - int(b.tag)
			}
			return int(int64(a.id) - int64(b.id))
		})
	}
	return out, nil
}

// encodeACL returns the extended attribute for a mode and named entries; nil if there are no named entries. mask is the new value of the
// group bits of the mode.
func encodeACL(perm uint32, names []aclName, x bool) (value []byte, mask uint32) {
	mask = perm >> 3 & 7
	if len(names) == 0 {
		return nil, mask
	}
	b := binary.LittleEndian.AppendUint32(nil, aclVersion)
	entry := func(tag uint16, bits, id uint32) {
		b = binary.LittleEndian.AppendUint16(b, tag)
		b = binary.LittleEndian.AppendUint16(b, uint16(bits))
		b = binary.LittleEndian.AppendUint32(b, id)
	}
	const none = ^uint32(0)
	named := func(tag uint16) {
		for _, n := range names {
			bits := n.bits
			if n.x && x {
				bits |= 1
			}
			if n.tag == tag {
				mask |= bits
				entry(tag, bits, n.id)
			}
		}
	}
	group := mask
	entry(aclUserObj, perm>>6&7, none)
	named(aclUser)
	entry(aclGroupObj, group, none)
	named(aclGroup)
	entry(aclMask, mask, none)
	entry(aclOther, perm&7, none)
	return b, mask
}

// aclGroupBits returns the owning group's permissions in an access control list; ok is false if the value is invalid.
func aclGroupBits(value []byte) (bits uint32, ok bool) {
	for i := 4; i+8 <= len(value); i += 8 {
		if binary.LittleEndian.Uint16(value[i:]) == aclGroupObj {
			return uint32(binary.LittleEndian.Uint16(value[i+2:])), true
		}
	}
	return 0, false
}

// wanted is the change of an entry: owners, -1 to keep one; mode bits; extended attributes to set.
type wanted struct {
	uid, gid int
	perm     uint32
	chmod    bool
	xattrs   []vfs.Xattr
}

func (w wanted) nothing() bool { return w.uid < 0 && w.gid < 0 && !w.chmod && len(w.xattrs) == 0 }

// want compares an entry with the rule; name is its last element, "." for the root of a tree. xattrs reads its extended attributes, and is
// called only if needed.
func (r *Rule) want(name string, st vfs.Stat, xattrs func() ([]vfs.Xattr, error)) (wanted, error) {
	w := wanted{uid: r.uid, gid: r.gid}
	if w.uid < 0 || uint32(w.uid) == st.UID {
		w.uid = -1
	}
	if w.gid < 0 || uint32(w.gid) == st.GID {
		w.gid = -1
	}
	var have []vfs.Xattr
	old := st.Perm()
	if r.acl != nil {
		var err error
		if have, err = xattrs(); err != nil {
			return w, err
		}
		if g, ok := aclGroupBits(valueOf(have, aclAccess)); ok {
			old = old&^0o070 | g<<3 // the mode shows the mask
		}
	}
	perm := r.perm(st.IsDir(), old)
	if r.leaves(name, st) {
		w.uid, w.gid = -1, -1
		if st.IsDir() && r.dirs == nil || !st.IsDir() && r.files == nil {
			perm = old
		}
	}
	if r.acl != nil {
		x := st.IsDir() || perm&0o111 != 0
		value, mask := encodeACL(perm, r.acl.access, x)
		w.set(have, aclAccess, value)
		if st.IsDir() {
			value, _ := encodeACL(perm, r.acl.def, true)
			w.set(have, aclDefault, value)
		}
		perm = perm&^0o070 | mask<<3
	}
	w.perm = perm
	// chown(2) may clear the set-ID bits, and a removed list leaves its mask behind.
	w.chmod = perm != st.Perm() || ((w.uid >= 0 || w.gid >= 0) && perm&0o6000 != 0) || len(w.xattrs) > 0
	return w, nil
}

func (w *wanted) set(have []vfs.Xattr, name string, value []byte) {
	if string(valueOf(have, name)) != string(value) {
		w.xattrs = append(w.xattrs, vfs.Xattr{Name: name, Value: value})
	}
}

func valueOf(xs []vfs.Xattr, name string) []byte {
	for _, x := range xs {
		if x.Name == name {
			return x.Value
		}
	}
	return nil
}

// perm returns the new mode of an entry with the mode old. A file that its owner may execute stays executable, for everyone who may read it.
func (r *Rule) perm(dir bool, old uint32) uint32 {
	switch {
	case dir && r.keepDirs, !dir && r.keepFiles:
		return old
	case dir && r.dirs != nil:
		return *r.dirs
	case !dir && r.files != nil:
		p := *r.files
		if old&0o100 != 0 {
			p |= p >> 2 & 0o111
		}
		return p
	}
	p := old
	if r.groupFromOwner {
		p = p&^0o070 | p>>3&0o070
	}
	p &^= r.umask
	if dir && r.setgid {
		p |= syscall.S_ISGID
	}
	return p
}
