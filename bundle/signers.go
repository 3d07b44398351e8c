package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// Signers is the file of the keys whose bundles are deployed here: public keys, one on a line, as in authorized_keys (sshd(8)) without
// options.
type Signers struct {
	Path string
	// Own is the server's own key, which is trusted without a line.
	Own ssh.PublicKey
}

// Trusted refuses keys that are not trusted.
func (s Signers) Trusted(key ssh.PublicKey) error {
	known, err := s.list()
	if err != nil {
		return err
	}
	for _, k := range append(known, s.Own) {
		if bytes.Equal(k.Marshal(), key.Marshal()) {
			return nil
		}
	}
	return fault.New(fault.Refused, "bundle", "it is signed by %s, a key that is not trusted here", ssh.FingerprintSHA256(key)).
		WithHint("if that is the machine that you mean:  corpus-git bundle trust '%s'", keyLine(key))
}

// Trust adds a key whose bundles are deployed here. text is the key as in Signers' file. Durable on return; changed reports that it was not
// already trusted.
func (s Signers) Trust(text string) (fingerprint string, changed bool, err error) {
	key, comment, _, rest, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil || len(bytes.TrimSpace(rest)) > 0 {
		return "", false, fault.New(fault.Usage, "bundle trust", "this is not one public key").WithHint("corpus-git bundle key  prints the key of the machine that makes the bundles")
	}
	switch err := s.Trusted(key); {
	case err == nil:
		return ssh.FingerprintSHA256(key), false, nil
	case fault.KindOf(err) != fault.Refused:
		return "", false, err
	}
	old, err := os.ReadFile(s.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", false, err
	}
	if len(old) > 0 && old[len(old)-1] != '\n' {
		old = append(old, '\n')
	}
	line := strings.TrimSpace(keyLine(key) + " " + comment)
	return ssh.FingerprintSHA256(key), true, vfs.WriteFileAtomic(vfs.OS{}, s.Path, append(old, line+"\n"...), 0o600)
}

// Forget removes a key, so that bundles signed by it are not deployed any more. text is a public key, or the fingerprint of one. changed reports that it was trusted. Durable on return.
func (s Signers) Forget(text string) (fingerprint string, changed bool, err error) {
	if fingerprint = strings.TrimSpace(text); !strings.HasPrefix(fingerprint, "SHA256:") {
		key, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(text))
		if err != nil || len(bytes.TrimSpace(rest)) > 0 {
			return "", false, fault.New(fault.Usage, "bundle untrust", "this is not one public key, and not the fingerprint of one").WithHint("corpus-git bundle trusted  lists them")
		}
		fingerprint = ssh.FingerprintSHA256(key)
	}
	if s.Own != nil && fingerprint == ssh.FingerprintSHA256(s.Own) {
		return "", false, fault.New(fault.Refused, "bundle untrust", "%s is the key of this machine itself", fingerprint)
	}
	old, err := os.ReadFile(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return fingerprint, false, nil
	}
	if err != nil {
		return "", false, err
	}
	var kept []byte
	for line := range strings.Lines(string(old)) {
		if key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line)); err == nil && ssh.FingerprintSHA256(key) == fingerprint {
			changed = true
			continue
		}
		kept = append(kept, line...)
	}
	if !changed {
		return fingerprint, false, nil
	}
	return fingerprint, true, vfs.WriteFileAtomic(vfs.OS{}, s.Path, kept, 0o600)
}

// Keys returns the lines of the keys that are trusted besides the server's own, without comments and empty lines.
func (s Signers) Keys() (lines []string, err error) {
	keys, err := s.list()
	for _, k := range keys {
		lines = append(lines, keyLine(k))
	}
	return lines, err
}

// list reads the file; a missing one is empty.
func (s Signers) list() (keys []ssh.PublicKey, err error) {
	text, err := os.ReadFile(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for n, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return nil, fault.New(fault.Failed, "bundle", "%s:%d: %w", s.Path, n+1, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// keyLine returns a public key in the format of authorized_keys.
func keyLine(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// KeyLine returns the key that signs a machine's bundles, as printed for another one's Trust.
func KeyLine(key ssh.PublicKey, machine string) string {
	return fmt.Sprintf("%s %s", keyLine(key), machine)
}
