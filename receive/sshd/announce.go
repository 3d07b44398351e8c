package sshd

import (
	"crypto/rand"

	gliderssh "github.com/gliderlabs/ssh"
	gossh "golang.org/x/crypto/ssh"
)

// The requests by which OpenSSH's clients learn further keys of a server (UpdateHostKeys in ssh_config(5)), from OpenSSH's PROTOCOL, 2.5: the server sends the keys that it has, and proves, when
// asked, that it has those which the client did not know. Clients forget known keys of this server that are not among them.
const (
	hostkeys      = "hostkeys-00@openssh.com"
	hostkeysProve = "hostkeys-prove-00@openssh.com"
)

// SetHostKeys replaces the keys for connections that begin from now on: it proves itself with current, and tells clients of next, too. It may be called at any time.
func (s *Server) SetHostKeys(current, next []gossh.Signer) {
	s.keys.Store(&servedKeys{current: current, next: next})
}

type servedKeys struct{ current, next []gossh.Signer }

func (k *servedKeys) all() []gossh.Signer {
	return append(append([]gossh.Signer{}, k.current...), k.next...)
}

// hostKeys returns the keys that are served now.
func (s *Server) hostKeys() *servedKeys {
	if k := s.keys.Load(); k != nil {
		return k
	}
	return &servedKeys{current: s.HostKeys}
}

// announce tells a client once which keys this server has.
func (s *Server) announce(sc gossh.Conn, c *conn) {
	c.announced.Do(func() {
		var keys []byte
		for _, k := range s.hostKeys().all() {
			keys = append(keys, gossh.Marshal(struct{ Key []byte }{k.PublicKey().Marshal()})...)
		}
		_, _, _ = sc.SendRequest(hostkeys, false, keys) // an error is that of the connection, which its user reports
	})
}

// prove signs, for the client's session, the keys that it asks for. A key that is not served fails the request.
func (s *Server) prove(ctx gliderssh.Context, _ *gliderssh.Server, req *gossh.Request) (ok bool, answer []byte) {
	sc, ok := ctx.Value(gliderssh.ContextKeyConn).(gossh.Conn)
	if !ok {
		return false, nil
	}
	keys := s.hostKeys().all()
	rest := req.Payload
	for n := 0; len(rest) > 0; n++ {
		var asked struct {
			Key  []byte
			Rest []byte `ssh:"rest"`
		}
		if n == len(keys) || gossh.Unmarshal(rest, &asked) != nil {
			return false, nil
		}
		rest = asked.Rest
		var signer gossh.Signer
		for _, k := range keys {
			if string(k.PublicKey().Marshal()) == string(asked.Key) {
				signer = k
			}
		}
		if signer == nil {
			return false, nil
		}
		sig, err := signer.Sign(rand.Reader, gossh.Marshal(struct {
			Name         string
			Session, Key []byte
		}{hostkeysProve, sc.SessionID(), asked.Key}))
		if err != nil {
			return false, nil
		}
		answer = append(answer, gossh.Marshal(struct{ Signature []byte }{gossh.Marshal(sig)})...)
	}
	return true, answer
}
