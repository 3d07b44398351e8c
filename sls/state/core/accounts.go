package core

import (
	"slices"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
)

// UserName returns the name of a user ID, or the number if no user has it.
func (c *Call) UserName(uid int) string {
	if u, err := c.Host.Users.UserByID(uid); err == nil {
		return u.Name
	}
	return py.Str(int64(uid))
}

// GroupName returns the name of a group ID, or the number if no group has it.
func (c *Call) GroupName(gid int) string {
	if g, err := c.Host.Users.GroupByID(gid); err == nil {
		return g.Name
	}
	return py.Str(int64(gid))
}

// GroupsOf returns the names of all groups of a user, sorted; nil if they are not known.
func (c *Call) GroupsOf(u host.User) []string {
	ids, err := c.Host.Users.GroupsOf(u)
	if err != nil {
		return nil
	}
	var out []string
	for _, id := range ids {
		out = append(out, c.GroupName(id))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
