package sshd

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// KeyFiles are the files of a server's host keys. Beside the file of a key is that of the key that will replace it, while there is one.
type KeyFiles struct {
	FS vfs.FS
	// Ed25519 and ECDSA are the paths of the two keys. Retired is the path of the public keys that were replaced, the last one last, lines as in authorized_keys.
	Ed25519, ECDSA, Retired string
	Random                  io.Reader
}

// HostKeys are the host keys of a server.
type HostKeys struct {
	// Current are those with which it proves who it is, the ed25519 key first. Next are those that will replace the ones of their types; none without a rotation.
	Current, Next []ssh.Signer
	// Retired were replaced, and are neither of those.
	Retired []ssh.PublicKey
}

const (
	nextSuffix = ".next"
	// maxRetired limits how many replaced keys are remembered.
	maxRetired = 16
)

// NextKey returns the path of the key that will replace the one at a path.
func NextKey(path string) string { return path + nextSuffix }

type keyFile struct{ path, kind string }

func (f KeyFiles) files() []keyFile {
	return []keyFile{{f.Ed25519, ssh.KeyAlgoED25519}, {f.ECDSA, ssh.KeyAlgoECDSA256}}
}

// Load reads the keys, and generates current ones that are missing, whose files are made. What an interrupted call has left of public halves is mended.
func (f KeyFiles) Load() (k HostKeys, made []string, err error) {
	for _, at := range f.files() {
		key, fresh, err := HostKey(f.FS, at.path, at.kind, f.Random)
		if err == nil {
			err = f.publish(at.path, key)
		}
		if err != nil {
			return k, made, err
		}
		if k.Current = append(k.Current, key); fresh {
			made = append(made, at.path)
		}
		next := at.path + nextSuffix
		if ok, err := vfs.Exists(f.FS, next); err != nil {
			return k, made, fault.New(fault.Internal, "host key", "%w", err)
		} else if !ok {
			continue
		}
		if key, _, err = HostKey(f.FS, next, at.kind, f.Random); err == nil {
			err = f.publish(next, key)
		}
		if err != nil {
			return k, made, err
		}
		k.Next = append(k.Next, key)
	}
	k.Retired, err = f.retired(append(k.Current, k.Next...))
	return k, made, err
}

// Rotate generates the keys that will replace the current ones, and leaves those that there are. They are durable on return; began reports that there were none.
func (f KeyFiles) Rotate() (began bool, err error) {
	for _, at := range f.files() {
		_, made, err := HostKey(f.FS, at.path+nextSuffix, at.kind, f.Random)
		if err != nil {
			return began, err
		}
		began = began || made
	}
	return began, nil
}

// Retire makes the next keys the current ones, and remembers the public halves of those that they replace. It is durable on return. After a crash some types of keys may be replaced, and a
// further call replaces the others; there is a key of each type at any moment.
func (f KeyFiles) Retire() error {
	k, _, err := f.Load()
	if err != nil {
		return err
	}
	text, err := vfs.ReadFile(f.FS, f.Retired)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Internal, "host key", "%w", err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	for _, next := range k.Next {
		for _, old := range k.Current {
			if line := ssh.MarshalAuthorizedKey(old.PublicKey()); old.PublicKey().Type() == next.PublicKey().Type() && !bytes.Contains(text, line) {
				lines = append(lines, line)
			}
		}
	}
	// Written first: a key in the list that is still used does not count as retired.
	if err := vfs.WriteFileAtomic(f.FS, f.Retired, bytes.Join(lines[max(0, len(lines)-2*maxRetired):], nil), 0o600); err != nil {
		return fault.New(fault.Internal, "host key", "%w", err)
	}
	for _, at := range f.files() {
		next := at.path + nextSuffix
		if ok, err := vfs.Exists(f.FS, next); err != nil || !ok {
			if err != nil {
				return fault.New(fault.Internal, "host key", "%w", err)
			}
			continue
		}
		err := f.FS.Rename(next, at.path)
		if err == nil {
			err = vfs.SyncDir(f.FS, filepath.Dir(at.path))
		}
		if err == nil {
			if err = f.FS.Remove(next + ".pub"); errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		}
		if err != nil {
			return fault.New(fault.Internal, "host key", "%w", err)
		}
	}
	_, _, err = f.Load() // writes the public halves
	return err
}

// publish writes the public half of a key if the file has another one.
func (f KeyFiles) publish(path string, key ssh.Signer) error {
	want := ssh.MarshalAuthorizedKey(key.PublicKey())
	have, err := vfs.ReadFile(f.FS, path+".pub")
	if err == nil {
		if k, _, _, _, perr := ssh.ParseAuthorizedKey(have); perr == nil && bytes.Equal(k.Marshal(), key.PublicKey().Marshal()) {
			return nil
		}
	}
	if err := vfs.WriteFileAtomic(f.FS, path+".pub", want, 0o644); err != nil {
		return fault.New(fault.Internal, "host key", "%w", err)
	}
	return nil
}

// retired reads the keys that were replaced, without those that are used.
func (f KeyFiles) retired(used []ssh.Signer) (keys []ssh.PublicKey, err error) {
	text, err := vfs.ReadFile(f.FS, f.Retired)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Internal, "host key", "%w", err)
	}
	for len(text) > 0 {
		key, _, _, rest, err := ssh.ParseAuthorizedKey(text)
		if err != nil {
			break // the rest is no key
		}
		text = rest
		again := false
		for _, k := range used {
			again = again || bytes.Equal(k.PublicKey().Marshal(), key.Marshal())
		}
		if !again {
			keys = append(keys, key)
		}
	}
	return keys, nil
}
