// Package credentials keeps the private keys with which this machine logs in to the nodes that it has prepared.
//
// It owns the keys, one for each node, encrypted with a key of this machine in a separate file, and an agent that makes signatures for ssh(1): no private key
// is in a file that can be read without that key, in an argument or in an environment.
//
// Invariants: private keys never leave this package, only signatures do. Whoever may connect to the agent's socket may log in to the nodes: only the owner of
// the state may.
//
// A crash leaves either a complete key or none, and a socket that the next start replaces.
package credentials

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/crypto/chacha20poly1305"
	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// Store holds the keys of the machines in a folder, which has a subfolder for each machine.
type Store struct {
	// KeyFile holds the encryption key; it is made with the key of the first node. Machines is the parent of the machines' folders.
	KeyFile, Machines string
	FS                vfs.FS
}

func (s Store) sealed(name string) string { return filepath.Join(s.Machines, name, "key.sealed") }

// Public returns the path of a machine's public key, in the format of ssh-keygen(1).
func (s Store) Public(name string) string { return filepath.Join(s.Machines, name, "key.pub") }

// former is the file with the public key that the machine had before, until Forget.
func (s Store) former(name string) string { return filepath.Join(s.Machines, name, "key.old") }

// Former returns the public key that a machine had before its current one, in the format of ssh-keygen(1): it may still be allowed to log in there. It is "" if there is none.
func (s Store) Former(name string) (string, error) {
	text, err := os.ReadFile(s.former(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// Forget forgets the former key, which may no longer log in.
func (s Store) Forget(name string) error {
	err := os.Remove(s.former(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// key returns the encryption key; make creates it if there is none.
func (s Store) key(make bool) ([]byte, error) {
	key, err := os.ReadFile(s.KeyFile)
	if errors.Is(err, fs.ErrNotExist) && make {
		key, err = s.first()
	}
	if err == nil && len(key) != chacha20poly1305.KeySize {
		err = errors.New("not a key")
	}
	if err != nil {
		return nil, fault.New(fault.Failed, "", "the key of the credentials, %s: %w", s.KeyFile, err).
			WithHint("put it back; if it is lost, give each node a new key: remove its key.sealed below %s, and run  corpus-git node init NAME --from keys", s.Machines)
	}
	return key, nil
}

// first makes the encryption key, unless another process makes it at the same time: what that encrypted must stay readable.
func (s Store) first() ([]byte, error) {
	dir, err := os.Open(filepath.Dir(s.KeyFile))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := vfs.Flock(dir, syscall.LOCK_EX); err != nil {
		return nil, err
	}
	key, err := os.ReadFile(s.KeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		key = newKey()
		err = vfs.WriteFileAtomic(s.FS, s.KeyFile, key, 0o600)
	}
	return key, err
}

func newKey() []byte {
	key := make([]byte, chacha20poly1305.KeySize)
	_, _ = rand.Read(key) // it never fails: crypto/rand
	return key
}

// Make returns the public key of a machine, and generates its key pair if it has no private key; the public key that it had becomes the Former one. It is durable on return.
func (s Store) Make(name string) (ssh.PublicKey, error) {
	if _, err := os.Lstat(s.sealed(name)); err == nil {
		signer, err := s.signer(name)
		if err != nil {
			return nil, err
		}
		return signer.PublicKey(), s.public(name, signer.PublicKey())
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "corpus-git "+name)
	if err != nil {
		return nil, err
	}
	key, err := s.key(true)
	if err != nil {
		return nil, err
	}
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, err
	}
	if ok, err := vfs.Exists(s.FS, s.Public(name)); err != nil {
		return nil, err
	} else if ok { // its private key was removed or lost
		if err := vfs.RenameDurable(s.FS, s.Public(name), s.former(name)); err != nil {
			return nil, err
		}
	}
	nonce := newKey()[:chacha20poly1305.NonceSizeX]
	// The name is authenticated with it, so that the file of one machine is not accepted for another.
	sealed := aead.Seal(nonce, nonce, pem.EncodeToMemory(block), []byte(name))
	if err := vfs.WriteFileAtomic(s.FS, s.sealed(name), sealed, 0o600); err != nil {
		return nil, err
	}
	return signer.PublicKey(), s.public(name, signer.PublicKey())
}

func (s Store) public(name string, key ssh.PublicKey) error {
	return vfs.WriteFileAtomic(s.FS, s.Public(name), ssh.MarshalAuthorizedKey(key), 0o644)
}

// signer returns a signer with a machine's key.
func (s Store) signer(name string) (ssh.Signer, error) {
	sealed, err := os.ReadFile(s.sealed(name))
	if err != nil {
		return nil, err
	}
	key, err := s.key(false)
	if err != nil {
		return nil, err
	}
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, err
	}
	if len(sealed) < chacha20poly1305.NonceSizeX {
		return nil, fault.New(fault.Failed, "", "%s is damaged", s.sealed(name))
	}
	text, err := aead.Open(nil, sealed[:chacha20poly1305.NonceSizeX], sealed[chacha20poly1305.NonceSizeX:], []byte(name))
	if err != nil {
		return nil, fault.New(fault.Failed, "", "%s is damaged, or was encrypted with another key than %s", s.sealed(name), s.KeyFile)
	}
	return ssh.ParsePrivateKey(text)
}
