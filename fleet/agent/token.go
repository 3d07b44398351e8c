package agent

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"strings"

	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
)

// TokenPrefix is the prefix of every join token, so that people and secret scanners recognise one.
const TokenPrefix = "cgj_"

// Token lets a machine join a hub as one of its nodes, once. It contains a private key, whose public half the hub knows.
type Token struct {
	// Hub is HOST:PORT of the hub's ssh server, HostKey its key, a line as in authorized_keys.
	Hub     string `json:"hub"`
	HostKey string `json:"host_key"`
	// Node is the machine's name at the hub.
	Node string `json:"node"`
	// Seed is the seed of the token's Ed25519 key (RFC 8032).
	Seed []byte `json:"seed"`
	// NATS is the hub's NATS server; nil if it has none.
	NATS *NATS `json:"nats,omitempty"`
}

// maxToken limits the text of a token.
const maxToken = 8 << 10

// NewToken returns a new token, and the line of its public key. over is the hub's NATS server, nil if it has none.
func NewToken(hub string, over *NATS, hostKey, node string) (text, public string, err error) {
	return newToken(TokenPrefix, Token{Hub: hub, NATS: over, HostKey: hostKey, Node: node})
}

func newToken(prefix string, t Token) (text, public string, err error) {
	t.Seed = make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(t.Seed) // never fails: crypto/rand
	signer, err := t.Signer()
	if err != nil {
		return "", "", err
	}
	doc, err := json.Marshal(t)
	if err != nil {
		return "", "", err
	}
	return prefix + base64.RawURLEncoding.EncodeToString(doc), PublicLine(signer), nil
}

// PublicLine returns the public key of a signer, as in authorized_keys.
func PublicLine(s ssh.Signer) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.PublicKey())))
}

// ParseToken reads a token.
func ParseToken(text string) (t Token, err error) {
	bad := fault.New(fault.Usage, "agent", "that is not a join token").WithHint("an administrator of the hub makes one:  corpus-git node token NAME")
	return parseToken(text, TokenPrefix, bad)
}

// HubTokenPrefix is the prefix of the token of a machine that becomes a further hub.
const HubTokenPrefix = "cgh_"

// NewHubToken is NewToken for a machine that becomes the hub of this name.
func NewHubToken(hub, hostKey, name string) (text, public string, err error) {
	return newToken(HubTokenPrefix, Token{Hub: hub, HostKey: hostKey, Node: name})
}

// ParseHubToken reads a token of NewHubToken; Node is the name of the new hub.
func ParseHubToken(text string) (t Token, err error) {
	return parseToken(text, HubTokenPrefix, fault.New(fault.Usage, "hub join", "that is not the token of a hub").WithHint("an administrator of the existing hub makes one:  corpus-git hub add NAME"))
}

func parseToken(text, prefix string, bad error) (t Token, err error) {
	text, ok := strings.CutPrefix(strings.TrimSpace(text), prefix)
	if !ok || len(text) > maxToken {
		return t, bad
	}
	doc, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(doc, &t) != nil || len(t.Seed) != ed25519.SeedSize || t.Hub == "" || t.Node == "" {
		return t, bad
	}
	if _, _, _, _, err := ssh.ParseAuthorizedKey([]byte(t.HostKey)); err != nil {
		return t, bad
	}
	return t, nil
}

// Signer returns the token's key.
func (t Token) Signer() (ssh.Signer, error) {
	return ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(t.Seed))
}
