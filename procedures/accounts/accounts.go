// Package accounts creates the users and groups that projects run as, with the system's tools (shadow-utils).
package accounts

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/sls/host"
)

// FirstOrdinaryUID is the first UID of an ordinary account in Debian's and Fedora's login.defs (UID_MIN); system accounts are below.
const FirstOrdinaryUID = 1000

// Accounts are the machine's accounts. Changing them needs root.
type Accounts struct {
	Users host.Users
	Exec  execx.Commander
}

// Ensure creates a project's group and user if they are missing, adds the user to further groups, which must exist, and generates a key
// pair for fetching from other servers. It returns what it did, one phrase each.
func (a Accounts) Ensure(ctx context.Context, user, group string, groups []string) ([]string, error) {
	var did []string
	if _, err := a.Users.Group(group); errors.Is(err, host.ErrNoAccount) {
		if err := a.admin(ctx, "groupadd", "--system", group); err != nil {
			return did, err
		}
		did = append(did, "group "+group)
	} else if err != nil {
		return did, err
	}
	u, err := a.Users.User(user)
	if errors.Is(err, host.ErrNoAccount) {
		home := "/home/" + user
		argv := []string{"useradd", "--system", "--gid", group, "--create-home", "--home-dir", home, "--shell", "/bin/bash"}
		if uid, ok := a.formerUID(home); ok {
			argv = append(argv, "--uid", strconv.Itoa(uid))
		}
		if err := a.admin(ctx, append(argv, user)...); err != nil {
			return did, err
		}
		did = append(did, "user "+user)
		u, err = a.Users.User(user)
	}
	if err != nil {
		return did, err
	}
	joined, err := a.join(ctx, u, append([]string{group}, groups...))
	if did = append(did, joined...); err != nil {
		return did, err
	}
	made, err := sshKey(u)
	if made {
		did = append(did, "ssh key of "+user)
	}
	return did, err
}

// formerUID returns the UID that owned a home before its account was removed. A recreated account gets that UID, since the project's files in data and its keys
// belong to it. ok is false if there is no home, or the UID is that of another account, of root or not of a system account.
func (a Accounts) formerUID(home string) (uid int, ok bool) {
	fi, err := os.Lstat(home)
	if err != nil || !fi.IsDir() {
		return 0, false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || st.Uid == 0 || st.Uid >= FirstOrdinaryUID {
		return 0, false
	}
	_, err = a.Users.UserByID(int(st.Uid))
	return int(st.Uid), errors.Is(err, host.ErrNoAccount)
}

// join adds a user to the groups that it is not in.
func (a Accounts) join(ctx context.Context, u host.User, groups []string) (did []string, err error) {
	have, err := a.Users.GroupsOf(u)
	if err != nil {
		return nil, err
	}
	for _, name := range groups {
		g, err := a.Users.Group(name)
		if errors.Is(err, host.ErrNoAccount) {
			return did, fault.New(fault.Failed, "", "group %s of `groups` does not exist", name).WithHint("create the group on this machine, or remove it from `groups`")
		}
		if err != nil {
			return did, err
		}
		if slices.Contains(have, g.GID) {
			continue
		}
		if err := a.admin(ctx, "usermod", "--append", "--groups", name, u.Name); err != nil {
			return did, err
		}
		did = append(did, u.Name+" in group "+name)
	}
	return did, nil
}

// admin runs one of shadow-utils' programs.
func (a Accounts) admin(ctx context.Context, argv ...string) error {
	var out bytes.Buffer
	st, err := a.Exec.Run(ctx, execx.Cmd{
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

// sshKey generates ~/.ssh/id_ed25519 if the user has no key of that type. It never copies another key. The user owns the folders: they are
// accessed by file descriptors, so that replacing them meanwhile does not redirect a write.
func sshKey(u host.User) (made bool, err error) {
	if !filepath.IsAbs(u.Home) || u.UID == 0 {
		return false, nil
	}
	home, err := vfs.OpenTrusted(u.Home)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, vfs.ErrUntrusted) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer home.Close()
	dir, err := sshDir(home, u)
	if err != nil || dir == nil {
		return false, err
	}
	defer dir.Close()
	if there, err := vfs.Exists(dir, "id_ed25519"); err != nil || there {
		return false, err
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
		name string
		data []byte
		mode uint32
	}{{"id_ed25519.pub", line, 0o644}, {"id_ed25519", pem.EncodeToMemory(block), 0o600}} {
		err := vfs.WriteAtomic(dir, f.name, f.mode, func(w io.Writer) error {
			// It gets its owner before its name: afterwards the name may be anything.
			if h, ok := w.(vfs.File); ok {
				if err := h.Chown(u.UID, u.GID); err != nil {
					return err
				}
			}
			_, err := w.Write(f.data)
			return err
		})
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// sshDir opens a home's .ssh, and creates it if it is missing; nil if it is not a folder owned by the user: links are not followed.
func sshDir(home vfs.Dir, u host.User) (vfs.Dir, error) {
	err := home.Mkdir(".ssh", 0o700)
	ours := err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	dir, err := home.OpenDir(".ssh")
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	st, err := dir.Lstat(".")
	if err == nil && ours && int(st.UID) != u.UID {
		var names []string
		if names, err = dir.ReadDir("."); err == nil && len(names) == 0 { // the one that we made
			if err = dir.Lchown(".", u.UID, u.GID); err == nil {
				return dir, nil
			}
		}
	}
	if err == nil && int(st.UID) == u.UID {
		return dir, nil
	}
	return nil, errors.Join(err, dir.Close())
}
