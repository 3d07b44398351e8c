package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
)

// Settings are the settings specific to one container.
type Settings struct {
	Hostname string
	// Address is its own address, Gateway that of the machine that it runs on, and Address6 and Gateway6 are those of IPv6, if it has one. Interface is its only
	// network interface.
	Address   netip.Prefix
	Gateway   netip.Addr
	Address6  netip.Prefix
	Gateway6  netip.Addr
	Interface string
	// Nameservers are its name servers.
	Nameservers []netip.Addr
}

// The names in a container's folder.
const (
	root      = "root"
	snapshots = "snapshots"
)

// Root returns the root file system of the container that has a folder.
func Root(folder string) string { return filepath.Join(folder, root) }

// Made reports whether a container has its root file system.
func Made(folder string) bool {
	_, err := os.Lstat(Root(folder))
	return err == nil
}

// Make copies a base system for a container, with its own settings. An existing copy is left as it is. It is durable on return.
func (m Maker) Make(ctx context.Context, base, folder string, s Settings) error {
	if Made(folder) {
		return nil
	}
	part := Root(folder) + ".part"
	if err := m.copy(ctx, base, part); err != nil {
		return err
	}
	if err := s.write(part); err != nil {
		return m.failed(part, err)
	}
	if err := m.run(ctx, "", "chroot", part, "ssh-keygen", "-q", "-A"); err != nil {
		return m.failed(part, fault.New(fault.Failed, "", "%w", err).WithHint("if the base system is damaged, remove it, and it is made again:  rm -r %s", base))
	}
	return m.keep(part, Root(folder))
}

// copy copies a tree with all its attributes; the remains of an earlier attempt are removed, and so are its own where it fails.
func (m Maker) copy(ctx context.Context, from, to string) error {
	if err := m.clear(to); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err := m.run(ctx, "", "cp", "--archive", "--one-file-system", "--reflink=auto", "--no-target-directory", from, to); err != nil {
		return m.failed(to, err)
	}
	return nil
}

// write writes the files that are specific to one machine. They are written into a copy of a base that no container has run, so no link in it
// can be made by an attacker.
func (s Settings) write(root string) error {
	var resolv strings.Builder
	for _, n := range s.Nameservers {
		fmt.Fprintf(&resolv, "nameserver %s\n", n)
	}
	files := []struct{ name, text string }{
		{"etc/hostname", s.Hostname + "\n"},
		{"etc/hosts", "127.0.0.1 localhost\n" + s.Address.Addr().String() + " " + s.Hostname + "\n::1 localhost ip6-localhost ip6-loopback\n"},
		{"etc/resolv.conf", resolv.String()},
		// systemd.network(5)
		{"etc/systemd/network/10-corpus-git.network", s.network()},
	}
	for _, f := range files {
		path := filepath.Join(root, f.name)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(path, []byte(f.text), 0o644); err != nil { //nolint:gosec // everybody in the container reads them
			return err
		}
	}
	wants := filepath.Join(root, "etc/systemd/system/multi-user.target.wants")
	if err := os.MkdirAll(wants, 0o755); err != nil { //nolint:gosec // as systemctl makes it
		return err
	}
	if err := os.Symlink("/lib/systemd/system/systemd-networkd.service", filepath.Join(wants, "systemd-networkd.service")); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// network returns a systemd.network(5) file.
func (s Settings) network() string {
	text := fmt.Sprintf("[Match]\nName=%s\n\n[Network]\nAddress=%s\nGateway=%s\nDHCP=no\nIPv6AcceptRA=no\n", s.Interface, s.Address, s.Gateway)
	if !s.Address6.IsValid() {
		return text + "LinkLocalAddressing=no\n"
	}
	// Nobody else has these addresses.
	return text + fmt.Sprintf("Address=%s\nGateway=%s\nLinkLocalAddressing=ipv6\nIPv6DuplicateAddressDetection=0\n", s.Address6, s.Gateway6)
}

// Nameservers returns the name servers of a resolv.conf(5) that other machines can also use: none on the loopback interface.
func Nameservers(text string) (out []netip.Addr) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "nameserver" {
			continue
		}
		if a, err := netip.ParseAddr(f[1]); err == nil && !a.IsLoopback() {
			out = append(out, a)
		}
	}
	return out
}

func snapshot(folder, id string) string { return filepath.Join(folder, snapshots, id) }

// Snapshot copies the root file system of a stopped container. A name that exists is fault.Refused. It is durable on return.
func (m Maker) Snapshot(ctx context.Context, folder, id string) error {
	to := snapshot(folder, id)
	if _, err := os.Lstat(to); err == nil {
		return fault.New(fault.Refused, "", "there is a snapshot %s already", id)
	}
	if err := m.copy(ctx, Root(folder), to+".part"); err != nil {
		return err
	}
	return m.keep(to+".part", to)
}

// Restore replaces the root file system of a stopped container with a copy of a snapshot: at any time it has one or the other.
func (m Maker) Restore(ctx context.Context, folder, id string) error {
	from := snapshot(folder, id)
	if _, err := os.Lstat(from); err != nil {
		return m.unknown(folder, id)
	}
	part := Root(folder) + ".part"
	if err := m.copy(ctx, from, part); err != nil {
		return err
	}
	d, err := os.Open(part)
	if err != nil {
		return err
	}
	err = errors.Join(syncFS(d), d.Close())
	if err != nil {
		return err
	}
	if err := unix.Renameat2(unix.AT_FDCWD, part, unix.AT_FDCWD, Root(folder), unix.RENAME_EXCHANGE); err != nil {
		return fmt.Errorf("exchange %s: %w", Root(folder), err)
	}
	return errors.Join(vfs.SyncDir(m.FS, folder), vfs.RemoveAll(m.FS, part))
}

// Forget removes a snapshot.
func (m Maker) Forget(folder, id string) error {
	if _, err := os.Lstat(snapshot(folder, id)); err != nil {
		return m.unknown(folder, id)
	}
	return m.remove(snapshot(folder, id))
}

func (m Maker) unknown(folder, id string) error {
	list, err := m.Snapshots(folder)
	if err != nil {
		return err
	}
	e := fault.New(fault.Refused, "", "there is no snapshot %s", id)
	if len(list) == 0 {
		return e.WithHint("there are none")
	}
	return e.WithHint("there are: %s", strings.Join(list, ", "))
}

// Snapshots returns the names of the snapshots of a container.
func (m Maker) Snapshots(folder string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(folder, snapshots))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if !strings.Contains(e.Name(), ".") {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out, nil
}

// Remove removes a container's folder and everything in it.
func (m Maker) Remove(folder string) error {
	_, err := os.Lstat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return m.clear(folder + ".trash")
	}
	if err != nil {
		return err
	}
	return m.remove(folder)
}

// remove renames first, so that a partly removed tree no longer has its name.
func (m Maker) remove(dir string) error {
	trash := dir + ".trash"
	if err := m.clear(trash); err != nil {
		return err
	}
	return errors.Join(vfs.RenameDurable(m.FS, dir, trash), m.clear(trash))
}

// syncFS makes the file system of an open folder durable.
func syncFS(d *os.File) error { return unix.Syncfs(int(d.Fd())) } //nolint:gosec // a descriptor fits

// lock waits for a lock until ctx ends.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := vfs.FlockBefore(ctx, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}
