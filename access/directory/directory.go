package directory

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-ldap/ldap/v3"

	"corpus-git/access"
	"corpus-git/internal/fault"
)

// Settings say where the directory is, and which names it uses.
type Settings struct {
	// URL is ldaps://HOST[:PORT], or ldap://HOST[:PORT], which is upgraded with StartTLS before anything else is sent.
	URL string
	// CAFile has the CA certificates for the server; "" uses those of the machine.
	CAFile string
	// BindDN and BindPassword are used to search; both empty search anonymously.
	BindDN, BindPassword string
	// Base is the DN below which users are, GroupBase that of groups; an empty GroupBase means Base.
	Base, GroupBase string
	// UserFilter finds a user, {user} being the name; GroupFilter the groups of an entry, {dn} being its DN and {user} the user's name.
	UserFilter, GroupFilter string
	// NameAttribute, MailAttribute and KeyAttribute are the attributes of a user's entry.
	NameAttribute, MailAttribute, KeyAttribute string
	// Timeout limits each query.
	Timeout time.Duration
}

// Limits of what an answer may contain.
const (
	maxGroups = 500
	maxDepth  = 10
	maxKeys   = 50
)

// Directory is an LDAP server.
type Directory struct {
	s   Settings
	tls *tls.Config
}

var _ access.Directory = (*Directory)(nil)

// New checks settings; it does not contact the server.
func New(s Settings) (*Directory, error) {
	bad := func(key, format string, args ...any) error { return fault.New(fault.Usage, key, format, args...) }
	u, err := url.Parse(s.URL)
	if err != nil || u.Hostname() == "" || u.Scheme != "ldaps" && u.Scheme != "ldap" || u.User != nil || strings.Trim(u.Path, "/") != "" {
		return nil, bad("ldap.url", "must be ldaps://HOST or ldap://HOST, with a port where it is another one")
	}
	if s.Base == "" {
		return nil, bad("ldap.base", "is missing: the base DN of the users")
	}
	if (s.BindDN == "") != (s.BindPassword == "") {
		return nil, bad("ldap.bind_dn", "is required with ldap.bind_password")
	}
	if !strings.Contains(s.UserFilter, "{user}") {
		return nil, bad("ldap.user_filter", "must hold {user}")
	}
	if !strings.Contains(s.GroupFilter, "{dn}") && !strings.Contains(s.GroupFilter, "{user}") {
		return nil, bad("ldap.group_filter", "must hold {dn} or {user}")
	}
	for key, f := range map[string]string{"ldap.user_filter": s.UserFilter, "ldap.group_filter": s.GroupFilter} {
		if _, err := ldap.CompileFilter(filled(f, "x", "cn=x")); err != nil {
			return nil, bad(key, "%w", err)
		}
	}
	if s.GroupBase == "" {
		s.GroupBase = s.Base
	}
	d := &Directory{s: s, tls: &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}}
	if s.CAFile != "" {
		text, err := os.ReadFile(s.CAFile)
		if err != nil {
			return nil, bad("ldap.ca_file", "%w", err)
		}
		d.tls.RootCAs = x509.NewCertPool()
		if !d.tls.RootCAs.AppendCertsFromPEM(text) {
			return nil, bad("ldap.ca_file", "%s contains no PEM certificate", s.CAFile)
		}
	}
	return d, nil
}

// filled inserts names into a filter, escaped (RFC 4515, 3).
func filled(filter, user, dn string) string {
	return strings.NewReplacer("{user}", ldap.EscapeFilter(user), "{dn}", ldap.EscapeFilter(dn)).Replace(filter)
}

// down returns the error for a directory that did not answer: trying again may help.
func (d *Directory) down(err error) error {
	return fault.New(fault.Busy, "ldap", "no response from the directory %s: %w", d.s.URL, err).WithHint("directory users cannot log in until it responds; local users can")
}

