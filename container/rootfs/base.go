package rootfs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
)

// Maker makes root file systems. It needs root.
type Maker struct {
	Exec execx.Commander
	FS   vfs.FS
	// Env is the environment of the tools.
	Env []string
	// Bases is the folder of the base systems.
	Bases string
}

// DefaultSuite is the release of Debian that containers have by default.
const DefaultSuite = "bookworm"

// packages returns the packages of every base system: those for booting, for logins and addresses, and for the
// firewall.
func packages() []string {
	return []string{"systemd", "systemd-sysv", "dbus", "openssh-server", "iproute2", "nftables", "ca-certificates"}
}

// System describes a base system.
type System struct {
	Suite, Mirror string
	// Packages are those in addition to the ones that every system has.
	Packages []string
}

// name returns the name of its folder: the same for the same system, whatever the order of the packages.
func (s System) name() string {
	all := slices.Sorted(slices.Values(append(packages(), s.Packages...)))
	sum := sha256.Sum256([]byte(strings.Join(append([]string{s.Mirror}, slices.Compact(all)...), "\n")))
	return fmt.Sprintf("%s-%x", s.Suite, sum[:6])
}

// Check refuses a system with invalid names, since they become command arguments.
func (s System) Check() error {
	for _, w := range append([]string{s.Suite}, s.Packages...) {
		if strings.Trim(w, "abcdefghijklmnopqrstuvwxyz0123456789.+-") != "" || w == "" || strings.HasPrefix(w, "-") {
			return fault.New(fault.Usage, "", "%q is not the name of a release or of a package", w)
		}
	}
	if m := s.Mirror; m != "" && !strings.HasPrefix(m, "http://") && !strings.HasPrefix(m, "https://") && !strings.HasPrefix(m, "file:///") {
		return fault.New(fault.Usage, "", "%q is not the address of a Debian mirror", m).WithHint("such as https://deb.debian.org/debian")
	}
	return nil
}

// Base returns the folder of a base system, and makes it if it does not exist yet, which takes some minutes. say
// is then called.
func (m Maker) Base(ctx context.Context, s System, say func(string)) (string, error) {
	if err := s.Check(); err != nil {
		return "", err
	}
	dir := filepath.Join(m.Bases, s.name())
	if _, err := os.Lstat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(m.Bases, 0o700); err != nil {
		return "", err
	}
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Lstat(dir); err == nil {
		return dir, nil // another process made it meanwhile
	}
	part := dir + partial
	if err := errors.Join(m.sweep(part), m.clear(part)); err != nil {
		return "", err
	}
	say("making the base system with debootstrap: some minutes, once")
	// In namespaces of its own: if this process is killed, all that debootstrap started ends, and what it mounted is unmounted (unshare(1)).
	args := []string{"unshare", "--mount", "--pid", "--kill-child", "debootstrap", "--variant=minbase", "--include=" + strings.Join(append(packages(), s.Packages...), ","), s.Suite, part}
	if s.Mirror != "" {
		args = append(args, s.Mirror)
	}
	if err := m.run(ctx, "", args...); err != nil {
		return "", m.failed(part, err)
	}
	if err := neutral(part); err != nil {
		return "", m.failed(part, err)
	}
	return dir, m.keep(part, dir)
}

// partial is the end of the name of a base system that is being made.
const partial = ".part"

// sweep removes what interrupted calls left of other base systems, which may never be asked for again. Those that are being made are locked.
func (m Maker) sweep(own string) error {
	entries, err := os.ReadDir(m.Bases)
	for _, e := range entries {
		part := filepath.Join(m.Bases, e.Name())
		if base, ok := strings.CutSuffix(part, partial); ok && part != own {
			err = errors.Join(err, m.sweepOne(base))
		}
	}
	return err
}

func (m Maker) sweepOne(base string) error {
	enough, end := context.WithCancel(context.Background())
	end() // it is tried once
	unlock, err := lock(enough, base+".lock")
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	return m.clear(base + partial)
}

// neutral removes from a system what must not be shared by several containers.
func neutral(root string) error {
	keys, err := filepath.Glob(filepath.Join(root, "etc/ssh/ssh_host_*"))
	if err != nil {
		return err
	}
	for _, k := range keys {
		err = errors.Join(err, os.Remove(k))
	}
	archives, gerr := filepath.Glob(filepath.Join(root, "var/cache/apt/archives/*.deb"))
	for _, a := range archives {
		err = errors.Join(err, os.Remove(a))
	}
	// An empty file: the machine chooses its ID when it boots (machine-id(5), "Initialization").
	return errors.Join(err, gerr, os.WriteFile(filepath.Join(root, "etc/machine-id"), nil, 0o444))
}

// keep renames what was made under a temporary name to its final name; it is durable on return.
func (m Maker) keep(part, dir string) error {
	d, err := os.Open(part)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := syncFS(d); err != nil {
		return err
	}
	return vfs.RenameDurable(m.FS, part, dir)
}

// maxSaid limits how much of a tool's output an error repeats, in bytes.
const maxSaid = 4 << 10

// run runs a tool; the last line of its output is in the error.
func (m Maker) run(ctx context.Context, dir string, argv ...string) error {
	said := &execx.Tail{Max: maxSaid}
	st, err := m.Exec.Run(ctx, execx.Cmd{Argv: argv, Dir: dir, Env: m.Env, Stdout: said, Stderr: said, Stdin: bytes.NewReader(nil)})
	if err != nil {
		return fault.New(fault.Failed, "", "%s: %w", filepath.Base(argv[0]), err)
	}
	if st.Exit != 0 {
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		if argv[0] == "unshare" {
			argv = argv[4:]
		}
		return fault.New(fault.Failed, "", "%s: exit status %d: %s", filepath.Base(argv[0]), st.Exit, printable.Text(lines[len(lines)-1]))
	}
	return nil
}
