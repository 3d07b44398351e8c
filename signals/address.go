package signals

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/url"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/project"
)

// Prefix is the prefix of signals' addresses, below that of the server.
const Prefix = "/signals/"

// Secret authenticates an address: the MAC of one signal of one wait.
func (s *Store) Secret(id project.ID, wait, name string) string {
	h := hmac.New(sha256.New, s.mac)
	for _, part := range []string{string(id), wait, name} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// Path returns the path of the address.
func (s *Store) Path(id project.ID, wait, name string) string {
	return Prefix + string(id) + "/" + wait + "/" + url.PathEscape(name) + "/" + s.Secret(id, wait, name)
}

// ErrForged is the cause if this server did not create an address.
var ErrForged = fault.New(fault.Refused, "signal", "this is no address of a signal")

// Address is a parsed address that this server created.
type Address struct {
	Deployment project.ID
	Wait, Name string
}

// Parse parses a path; one that this server did not create is ErrForged.
func (s *Store) Parse(path string) (Address, error) {
	parts := strings.Split(strings.TrimPrefix(path, Prefix), "/")
	if len(parts) != 4 {
		return Address{}, ErrForged
	}
	a := Address{project.ID(parts[0]), parts[1], parts[2]}
	if !hmac.Equal([]byte(s.Secret(a.Deployment, a.Wait, a.Name)), []byte(parts[3])) {
		return Address{}, ErrForged
	}
	return a, nil
}

// Accept counts a signal sent to an address; see Signal. project is the wait's project, "" if that is unknown.
func (s *Store) Accept(ctx context.Context, a Address, g Given) (answer Answer, name project.Name, err error) {
	g.Name = a.Name
	list, err := s.List(ctx, Filter{Deployment: a.Deployment, Wait: a.Wait, Limit: 1})
	if err != nil {
		return Answer{}, "", err
	}
	if len(list) == 0 {
		return Answer{}, "", tooLate(WaitStatus{Deployment: a.Deployment, Wait: a.Wait})
	}
	answer, err = s.signal(ctx, list[0], g)
	return answer, list[0].Project, err
}
