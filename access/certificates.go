package access

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// certificateCredential is the prefix of Identity.Fingerprint for a certificate.
const certificateCredential = "cert:"

// Certificate is a certificate that logged in and has not expired.
type Certificate struct {
	KeyID  string `json:"key_id"`
	Serial uint64 `json:"serial"`
	// CA is the fingerprint of its CA.
	CA        string    `json:"ca"`
	Principal string    `json:"principal"`
	Expires   time.Time `json:"expires,omitzero"`
	LastUsed  time.Time `json:"last_used"`
}

// trust holds the trusted CA keys, and the revoked keys.
type trust struct {
	mu      sync.Mutex
	cas     []ssh.PublicKey
	revoked revokedFile
}

// SetTrust sets the CA keys whose certificates may log in, each in the format of an authorized_keys line, and the file that lists revoked keys: a list of
// public keys or a KRL (ssh-keygen(1), "KEY REVOCATION LISTS"); "" means none. The file is read again when it changes. A key that does not
// parse, and a file that can't be read, are errors, and change nothing.
func (s *Store) SetTrust(cas []string, revoked string) error {
	var keys []ssh.PublicKey
	for i, line := range cas {
		k, _, err := ParsePublicKey([]byte(line))
		if err != nil {
			return fault.New(fault.Usage, fmt.Sprintf("ssh_ca_keys, item %d", i+1), "%w", err)
		}
		keys = append(keys, k)
	}
	f := revokedFile{path: revoked}
	if _, err := f.read(); err != nil {
		return fault.New(fault.Usage, "ssh_revoked_keys", "%w", err).WithHint("it is a list of public keys, or made by  ssh-keygen -k -f FILE")
	}
	s.trust.mu.Lock()
	defer s.trust.mu.Unlock()
	s.trust.cas, s.trust.revoked = keys, f
	return nil
}

// now returns the CA keys and the revoked keys.
func (t *trust) now() ([]ssh.PublicKey, *revocations, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, err := t.revoked.read()
	if err != nil {
		return nil, nil, fault.New(fault.Internal, "ssh_revoked_keys", "%w", err)
	}
	return t.cas, r, nil
}

// isRevoked reports whether a key or certificate must no longer log in.
func (s *Store) isRevoked(k ssh.PublicKey) (bool, error) {
	_, r, err := s.trust.now()
	return err != nil || r.has(k), err
}

// Revoked reports whether a key or certificate is in the list of revoked keys. An error reports that this is unknown.
func (s *Store) Revoked(k ssh.PublicKey) (bool, error) { return s.isRevoked(k) }

// Offer is a key offered for a login.
type Offer struct {
	Key ssh.PublicKey
	// User is the name before the @, From the address of the peer.
	User, From string
	// Proven reports that the peer has signed with the key: the login is recorded.
	Proven bool
}

// Identify returns the identity for a key or a certificate. ok is false if it may not log in.
func (s *Store) Identify(ctx context.Context, o Offer) (who Identity, ok bool, err error) {
	cert, isCert := o.Key.(*ssh.Certificate)
	if !isCert {
		k, ok, err := s.FindByKey(ctx, o.Key)
		if err == nil && !ok {
			return s.identifyByDirectory(ctx, o)
		}
		return Identity{Name: k.Principal, Fingerprint: k.Fingerprint, Admin: k.Admin, From: o.From}, ok, err
	}
	if err := s.checkCertificate(cert, o.From); err != nil {
		if fault.KindOf(err) == fault.Internal {
			return Identity{}, false, err
		}
		return Identity{}, false, nil
	}
	p, ok, err := s.principalOf(ctx, cert, o.User)
	if err != nil || !ok {
		return Identity{}, false, err
	}
	who = Identity{Name: p.Name, Fingerprint: certificateCredential + certificateHash(cert), Admin: p.Admin, From: o.From}
	if o.Proven {
		err = s.noteCertificate(ctx, cert, who)
	}
	return who, err == nil, err
}

