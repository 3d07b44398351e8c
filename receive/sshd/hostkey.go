package sshd

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// HostKey reads a host key of the server from path, or generates one if the file does not exist; the public half is written to path.pub,
// for known_hosts files. kind is ssh.KeyAlgoED25519, or ssh.KeyAlgoECDSA256 for clients that don't support that one. A new key is durable
// when HostKey returns. A file that is not a usable key of that kind, or may be read by others, is an error: a host key is never replaced,
// because every client would then refuse to connect.
func HostKey(f vfs.FS, path, kind string, random io.Reader) (signer ssh.Signer, made bool, err error) {
	st, err := f.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeHostKey(f, path, kind, random); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, false, fault.New(fault.Internal, "host key", "%w", err)
		}
		made = true
		st, err = f.Lstat(path)
	}
	if err != nil {
		return nil, false, fault.New(fault.Internal, "host key", "%w", err)
	}
	bad := func(format string, args ...any) *fault.Error {
		return fault.New(fault.Failed, "host key "+path, format, args...)
	}
	const keep = "restore the key from a backup; if it is lost, remove the file, restart, and tell all users that the host key has changed"
	if st.IsRegular() && st.Perm()&0o077 != 0 {
		return nil, false, bad("it is readable for other users (mode %04o)", st.Perm()).WithHint("chmod 600 %s", path)
	}
	text, err := vfs.ReadFile(f, path)
	if err != nil {
		return nil, false, bad("%w", err)
	}
	if len(text) == 0 {
		return nil, false, bad("it is empty").WithHint(keep)
	}
	signer, err = ssh.ParsePrivateKey(text)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, false, bad("it is protected by a passphrase").WithHint("remove the passphrase with  ssh-keygen -p -f %s", path)
	case err != nil:
		return nil, false, bad("it is not a valid private key").WithHint(keep)
	}
	if got := signer.PublicKey().Type(); got != kind {
		return nil, false, bad("it is a key of type %s, not %s", got, kind).WithHint(keep)
	}
	return signer, made, nil
}

// newKey generates a private key.
func newKey(kind string, random io.Reader) (crypto.Signer, error) {
	switch kind {
	case ssh.KeyAlgoED25519:
		_, key, err := ed25519.GenerateKey(random)
		return key, err
	case ssh.KeyAlgoECDSA256:
		return ecdsa.GenerateKey(elliptic.P256(), random)
	}
	return nil, fmt.Errorf("host keys of type %s are not supported", kind)
}

func makeHostKey(f vfs.FS, path, kind string, random io.Reader) (err error) {
	priv, err := newKey(kind, random)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(priv, "corpus-git")
	if err != nil {
		return err
	}
	spub, err := ssh.NewPublicKey(priv.Public())
	if err != nil {
		return err
	}
	if err := vfs.MkdirAll(f, filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp := vfs.TempName(path)
	h, err := f.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Remove(tmp)) }()
	_, err = h.Write(pem.EncodeToMemory(block))
	if err == nil {
		err = h.Sync()
	}
	if cerr := h.Close(); err == nil {
		err = cerr
	}
	// link(2) fails in the case in which a rename would replace what another process has just made.
	if err == nil {
		err = f.Link(tmp, path)
	}
	if err == nil {
		err = vfs.SyncDir(f, filepath.Dir(path))
	}
	if err == nil {
		err = vfs.WriteFileAtomic(f, path+".pub", ssh.MarshalAuthorizedKey(spub), 0o644)
	}
	return err
}
