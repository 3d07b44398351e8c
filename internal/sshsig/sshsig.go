package sshsig

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// The lines around a signature.
const (
	Begin = "-----BEGIN SSH SIGNATURE-----"
	End   = "-----END SSH SIGNATURE-----"
)

// MaxBytes limits the text of a signature: one of a 16,384-bit RSA key by a certificate takes 10 kB.
const MaxBytes = 64 << 10

const magic = "SSHSIG"

// ErrFormat is wrapped by errors about bytes that are not a signature.
var ErrFormat = errors.New("not an SSH signature")

// ErrWrong is wrapped if the signature is not one of this message in this namespace by its key.
var ErrWrong = errors.New("the signature is not of this message")

// Signature is a parsed signature that is not verified yet.
type Signature struct {
	// Key is a plain key, or a *ssh.Certificate.
	Key       ssh.PublicKey
	Namespace string
	hash      string
	reserved  []byte
	sig       *ssh.Signature
}

type blob struct {
	Version   uint32
	Key       []byte
	Namespace string
	Reserved  []byte
	Hash      string
	Signature []byte
}

type signedBlob struct {
	Namespace string
	Reserved  []byte
	Hash      string
	Sum       []byte
}

// Parse parses an armored signature. Only white space may follow it.
func Parse(text []byte) (*Signature, error) {
	bad := func(format string, args ...any) (*Signature, error) {
		return nil, fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
	}
	if len(text) > MaxBytes {
		return bad("longer than %d bytes", MaxBytes)
	}
	rest, ok := bytes.CutPrefix(bytes.TrimSpace(text), []byte(Begin))
	if !ok {
		return bad("it does not begin with %s", Begin)
	}
	rest, ok = bytes.CutSuffix(rest, []byte(End))
	if !ok || len(rest) == 0 || rest[len(rest)-1] != '\n' {
		return bad("it does not end with %s", End)
	}
	raw, err := base64.StdEncoding.DecodeString(string(bytes.Join(bytes.Fields(rest), nil)))
	if err != nil {
		return bad("%v", err)
	}
	body, ok := bytes.CutPrefix(raw, []byte(magic))
	if !ok {
		return bad("%s is missing", magic)
	}
	var b blob
	if err := ssh.Unmarshal(body, &b); err != nil {
		return bad("%v", err)
	}
	if b.Version != 1 {
		return bad("version %d", b.Version)
	}
	if b.Namespace == "" {
		return bad("no namespace")
	}
	s := &Signature{Namespace: b.Namespace, hash: b.Hash, reserved: b.Reserved, sig: &ssh.Signature{}}
	if s.Key, err = ssh.ParsePublicKey(b.Key); err != nil {
		return bad("its key: %v", err)
	}
	if err := ssh.Unmarshal(b.Signature, s.sig); err != nil {
		return bad("%v", err)
	}
	return s, nil
}

// Verify checks that the signature is one of message in a namespace, made by s.Key. It does not check whose key that is, nor whether a certificate is valid. The
// error wraps ErrWrong.
func (s *Signature) Verify(message []byte, namespace string) error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrWrong, fmt.Sprintf(format, args...))
	}
	if s.Namespace != namespace {
		return wrong("it was made for %q, not for %q", s.Namespace, namespace)
	}
	var sum []byte
	switch s.hash {
	case "sha256":
		h := sha256.Sum256(message)
		sum = h[:]
	case "sha512":
		h := sha512.Sum512(message)
		sum = h[:]
	default:
		return wrong("hash %q", s.hash)
	}
	key := s.Key
	if c, ok := key.(*ssh.Certificate); ok {
		key = c.Key
	}
	switch key.Type() {
	case ssh.KeyAlgoRSA:
		// PROTOCOL.sshsig, 2: RSA only with SHA-2.
		if s.sig.Format != ssh.KeyAlgoRSASHA256 && s.sig.Format != ssh.KeyAlgoRSASHA512 {
			return wrong("algorithm %q", s.sig.Format)
		}
	case ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256:
		// PROTOCOL.u2f: the first byte after the signature has the flags; bit 0 means that somebody touched the authenticator.
		if len(s.sig.Rest) == 0 || s.sig.Rest[0]&1 == 0 {
			return wrong("nobody touched the security key")
		}
	}
	signed := append([]byte(magic), ssh.Marshal(signedBlob{Namespace: s.Namespace, Reserved: s.reserved, Hash: s.hash, Sum: sum})...)
	if err := key.Verify(signed, s.sig); err != nil {
		return wrong("%v", err)
	}
	return nil
}
