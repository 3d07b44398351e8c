// Package credentials keeps the private keys by which this machine logs in to the nodes that it prepared.
//
// It owns the keys, one for each node, encrypted with a key of this machine in a file of its own, and an agent that ssh(1) asks for signatures: no private key
// is in a file that can be read without it, in an argument or in an environment.
//
// Invariants: a private key leaves this package as a signature only. Whoever may connect to the agent's socket may log in to the nodes: it is the owner of the
// state's.
//
// A crash leaves a key whole or none, and a socket that the next start replaces.
package credentials

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/chacha20poly1305"
	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// Store is the keys of the machines in a folder, which has a folder for each.
type Store struct {
	// KeyFile holds the key that encrypts; it is made with the first node's. Machines is the folder of the machines' folders.
	KeyFile, Machines string
	FS                vfs.FS
}

func (s Store) sealed(name string) string { return filepath.Join(s.Machines, name, "key.sealed") }

// Public is the file of a machine's public key, as ssh-keygen(1) writes it.
func (s Store) Public(name string) string { return filepath.Join(s.Machines, name, "key.pub") }

// key is what encrypts; make makes it where there is none.
func (s Store) key(make bool) ([]byte, error) {
	key, err := os.ReadFile(s.KeyFile)
	if errors.Is(err, fs.ErrNotExist) && make {
		key = append([]byte{}, newKey()...)
		err = vfs.WriteFileAtomic(s.FS, s.KeyFile, key, 0o600)
	}
	if err == nil && len(key) != chacha20poly1305.KeySize {
		err = errors.New("not a key")
	}
	if err != nil {
		return nil, fault.New(fault.Failed, "", "the key of the credentials, %s: %w", s.KeyFile, err)
	}
	return key, nil
}

func newKey() []byte {
	key := make([]byte, chacha20poly1305.KeySize)
	_, _ = rand.Read(key) // it never fails: crypto/rand
	return key
}

// Make gives the public key of a machine, and makes its pair where it has none. Durable on return.
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
	nonce := newKey()[:chacha20poly1305.NonceSizeX]
	// The name is sealed with it: the file of one machine is none of another's.
	sealed := aead.Seal(nonce, nonce, pem.EncodeToMemory(block), []byte(name))
	if err := vfs.WriteFileAtomic(s.FS, s.sealed(name), sealed, 0o600); err != nil {
		return nil, err
	}
	return signer.PublicKey(), s.public(name, signer.PublicKey())
}

func (s Store) public(name string, key ssh.PublicKey) error {
	return vfs.WriteFileAtomic(s.FS, s.Public(name), ssh.MarshalAuthorizedKey(key), 0o644)
}

// signer signs as a machine's key does.
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