// open connects, over TLS. The connection ends with ctx.
func (d *Directory) open(ctx context.Context) (conn *ldap.Conn, done func(), err error) {
	conn, err = ldap.DialURL(d.s.URL, ldap.DialWithDialer(&net.Dialer{Timeout: d.s.Timeout}), ldap.DialWithTLSConfig(d.tls))
	if err != nil {
		return nil, nil, d.down(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	done = func() { stop(); _ = conn.Close() }
	conn.SetTimeout(d.s.Timeout)
	if strings.HasPrefix(d.s.URL, "ldap://") {
		if err := conn.StartTLS(d.tls); err != nil {
			done()
			return nil, nil, d.down(err)
		}
	}
	return conn, done, nil
}

// searcher is open, bound as the user that may search.
func (d *Directory) searcher(ctx context.Context) (*ldap.Conn, func(), error) {
	conn, done, err := d.open(ctx)
	if err != nil || d.s.BindDN == "" {
		return conn, done, err
	}
	if err := conn.Bind(d.s.BindDN, d.s.BindPassword); err != nil {
		done()
		return nil, nil, d.down(fmt.Errorf("logging in as %s: %w", d.s.BindDN, err))
	}
	return conn, done, nil
}

// Lookup finds a user by name. ok is false if there is none.
func (d *Directory) Lookup(ctx context.Context, name string) (e access.Entry, ok bool, err error) {
	conn, done, err := d.searcher(ctx)
	if err != nil {
		return access.Entry{}, false, err
	}
	defer done()
	return d.find(conn, name)
}

// Authenticate is Lookup with the user's password. ok is false if there is no such user, or the password is wrong.
func (d *Directory) Authenticate(ctx context.Context, name, password string) (e access.Entry, ok bool, err error) {
	if password == "" {
		return access.Entry{}, false, nil
	}
	if e, ok, err = d.Lookup(ctx, name); err != nil || !ok {
		return access.Entry{}, false, err
	}
	conn, done, err := d.open(ctx)
	if err != nil {
		return access.Entry{}, false, err
	}
	defer done()
	switch err := conn.Bind(e.DN, password); {
	case err == nil:
		return e, true, nil
	case ldap.IsErrorAnyOf(err, ldap.LDAPResultInvalidCredentials, ldap.LDAPResultInappropriateAuthentication, ldap.LDAPResultUnwillingToPerform, ldap.LDAPResultNoSuchObject):
		return access.Entry{}, false, nil
	default:
		return access.Entry{}, false, d.down(err)
	}
}

func (d *Directory) search(conn *ldap.Conn, base, filter string, limit int, attributes ...string) ([]*ldap.Entry, error) {
	res, err := conn.Search(ldap.NewSearchRequest(base, ldap.ScopeWholeSubtree, ldap.NeverDerefAliases, limit, int(d.s.Timeout/time.Second), false, filter, attributes, nil))
	switch {
	case ldap.IsErrorWithCode(err, ldap.LDAPResultNoSuchObject):
		return nil, d.down(fmt.Errorf("there is no entry %s", base))
	case ldap.IsErrorWithCode(err, ldap.LDAPResultSizeLimitExceeded) && res != nil:
		return res.Entries, nil
	case err != nil:
		return nil, d.down(err)
	}
	return res.Entries, nil // res.Referrals are not followed
}

func (d *Directory) find(conn *ldap.Conn, name string) (e access.Entry, ok bool, err error) {
	if _, err := access.ParseName(name); err != nil {
		return e, false, nil
	}
	found, err := d.search(conn, d.s.Base, filled(d.s.UserFilter, name, ""), 2, d.s.NameAttribute, d.s.MailAttribute, d.s.KeyAttribute)
	if err != nil || len(found) == 0 {
		return e, false, err
	}
	if len(found) > 1 {
		return e, false, fault.New(fault.Refused, "ldap", "more than one entry of the directory is %s: %s and %s", name, found[0].DN, found[1].DN).
			WithHint("make ldap.user_filter more specific")
	}
	e.DN = found[0].DN
	// The directory ignores case: its own spelling is used as the name.
	for _, v := range found[0].GetEqualFoldAttributeValues(d.s.NameAttribute) {
		if strings.EqualFold(v, name) {
			e.Name = v
		}
	}
	if e.Name == "" {
		return access.Entry{}, false, fault.New(fault.Refused, "ldap", "the entry %s was found for %s, but its %s differs", e.DN, name, d.s.NameAttribute)
	}
	e.Email = found[0].GetEqualFoldAttributeValue(d.s.MailAttribute)
	for _, v := range found[0].GetEqualFoldAttributeValues(d.s.KeyAttribute) {
		if len(e.Keys) == maxKeys {
			break
		}
		e.Keys = append(e.Keys, v)
	}
	e.Groups, err = d.groups(conn, e.DN, e.Name)
	return e, err == nil, err
}

// groups returns the DNs of the groups of a user, of the groups that contain these, and so on.
func (d *Directory) groups(conn *ldap.Conn, dn, user string) ([]string, error) {
	var out []string
	seen := map[string]bool{}
	level := []string{dn}
	for depth := 0; depth < maxDepth && len(level) > 0; depth++ {
		var next []string
		for _, member := range level {
			found, err := d.search(conn, d.s.GroupBase, filled(d.s.GroupFilter, user, member), maxGroups, "1.1") // no attributes: RFC 4511, 4.5.1.8
			if err != nil {
				return nil, err
			}
			for _, g := range found {
				if key := strings.ToLower(g.DN); !seen[key] {
					seen[key] = true
					next, out = append(next, g.DN), append(out, g.DN)
				}
			}
			if len(out) > maxGroups {
				return nil, fault.New(fault.Refused, "ldap", "%s is in more than %d groups", dn, maxGroups).WithHint("make ldap.group_filter more specific")
			}
		}
		level, user = next, "" // the name of a user is not that of a group
	}
	return out, nil
}

// SameDN reports whether two DNs name the same entry.
func SameDN(a, b string) bool {
	x, err := ldap.ParseDN(a)
	y, err2 := ldap.ParseDN(b)
	return errors.Join(err, err2) == nil && x.EqualFold(y)
}
