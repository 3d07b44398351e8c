package procedures

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/sls/host"
)

// accounts makes the project's group, user and further groups, and a key pair for fetching from other
// servers. Only root can; the caller asks. It returns what it made, one phrase each.
func accounts(ctx context.Context, env *Env) ([]string, error) {
	cfg := env.Prepared.Cfg
	user, group := cfg.User(), cfg.Group()
	var did []string
	if _, err := env.Host.Users.Group(group); errors.Is(err, host.ErrNoAccount) {
		if err := env.admin(ctx, "groupadd", "--system", group); err != nil {
			return did, err
		}
		did = append(did, "group "+group)
	} else if err != nil {
		return did, err
	}
	u, err := env.Host.Users.User(user)
	if errors.Is(err, host.ErrNoAccount) {
		home := "/home/" + user
		if err := env.admin(ctx, "useradd", "--system", "--gid", group, "--create-home", "--home-dir", home, "--shell", "/bin/bash", user); err != nil {
			return did, err
		}
		did = append(did, "user "+user)
		u, err = env.Host.Users.User(user)
	}
	if err != nil {
		return did, err
	}
	if err := joinGroups(ctx, env, u, append([]string{group}, cfg.Groups()...), &did); err != nil {
		return did, err
	}
	made, err := sshKey(env, u)
	if made {
		did = append(did, "ssh key of "+user)
	}
	return did, err
}

func joinGroups(ctx context.Context, env *Env, u host.User, groups []string, did *[]string) error {
	have, err := env.Host.Users.GroupsOf(u)
	if err != nil {
		return err
	}
	for _, name := range groups {
		g, err := env.Host.Users.Group(name)
		if errors.Is(err, host.ErrNoAccount) {
			return fault.New(fault.Failed, NameSync, "group %s of `groups` does not exist", name).WithHint("make the group on this machine, or take it out of `groups`")
		}
		if err != nil {
			return err
		}
		member := false
		for _, id := range have {
			member = member || id == g.GID
		}
		if member {
			continue
		}
		if err := env.admin(ctx, "usermod", "--append", "--groups", name, u.Name); err != nil {
			return err
		}
		*did = append(*did, u.Name+" in group "+name)
	}
	return nil
}

// admin runs a program of the system's administration (shadow-utils).
func (e *Env) admin(ctx context.Context, argv ...string) error {
	var out bytes.Buffer
	st, err := e.Exec.Run(ctx, execx.Cmd{
		Argv: argv, Dir: "/", Stdout: &out, Stderr: &out,
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"},
	})
	if err == nil && st.Exit != 0 {
		err = fmt.Errorf("exit status %d: %s", st.Exit, strings.TrimSpace(out.String()))
	}
	if err != nil {
		return fault.New(fault.Internal, strings.Join(argv, " "), "%w", err)
	}
	return nil
}

// sshKey makes ~/.ssh/id_ed25519 if the user has no key of that kind. It never copies anybody else's.
func sshKey(env *Env, u host.User) (made bool, err error) {
	if u.Home == "" || u.UID == 0 || !exists(u.Home) {
		return false, nil
	}
	dir := filepath.Join(u.Home, ".ssh")
	path := filepath.Join(dir, "id_ed25519")
	st, err := env.FS.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := env.FS.Mkdir(dir, 0o700); err != nil {
			return false, err
		}
		if err := env.FS.Lchown(dir, u.UID, u.GID); err != nil {
			return false, err
		}
	case err != nil:
		return false, err
	case !st.IsDir():
		return false, nil // a link to elsewhere is not ours to write through
	}
	if exists(path) {
		return false, nil
	}
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return false, err
	}
	block, err := ssh.MarshalPrivateKey(key, u.Name)
	if err != nil {
		return false, err
	}
	spub, err := ssh.NewPublicKey(pub)
	if err != nil {
		return false, err
	}
	line := append(bytes.TrimSpace(ssh.MarshalAuthorizedKey(spub)), []byte(" "+u.Name+"\n")...)
	for _, f := range []struct {
		path string
		data []byte
		mode uint32
	}{{path + ".pub", line, 0o644}, {path, pem.EncodeToMemory(block), 0o600}} {
		if err := vfs.WriteFileAtomic(env.FS, f.path, f.data, f.mode); err != nil {
			return false, err
		}
		if err := env.FS.Lchown(f.path, u.UID, u.GID); err != nil {
			return false, err
		}
	}
	return true, nil
}
