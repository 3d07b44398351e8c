package app

import (
	"corpus-git/access"
	"corpus-git/access/directory"
	"corpus-git/project/config"
)

// setDirectory configures the LDAP directory; an empty URL turns it off.
func (c *core) setDirectory(l config.LDAP) error {
	if l.URL == "" {
		c.access.SetDirectory(nil, access.DirectoryPolicy{})
		return nil
	}
	d, err := directory.New(directory.Settings{
		URL: l.URL, CAFile: l.CAFile, BindDN: l.BindDN, BindPassword: string(l.BindPassword), Base: l.Base, GroupBase: l.GroupBase,
		UserFilter: l.UserFilter, GroupFilter: l.GroupFilter, NameAttribute: l.NameAttribute, MailAttribute: l.MailAttribute, KeyAttribute: l.KeyAttribute,
		Timeout: l.Timeout,
	})
	if err != nil {
		return err
	}
	groups, err := directory.ParseGroups(l.Groups)
	if err != nil {
		return err
	}
	c.access.SetDirectory(d, access.DirectoryPolicy{
		Rights: groups.Rights, TTL: l.TTL, Grace: max(l.Grace, l.TTL),
		Failed: func(err error) { c.log.Error().Err(err).Msg("asking the directory") },
	})
	return nil
}
