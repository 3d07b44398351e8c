package sshd

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// HostKey reads the server's ed25519 host key from path, and makes it if nothing is there; the public half goes beside
// it, to path.pub, for known_hosts files. A new key is durable when HostKey returns. What is there and is not a usable
// key, or may be read by others, is an error: a host key is never replaced, because every client would then refuse us.
func HostKey(f vfs.FS, path string, random io.Reader) (signer ssh.Signer, made bool, err error) {
	st, err := f.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeHostKey(f, path, random); err != nil && !errors.Is(err, fs.ErrExist) {
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
	const keep = "put the key back from a backup; or, if it is lost, remove the file, start again, and tell everybody who pushes that the host key changed"
	if st.IsRegular() && st.Perm()&0o077 != 0 {
		return nil, false, bad("others may read it (mode %04o)", st.Perm()).WithHint("chmod 600 %s", path)
	}
	text, err := vfs.ReadFile(f, path)
	if err != nil {
		return nil, false, bad("%w", err)
	}
	if len(text) == 0 {
		return nil, false, bad("it is empty").WithHint(keep)
	}
	raw, err := ssh.ParseRawPrivateKey(text)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, false, bad("it is protected by a passphrase").WithHint("take the passphrase off with  ssh-keygen -p -f %s", path)
	case err != nil:
		return nil, false, bad("it is not a private key that can be read").WithHint(keep)
	}
	key, ok := raw.(*ed25519.PrivateKey)
	if !ok {
		return nil, false, bad("it is not an ed25519 key").WithHint(keep)
	}
	signer, err = ssh.NewSignerFromKey(*key)
	return signer, made, err
}

func makeHostKey(f vfs.FS, path string, random io.Reader) (err error) {
	pub, priv, err := ed25519.GenerateKey(random)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(priv, "corpus-git")
	if err != nil {
		return err
	}
	spub, err := ssh.NewPublicKey(pub)
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
	// A link fails where a rename would replace what another process has just made.
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
