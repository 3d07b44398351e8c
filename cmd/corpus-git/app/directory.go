package app

import (
	"fmt"
	"slices"
	"strings"

	"corpus-git/access"
	"corpus-git/access/directory"
	"corpus-git/internal/fault"
	"corpus-git/project"
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
	groups, err := parseGroups(l.Groups)
	if err != nil {
		return err
	}
	c.access.SetDirectory(d, access.DirectoryPolicy{
		Rights: groups.of, TTL: l.TTL, Grace: max(l.Grace, l.TTL),
		Failed: func(err error) { c.log.Error().Err(err).Msg("asking the directory") },
	})
	return nil
}

// groupRights parses ldap.groups.
type groupRights []struct {
	access.GroupRight
	dn string
}

func parseGroups(lines []string) (out groupRights, err error) {
	for i, line := range lines {
		bad := func(err error) error {
			return fault.New(fault.Usage, fmt.Sprintf("ldap.groups, item %d", i+1), "%w", err).WithHint("such as  deploy app cn=developers,ou=groups,dc=example,dc=org")
		}
		words := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(words) != 3 {
			return nil, bad(fmt.Errorf("it must be RIGHT PROJECT DN"))
		}
		item := struct {
			access.GroupRight
			dn string
		}{dn: strings.TrimSpace(words[2])}
		if item.Right, err = project.ParseRight(words[0]); err != nil {
			return nil, bad(err)
		}
		if words[1] != "*" {
			if item.Project, err = project.ParseName(words[1]); err != nil {
				return nil, bad(err)
			}
		}
		if !directory.SameDN(item.dn, item.dn) {
			return nil, bad(fmt.Errorf("%q is not a DN", item.dn))
		}
		out = append(out, item)
	}
	return out, nil
}

// of returns the permissions that groups give, each once.
func (g groupRights) of(groups []string) []access.GroupRight {
	out := []access.GroupRight{}
	for _, item := range g {
		if !slices.Contains(out, item.GroupRight) && slices.ContainsFunc(groups, func(dn string) bool { return directory.SameDN(dn, item.dn) }) {
			out = append(out, item.GroupRight)
		}
	}
	return out
}
