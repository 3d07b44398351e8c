package broker

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"golang.org/x/crypto/ssh"

	"corpus-git/access"
	"corpus-git/fleet/natslink"
)

// login answers the NATS server's question who a client is (docs.nats.io, "Auth Callout"): an agent signs the server's nonce with its key, and names its connection.
func (b *Broker) login(m *nats.Msg) {
	q, err := jwt.DecodeAuthorizationRequestClaims(string(m.Data))
	if err != nil {
		b.cfg.Log.Warn().Err(err).Msg("a question of the NATS server")
		return
	}
	answer := jwt.NewAuthorizationResponseClaims(q.UserNkey)
	answer.Audience = q.Server.ID
	if answer.Jwt, err = b.permit(q); err != nil {
		b.cfg.Log.Error().Err(err).Msg("permissions of an agent")
	}
	if answer.Jwt == "" {
		answer.Error = "not an agent of this hub"
	}
	text, err := answer.Encode(b.issuer)
	if err == nil {
		err = m.Respond([]byte(text))
	}
	if err != nil {
		b.cfg.Log.Error().Err(err).Msg("answer the NATS server")
	}
}

// permit returns the signed permissions of a connection, "" for a client that is none of the hub's agents.
func (b *Broker) permit(q *jwt.AuthorizationRequestClaims) (string, error) {
	o, name := q.ConnectOptions, q.ConnectOptions.Name
	key, ok := proven(o.Nkey, o.SignedNonce, []byte(q.ClientInformation.Nonce))
	if !ok || !natslink.ValidName(name) {
		return "", nil
	}
	from := q.ClientInformation.Host
	who, ok, err := b.cfg.Identify(b.ctx, access.Offer{Key: key, User: "agent", From: from, Proven: true})
	if err != nil {
		return "", err
	}
	if !ok {
		if b.cfg.RefusedLogin != nil {
			b.cfg.RefusedLogin(from, "agent", access.Fingerprint(key))
		}
		return "", nil
	}
	a := &connection{name: name, who: who}
	a.ctx, a.end = context.WithCancelCause(b.ctx)
	b.mu.Lock()
	_, there := b.agents[name]
	var before []*connection
	for _, other := range b.agents {
		if other.who.Fingerprint == who.Fingerprint && !there {
			// An agent has one connection. The end of its last one is not reported if the NATS server that had it died.
			before = append(before, other)
			delete(b.agents, other.name)
		}
	}
	full := len(b.agents) >= b.cfg.Connections
	if !there && !full && !b.closed {
		b.agents[name] = a
	}
	b.mu.Unlock()
	for _, other := range before {
		other.end(errors.New("the agent has connected again"))
	}
	if there || full {
		if full {
			b.cfg.Log.Warn().Int("agents", b.cfg.Connections).Msg("an agent is refused: limits.max_connections are connected")
		}
		a.end(nil)
		return "", nil
	}
	time.AfterFunc(appear, func() {
		if !a.here.Load() {
			b.forget(a, context.DeadlineExceeded) // it was permitted, and never connected
		}
	})
	if b.cfg.LoggedIn != nil {
		b.cfg.LoggedIn(who)
	}
	all := natslink.All(name)
	u := jwt.NewUserClaims(q.UserNkey)
	u.Name, u.Audience = who.Name, account
	u.Pub.Allow.Add(natslink.Call(name), all+".h.*")
	u.Sub.Allow.Add(natslink.Begin(name), natslink.Again, all+".a.*", natslink.Inbox(name)+".>")
	u.Resp = &jwt.ResponsePermission{MaxMsgs: 1, Expires: answerTime}
	u.Limits.Subs = links + 8
	return u.Encode(b.issuer)
}

// forget ends what runs over a connection, whose agent finds out by its next request.
func (b *Broker) forget(c *connection, why error) {
	b.mu.Lock()
	if b.agents[c.name] == c {
		delete(b.agents, c.name)
	}
	b.mu.Unlock()
	c.end(why)
}

// proven returns the key of an NKey that has signed a nonce.
func proven(name, signature string, nonce []byte) (ssh.PublicKey, bool) {
	if name == "" || len(nonce) == 0 {
		return nil, false
	}
	raw, err := nkeys.Decode(nkeys.PrefixByteUser, []byte(name))
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return nil, false
	}
	sig, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || !ed25519.Verify(raw, nonce, sig) {
		return nil, false
	}
	key, err := ssh.NewPublicKey(ed25519.PublicKey(raw))
	return key, err == nil
}
