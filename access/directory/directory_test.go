package directory_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/access/directory"
	"corpus-git/internal/fault"
	"corpus-git/internal/testutil"
)

const ldif = `dn: dc=example,dc=org
objectClass: dcObject
objectClass: organization
o: Example
dc: example

dn: ou=people,dc=example,dc=org
objectClass: organizationalUnit
ou: people

dn: ou=groups,dc=example,dc=org
objectClass: organizationalUnit
ou: groups

dn: uid=marie,ou=people,dc=example,dc=org
objectClass: inetOrgPerson
objectClass: ldapPublicKey
cn: Marie
sn: Curie
uid: marie
mail: marie@example.org
userPassword: radium
sshPublicKey: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f marie@laptop

dn: cn=Double 1,ou=people,dc=example,dc=org
objectClass: inetOrgPerson
cn: Double 1
sn: D
uid: double

dn: cn=Double 2,ou=people,dc=example,dc=org
objectClass: inetOrgPerson
cn: Double 2
sn: D
uid: double

dn: cn=developers,ou=groups,dc=example,dc=org
objectClass: groupOfNames
cn: developers
member: uid=marie,ou=people,dc=example,dc=org

dn: cn=staff,ou=groups,dc=example,dc=org
objectClass: groupOfNames
cn: staff
member: cn=developers,ou=groups,dc=example,dc=org
member: cn=circle,ou=groups,dc=example,dc=org

dn: cn=circle,ou=groups,dc=example,dc=org
objectClass: groupOfNames
cn: circle
member: cn=staff,ou=groups,dc=example,dc=org

dn: cn=unix,ou=groups,dc=example,dc=org
objectClass: posixGroup
cn: unix
gidNumber: 7
memberUid: marie

dn: cn=others,ou=groups,dc=example,dc=org
objectClass: groupOfNames
cn: others
member: cn=Double 1,ou=people,dc=example,dc=org

dn: ou=elsewhere,dc=example,dc=org
objectClass: referral
objectClass: extensibleObject
ou: elsewhere
ref: ldap://127.0.0.1:1/ou=people,dc=example,dc=com
`

func server(t *testing.T) *testutil.Slapd {
	if !testutil.HasSlapd() && os.Getenv("CI") != "true" {
		t.Skip("slapd is not installed")
	}
	s, err := testutil.NewSlapd(t.TempDir(), ldif)
	require.NoError(t, err)
	require.NoError(t, s.Start())
	t.Cleanup(s.Stop)
	return s
}

func settings(s *testutil.Slapd) directory.Settings {
	return directory.Settings{
		URL: s.URL, CAFile: s.CA, Base: "dc=example,dc=org", UserFilter: "(uid={user})", GroupFilter: "(|(member={dn})(memberUid={user}))",
		NameAttribute: "uid", MailAttribute: "mail", KeyAttribute: "sshPublicKey", Timeout: 5 * time.Second,
	}
}

func TestDirectory(t *testing.T) {
	s := server(t)
	for _, url := range []string{s.URL, s.StartTLS} {
		with := settings(s)
		with.URL, with.BindDN, with.BindPassword = url, "cn=admin,dc=example,dc=org", "admin"
		d, err := directory.New(with)
		require.NoError(t, err)
		e, ok, err := d.Lookup(t.Context(), "MARIE")
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "marie", e.Name, "the directory's own spelling")
		require.Equal(t, "marie@example.org", e.Email)
		require.Len(t, e.Keys, 1)
		require.ElementsMatch(t, []string{
			"cn=developers,ou=groups,dc=example,dc=org", "cn=unix,ou=groups,dc=example,dc=org", "cn=staff,ou=groups,dc=example,dc=org", "cn=circle,ou=groups,dc=example,dc=org",
		}, e.Groups, "groups in groups, in a circle, too")
		_, ok, err = d.Lookup(t.Context(), "nobody")
		require.NoError(t, err)
		require.False(t, ok)
	}
}

// The attacks: an empty password, which a server takes for an anonymous login that succeeds; a name that is a filter; a name that two entries have.
func TestPasswords(t *testing.T) {
	d, err := directory.New(settings(server(t)))
	require.NoError(t, err)
	for _, c := range []struct {
		name, password string
		want           bool
	}{
		{"marie", "radium", true}, {"marie", "polonium", false}, {"marie", "", false}, {"nobody", "radium", false}, {"", "radium", false},
		{"*", "radium", false}, {"mar*", "radium", false}, {"marie)(uid=*", "radium", false}, {"x)(|(uid=marie", "radium", false}, {"marie\x00", "radium", false},
	} {
		_, ok, err := d.Authenticate(t.Context(), c.name, c.password)
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, ok, c.name)
	}
	_, ok, err := d.Authenticate(t.Context(), "double", "radium")
	require.ErrorContains(t, err, "more than one entry of the directory is double")
	require.Equal(t, fault.Refused, fault.KindOf(err))
	require.False(t, ok)
}

// Who is between is not spoken to: no authority vouches for it. And a server that hangs ends in time.
func TestNobodyInBetween(t *testing.T) {
	s := server(t)
	for _, url := range []string{s.URL, s.StartTLS} {
		with := settings(s)
		with.URL, with.CAFile = url, ""
		d, err := directory.New(with)
		require.NoError(t, err)
		_, _, err = d.Authenticate(t.Context(), "marie", "radium")
		require.Equal(t, fault.Busy, fault.KindOf(err))
		require.ErrorContains(t, err, "certificate")
	}
	with := settings(s)
	with.URL = strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	d, err := directory.New(with)
	require.NoError(t, err)
	_, _, err = d.Lookup(t.Context(), "marie")
	require.ErrorContains(t, err, "certificate", "its certificate has another name")
	s.Stop()
	_, _, err = d.Lookup(context.Background(), "marie")
	require.Equal(t, fault.Busy, fault.KindOf(err))
}

func TestSettings(t *testing.T) {
	good := directory.Settings{URL: "ldaps://ldap.example.org", Base: "dc=x", UserFilter: "(uid={user})", GroupFilter: "(member={dn})"}
	_, err := directory.New(good)
	require.NoError(t, err)
	for want, change := range map[string]func(*directory.Settings){
		"ldap.url":          func(s *directory.Settings) { s.URL = "http://x" },
		"ldap.base":         func(s *directory.Settings) { s.Base = "" },
		"ldap.user_filter":  func(s *directory.Settings) { s.UserFilter = "(uid=marie)" },
		"ldap.group_filter": func(s *directory.Settings) { s.GroupFilter = "(member={dn}" },
		"ldap.bind_dn":      func(s *directory.Settings) { s.BindDN = "cn=x" },
		"ldap.ca_file":      func(s *directory.Settings) { s.CAFile = "/nowhere" },
	} {
		bad := good
		change(&bad)
		_, err := directory.New(bad)
		require.ErrorContains(t, err, want)
		require.Equal(t, fault.Usage, fault.KindOf(err))
	}
}