// principalOf returns the principal of a certificate: the user before the @ if the certificate lists it, otherwise the only listed one that
// exists here. A certificate without principals has none, as with sshd's TrustedUserCAKeys.
func (s *Store) principalOf(ctx context.Context, cert *ssh.Certificate, user string) (Principal, bool, error) {
	if slices.Contains(cert.ValidPrincipals, user) {
		if p, ok, err := s.active(ctx, user); ok || err != nil {
			return p, ok, err
		}
	}
	var found []Principal
	for _, name := range cert.ValidPrincipals {
		p, ok, err := s.active(ctx, name)
		if err != nil {
			return Principal{}, false, err
		}
		if ok {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		return Principal{}, false, nil
	}
	return found[0], true, nil
}

// maxPrincipals limits the number of names in a certificate.
const maxPrincipals = 64

func refusedCertificate(format string, args ...any) error {
	return fault.New(fault.Refused, "certificate", format, args...)
}

// checkCertificate refuses a certificate that must not log in from an address: one of another CA, revoked, expired or not yet valid, with a critical
// option other than source-address, or used from elsewhere. Source of the rules: OpenSSH, PROTOCOL.certkeys.
func (s *Store) checkCertificate(cert *ssh.Certificate, from string) error {
	cas, revoked, err := s.trust.now()
	if err != nil {
		return err
	}
	ca := cert.SignatureKey.Marshal()
	if !slices.ContainsFunc(cas, func(k ssh.PublicKey) bool { return string(k.Marshal()) == string(ca) }) {
		return refusedCertificate("its CA %s is not trusted", Fingerprint(cert.SignatureKey))
	}
	if cert.CertType != ssh.UserCert {
		return refusedCertificate("it is not a user certificate")
	}
	if err := checkKey(cert.Key); err != nil {
		return err
	}
	if cert.Signature == nil || cert.Signature.Format == ssh.KeyAlgoRSA { // SHA-1, which is not in OpenSSH's CASignatureAlgorithms
		return refusedCertificate("it is signed with SHA-1")
	}
	if len(cert.ValidPrincipals) == 0 || len(cert.ValidPrincipals) > maxPrincipals {
		return refusedCertificate("it names no user, or too many users")
	}
	if source, ok := cert.CriticalOptions["source-address"]; ok && !within(from, source) {
		return refusedCertificate("it is not valid for %s", from)
	}
	checker := ssh.CertChecker{
		SupportedCriticalOptions: []string{"source-address"}, Clock: s.now,
		IsRevoked: func(c *ssh.Certificate) bool { return revoked.has(c) },
	}
	if err := checker.CheckCert(cert.ValidPrincipals[0], cert); err != nil {
		return refusedCertificate("%w", err)
	}
	return nil
}

// within reports whether an address is in a list of addresses and networks (CIDR), in the format of source-address. An invalid list contains nothing.
func within(from, list string) bool {
	host, _, err := net.SplitHostPort(from)
	if err != nil {
		host = from
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	ip = ip.Unmap().WithZone("")
	in := false
	for item := range strings.SplitSeq(list, ",") {
		network, err := netip.ParsePrefix(item)
		if err != nil {
			one, err := netip.ParseAddr(item)
			if err != nil {
				return false
			}
			network = netip.PrefixFrom(one, one.BitLen())
		}
		in = in || network.Contains(ip)
	}
	return in
}

func certificateHash(cert *ssh.Certificate) string {
	h := sha256.Sum256(cert.Marshal())
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(h[:])
}

// noteCertificate stores a certificate that logged in, so that it can be checked again for later requests, and deletes expired ones.
func (s *Store) noteCertificate(ctx context.Context, cert *ssh.Certificate, who Identity) error {
	now := s.now()
	var ends int64
	if cert.ValidBefore != ssh.CertTimeInfinity && cert.ValidBefore < uint64(1)<<33 {
		ends = time.Unix(int64(cert.ValidBefore), 0).UnixNano()
	}
	hash := strings.TrimPrefix(who.Fingerprint, certificateCredential)
	var last int64
	err := s.db.QueryRowContext(ctx, `SELECT last_used FROM certificates WHERE hash = ? AND principal = ?`, hash, who.Name).Scan(&last)
	if err == nil && now.Sub(time.Unix(0, last)).Abs() < time.Minute || err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if _, err := s.db.ExecContext(ctx, `DELETE FROM certificates WHERE expires <> 0 AND expires < ?`, now.UnixNano()); err != nil {
		return err
	}
	_, err = s.db.ExecContext(ctx, `INSERT INTO certificates(hash, principal, key_id, serial, ca, blob, expires, last_used) VALUES (?,?,?,?,?,?,?,?)
		ON CONFLICT(hash, principal) DO UPDATE SET last_used = excluded.last_used`,
		hash, who.Name, printable.Clip(cert.KeyId, 200), fmt.Sprint(cert.Serial), Fingerprint(cert.SignatureKey), cert.Marshal(), ends, now.UnixNano())
	return err
}

// certificateValid reports whether a certificate that logged in is still valid.
func (s *Store) certificateValid(ctx context.Context, who Identity) (bool, error) {
	var blob []byte
	err := s.db.QueryRowContext(ctx, `SELECT blob FROM certificates WHERE hash = ? AND principal = ?`, strings.TrimPrefix(who.Fingerprint, certificateCredential), who.Name).Scan(&blob)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	key, err := ssh.ParsePublicKey(blob)
	cert, ok := key.(*ssh.Certificate)
	if err != nil || !ok {
		return false, err
	}
	err = s.checkCertificate(cert, who.From)
	if err != nil && fault.KindOf(err) != fault.Internal {
		return false, nil
	}
	return err == nil, err
}

// ListCertificates returns the certificates that logged in as a principal, newest use first.
func (s *Store) ListCertificates(ctx context.Context, principal string) ([]Certificate, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT key_id, CAST(serial AS TEXT), ca, principal, expires, last_used FROM certificates
		WHERE principal = ? AND (expires = 0 OR expires > ?) ORDER BY last_used DESC`, principal, s.now().UnixNano())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Certificate
	for rows.Next() {
		var c Certificate
		var serial string
		var ends, used int64
		if err := rows.Scan(&c.KeyID, &serial, &c.CA, &c.Principal, &ends, &used); err != nil {
			return nil, err
		}
		if _, err := fmt.Sscan(serial, &c.Serial); err != nil {
			return nil, err
		}
		if ends != 0 {
			c.Expires = time.Unix(0, ends)
		}
		c.LastUsed = time.Unix(0, used)
		out = append(out, c)
	}
	return out, rows.Err()
}
