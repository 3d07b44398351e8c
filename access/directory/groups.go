package directory

import (
	"fmt"
	"slices"
	"strings"

	"corpus-git/access"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// Groups are the permissions that groups of the directory give.
type Groups []struct {
	access.GroupRight
	dn string
}

// ParseGroups parses ldap.groups: RIGHT PROJECT DN, where * is all projects.
func ParseGroups(lines []string) (out Groups, err error) {
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
		if !SameDN(item.dn, item.dn) {
			return nil, bad(fmt.Errorf("%q is not a DN", item.dn))
		}
		out = append(out, item)
	}
	return out, nil
}

// Rights returns the permissions that groups give, each once.
func (g Groups) Rights(groups []string) []access.GroupRight {
	out := []access.GroupRight{}
	for _, item := range g {
		if !slices.Contains(out, item.GroupRight) && slices.ContainsFunc(groups, func(dn string) bool { return SameDN(dn, item.dn) }) {
			out = append(out, item.GroupRight)
		}
	}
	return out
}
