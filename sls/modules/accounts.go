package modules

import (
	"strconv"

	"corpus-git/internal/py"
	"corpus-git/sls/host"
)

func addAccounts(s table) {
	s.live("user.info", "name", func(c *call) (any, error) {
		u, err := c.Host.Users.User(c.str("name", ""))
		if err != nil {
			return py.NewDict(), nil
		}
		return c.userInfo(u), nil
	})
	s.live("group.info", "name", func(c *call) (any, error) {
		g, err := c.Host.Users.Group(c.str("name", ""))
		if err != nil {
			return py.NewDict(), nil
		}
		members := py.NewList()
		for _, m := range g.Members {
			members.Append(m)
		}
		return py.NewDict("name", g.Name, "passwd", "x", "gid", int64(g.GID), "members", members), nil
	})
	s.live("file.user_to_uid", "user", func(c *call) (any, error) {
		u, err := c.Host.Users.User(c.str("user", ""))
		if err != nil {
			return "", nil
		}
		return int64(u.UID), nil
	})
	s.live("file.group_to_gid", "group", func(c *call) (any, error) {
		g, err := c.Host.Users.Group(c.str("group", ""))
		if err != nil {
			return "", nil
		}
		return int64(g.GID), nil
	})
	s.live("user.current", "", func(c *call) (any, error) { return c.Host.Whoami(), nil })
}

func (c *call) userInfo(u host.User) *py.Dict {
	groups := py.NewList()
	if ids, err := c.Host.Users.GroupsOf(u); err == nil {
		for _, id := range ids {
			groups.Append(c.accountName(id, true))
		}
	}
	return py.NewDict("uid", int64(u.UID), "gid", int64(u.GID), "groups", groups, "home", u.Home, "name", u.Name,
		"passwd", "x", "shell", u.Shell, "fullname", u.Gecos)
}

// accountName returns the name of a user or group, or its number if it has none.
func (c *call) accountName(id int, group bool) string {
	if group {
		if g, err := c.Host.Users.GroupByID(id); err == nil {
			return g.Name
		}
	} else if u, err := c.Host.Users.UserByID(id); err == nil {
		return u.Name
	}
	return strconv.Itoa(id)
}
