package credentials

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// Agent is an ssh-agent for ssh(1) (draft-miller-ssh-agent), on a socket.
type Agent struct {
	Store  Store
	Socket string

	mu       sync.Mutex
	listener net.Listener
	serving  sync.WaitGroup
}

// Option returns the option with which ssh(1) uses this agent.
func (a *Agent) Option() string { return "IdentityAgent=" + a.Socket }

// Ensure starts the agent unless it is running. It is idempotent.
func (a *Agent) Ensure() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.listener != nil {
		return nil
	}
	if err := os.Remove(a.Socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Only its owner may enter the folder; the mode of the socket adds the same restriction.
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", a.Socket)
	if err != nil {
		return err
	}
	if err := os.Chmod(a.Socket, 0o600); err != nil {
		return errors.Join(err, l.Close())
	}
	a.listener = l
	a.serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			a.serving.Go(func() {
				defer conn.Close()
				_ = agent.ServeAgent(keyring{a.Store}, conn) // it ends when the client does
			})
		}
	})
	return nil
}

// Close stops the agent. Connections of clients end with their clients.
func (a *Agent) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.listener == nil {
		return nil
	}
	return a.listener.Close()
}

// readOnly is the answer to requests that would change the keys.
const readOnly = "the keys of nodes are not changed by ssh-add"

// keyring implements agent.Agent.
type keyring struct{ Store }

// names returns the machines that have a key.
func (k keyring) names() ([]string, error) {
	files, err := filepath.Glob(k.sealed("*"))
	for i, f := range files {
		files[i] = filepath.Base(filepath.Dir(f))
	}
	return files, err
}

// List implements agent.Agent.
func (k keyring) List() ([]*agent.Key, error) {
	names, err := k.names()
	if err != nil {
		return nil, err
	}
	var out []*agent.Key
	for _, name := range names {
		text, err := os.ReadFile(k.Public(name))
		if err != nil {
			continue // the key is being made
		}
		key, _, _, _, err := ssh.ParseAuthorizedKey(text)
		if err != nil {
			continue
		}
		out = append(out, &agent.Key{Format: key.Type(), Blob: key.Marshal(), Comment: name})
	}
	return out, nil
}

// Sign implements agent.Agent.
func (k keyring) Sign(key ssh.PublicKey, data []byte) (*ssh.Signature, error) {
	list, err := k.List()
	if err != nil {
		return nil, err
	}
	for _, have := range list {
		if !bytes.Equal(have.Blob, key.Marshal()) || strings.Contains(have.Comment, "/") {
			continue
		}
		signer, err := k.signer(have.Comment)
		if err != nil {
			return nil, err
		}
		return signer.Sign(nil, data)
	}
	return nil, errors.New("no such key")
}

// Add implements agent.Agent.
func (keyring) Add(agent.AddedKey) error { return errors.New(readOnly) }

// Remove implements agent.Agent.
func (keyring) Remove(ssh.PublicKey) error { return errors.New(readOnly) }

// RemoveAll implements agent.Agent.
func (keyring) RemoveAll() error { return errors.New(readOnly) }

// Lock implements agent.Agent.
func (keyring) Lock([]byte) error { return errors.New(readOnly) }

// Unlock implements agent.Agent.
func (keyring) Unlock([]byte) error { return errors.New(readOnly) }

// Signers implements agent.Agent. It cannot be requested over a socket.
func (keyring) Signers() ([]ssh.Signer, error) { return nil, errors.New(readOnly) }
