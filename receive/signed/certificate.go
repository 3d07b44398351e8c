package signed

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// MaxCertificate limits the text of a certificate: it is kept with the record of its deployment.
const MaxCertificate = 64 << 10

// Certificate is a push certificate. Nothing in it counts before it has been verified.
type Certificate struct {
	// Text is the whole certificate, Payload what was signed, Signature the rest.
	Text, Payload, Signature string
	// Pusher is the identity that the client claims, Pushee the address that it pushes to, "" if it sends none.
	Pusher, Pushee string
	Nonce          string
	Options        []string
	// Commands are the lines of the ref updates.
	Commands []string
}

// NewNonce returns a nonce for one push: the time, for people, and 128 random bits.
func NewNonce(now time.Time) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return fmt.Sprintf("%d-%s", now.Unix(), hex.EncodeToString(b[:]))
}

// The headers of a certificate. Unknown headers are ignored, as in git; git writes none.
const version = "certificate version 0.1"

// signatureBegins lists the lines by which git recognises signatures (gpg-interface.c).
var signatureBegins = []string{"-----BEGIN PGP SIGNATURE-----", "-----BEGIN PGP MESSAGE-----", "-----BEGIN SIGNED MESSAGE-----", "-----BEGIN SSH SIGNATURE-----"}

func beginsSignature(line string) bool {
	for _, b := range signatureBegins {
		if strings.HasPrefix(line, b) {
			return true
		}
	}
	return false
}

// ParseCertificate reads a certificate as received between push-cert and push-cert-end. Errors are fault.Usage.
func ParseCertificate(text string) (*Certificate, error) {
	bad := func(format string, args ...any) (*Certificate, error) {
		return nil, fault.New(fault.Usage, "push certificate", format, args...)
	}
	c := &Certificate{Text: text}
	if len(text) > MaxCertificate {
		return bad("longer than %d bytes", MaxCertificate)
	}
	line, rest, ok := strings.Cut(text, "\n")
	if !ok || line != version {
		return bad("%.60q in place of %q", line, version)
	}
	seen := map[string]bool{}
	for {
		if line, rest, ok = strings.Cut(rest, "\n"); !ok {
			return bad("it ends within its headers")
		}
		if line == "" {
			break
		}
		name, value, _ := strings.Cut(line, " ")
		if strings.ContainsRune(line, 0) {
			return bad("a NUL in the header %.40s", printable.Line(name))
		}
		if name == "push-option" {
			c.Options = append(c.Options, value)
			continue
		}
		if seen[name] {
			return bad("the header %.40s comes twice", printable.Line(name))
		}
		seen[name] = true
		switch name {
		case "pusher":
			c.Pusher = value
		case "pushee":
			c.Pushee = value
		case "nonce":
			c.Nonce = value
		}
	}
	for !beginsSignature(rest) {
		if line, rest, ok = strings.Cut(rest, "\n"); !ok {
			return bad("it has no signature")
		}
		c.Commands = append(c.Commands, line)
	}
	if len(c.Commands) == 0 {
		return bad("it updates no ref")
	}
	c.Payload, c.Signature = text[:len(text)-len(rest)], rest
	return c, nil
}
