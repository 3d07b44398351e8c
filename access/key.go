package access

import (
	"bytes"
	"crypto/rsa"
	"fmt"
	"regexp"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// Key is a public key that may log in.
type Key struct {
	// Name is what people call it.
	Name string `json:"name"`
	// Principal is the principal that the key belongs to.
	Principal string `json:"principal"`
	// Fingerprint is the key's SHA-256 as OpenSSH prints it: "SHA256:" and 43 characters of base64.
	Fingerprint string `json:"fingerprint"`
	// Type is the algorithm, such as ssh-ed25519.
	Type string `json:"type"`
	// Comment is the text after the key in its file.
	Comment string `json:"comment,omitempty"`
	// Admin reports that its principal has all permissions on every project.
	Admin bool `json:"admin"`
	// Expires is when it stops being valid; zero means never.
	Expires time.Time `json:"expires,omitzero"`
	Added   time.Time `json:"added"`
	AddedBy string    `json:"added_by"`
	// LastUsed is zero for a key that never logged in; it is accurate to a minute.
	LastUsed time.Time `json:"last_used,omitzero"`
}

// MinRSABits is the size below which an RSA key is refused, OpenSSH's own limit is 1024.
const MinRSABits = 2048

// maxKeyText limits the size of a key file; a 16,384-bit RSA key takes 2.8 kB.
const maxKeyText = 64 << 10

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$`)

// ParseName validates the name of a principal, a key or a token.
func ParseName(s string) (string, error) {
	if !nameForm.MatchString(s) {
		return "", fault.New(fault.Usage, "name", "%q is not a valid name for a user, a key or a token", s).
			WithHint("1 to 64 of a-z A-Z 0-9 . _ @ + - , and a letter or a digit first")
	}
	return s, nil
}

// Fingerprint returns the SHA-256 fingerprint of a key as OpenSSH prints it.
func Fingerprint(k ssh.PublicKey) string { return ssh.FingerprintSHA256(k) }

// ParsePublicKey reads exactly one public key in the format of an authorized_keys line (sshd(8), "AUTHORIZED_KEYS FILE
// FORMAT"), which is also the format of a .pub file. Empty lines and comments around it are skipped. Options, certificates,
// DSA and short RSA keys are refused with the reason.
func ParsePublicKey(text []byte) (key ssh.PublicKey, comment string, err error) {
	bad := func(format string, args ...any) *fault.Error {
		return fault.New(fault.Usage, "public key", format, args...)
	}
	if len(text) > maxKeyText {
		return nil, "", bad("more than %d bytes: not a public key", maxKeyText)
	}
	var line []byte
	n := 0
	for l := range bytes.Lines(text) {
		n++
		l = bytes.TrimSpace(l)
		switch {
		case len(l) == 0 || l[0] == '#':
			continue
		case bytes.Contains(l, []byte("PRIVATE KEY-----")):
			return nil, "", bad("this is a private key: it must never leave its machine").WithHint("use the .pub file; if this key has been copied elsewhere, create a new one with  ssh-keygen -t ed25519")
		case bytes.HasPrefix(l, []byte("---- BEGIN SSH2 PUBLIC KEY")):
			return nil, "", bad("this is a public key in the format of RFC 4716").WithHint("convert it with  ssh-keygen -i -f FILE")
		case bytes.HasPrefix(l, []byte("PuTTY-User-Key-File")):
			return nil, "", bad("this is a PuTTY private key file").WithHint("copy the line under \"Public key for pasting into OpenSSH authorized_keys file\" in PuTTYgen")
		case line != nil:
			return nil, "", bad("line %d: more than one key", n).WithHint("add them one by one, each under its own name")
		}
		line = l
	}
	if line == nil {
		return nil, "", bad("it contains no key").WithHint("a public key looks like  ssh-ed25519 AAAAC3… marie@laptop")
	}
	key, comment, options, rest, err := ssh.ParseAuthorizedKey(line)
	if err != nil {
		if first, _, _ := strings.Cut(string(line), " "); first == "ssh-dss" || first == ssh.KeyAlgoRSA || strings.HasPrefix(first, "ssh-") || strings.HasPrefix(first, "ecdsa-") || strings.HasPrefix(first, "sk-") {
			return nil, "", bad("cannot parse the key (truncated, or unknown algorithm)").WithHint("copy the whole line of the .pub file")
		}
		return nil, "", bad("not a public key").WithHint("a public key looks like  ssh-ed25519 AAAAC3… marie@laptop")
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, "", bad("more than one key").WithHint("add them one by one, each under its own name")
	}
	if len(options) > 0 {
		name, _, _ := strings.Cut(options[0], "=")
		return nil, "", bad("options in front of a key are not supported (%.40s)", printable.Clip(name, 200)).WithHint("leave them out; grant permissions with  corpus-git access grant PROJECT USER RIGHT")
	}
	if err := checkKey(key); err != nil {
		return nil, "", err
	}
	return key, printable.Clip(strings.TrimSpace(comment), 200), nil
}

// checkKey refuses kinds of keys that must not log in.
func checkKey(key ssh.PublicKey) error {
	bad := func(format string, args ...any) *fault.Error {
		return fault.New(fault.Usage, "public key", format, args...).WithHint("make a key with  ssh-keygen -t ed25519")
	}
	if _, ok := key.(*ssh.Certificate); ok {
		return fault.New(fault.Usage, "public key", "certificates are not added one by one").WithHint("add the key of their CA to ssh_ca_keys, or add the plain public key")
	}
	switch key.Type() {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256:
		return nil
	case ssh.KeyAlgoRSA:
		ck, ok := key.(ssh.CryptoPublicKey)
		if !ok {
			return bad("the RSA key cannot be read")
		}
		rk, ok := ck.CryptoPublicKey().(*rsa.PublicKey)
		if !ok {
			return bad("the RSA key cannot be read")
		}
		if bits := rk.N.BitLen(); bits < MinRSABits {
			return bad("the RSA key has %d bits: at least %d are required", bits, MinRSABits)
		}
		return nil
	case "ssh-dss": // RFC 4253, section 6.6
		return bad("DSA keys are not accepted: they are no longer safe")
	default:
		return bad("keys of type %s are not supported", printable.Clip(key.Type(), 200))
	}
}

// Identity is the origin of a request: a principal, with what authenticated it, or a local user. The zero value is nobody.
type Identity struct {
	// Name is the principal's name, or the local user's.
	Name string
	// Fingerprint is what authenticated: the fingerprint of a key, "token:" and the ID of a token, "cert:" and the SHA-256 of a
	// certificate, or "session"; "" for a local user.
	Fingerprint string
	// Admin allows everything.
	Admin bool
	// ReadOnly forbids changes.
	ReadOnly bool
	// From is the address of the peer, or "local".
	From string
}

// String returns the identity for messages: "marie", or "root (local)".
func (i Identity) String() string {
	if i.Fingerprint == "" && i.From != "" {
		return fmt.Sprintf("%s (%s)", i.Name, i.From)
	}
	return i.Name
}

// Local returns the identity of a user of this machine who may open the state directory, and therefore may do everything.
func Local(user string) Identity { return Identity{Name: user, Admin: true, From: local} }

// local is From of a Local identity; for a session of the web pages the address is appended.
const local = "local"

// LocalAt is Local, for a session of the web pages that is used from an address.
func LocalAt(user, address string) Identity {
	who := Local(user)
	who.From += ", " + address
	return who
}

// IsLocal reports whether a recorded identity was Local or LocalAt. No other identity has no fingerprint and this From.
func IsLocal(fingerprint, from string) bool {
	return fingerprint == "" && (from == local || strings.HasPrefix(from, local+", "))
}
