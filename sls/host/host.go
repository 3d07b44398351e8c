package host

import (
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"corpus-git/internal/execx"
)

// Host is the machine as SLS files see it. New returns the real one; tests replace fields.
type Host struct {
	// Now is the clock.
	Now func() time.Time
	// Exec runs commands.
	Exec execx.Commander
	// Users looks accounts up.
	Users Users
	// Environ is the environment that commands inherit, as os.Environ returns it.
	Environ []string
	// ToolDirs are searched for the machine's own tools, after PATH.
	ToolDirs []string
	// EUID is the effective user that this process runs as; 0 may become other users.
	EUID int
	// EGID is the effective group of this process.
	EGID int
	// AptDir is where apt keeps its sources and keys; "" means /etc/apt.
	AptDir string
	// EtcDir is the directory of shadow and login.defs; "" means /etc.
	EtcDir string
	// Boot differs after each boot of the machine, "" if unknown (proc_sys_kernel(5), random/boot_id).
	Boot string
	// Random returns an integer from 0 to n-1; nil uses the default generator.
	Random func(n int) int
	// Refused, if not nil, counts what RunShell refused to run: command lines, and programs given by their path or searched elsewhere than
	// in PATH. Only the machine's own tools are then run. It is for plans.
	Refused *int
}

// ErrRefused is returned by RunShell for what Refused counts.
var ErrRefused = errors.New("commands are not run in a plan")

// refuses reports whether a command is not run in a plan.
func (h *Host) refuses(s Shell) bool {
	if h.Refused == nil || s.Prepend == "" && len(s.Argv) > 0 && !strings.Contains(s.Argv[0], "/") {
		return false
	}
	*h.Refused++
	return true
}

// RandomInt returns a number from 0 to n-1, for values that should differ from machine to machine; it is not a secret.
func (h *Host) RandomInt(n int) int {
	if h.Random != nil {
		return h.Random(n)
	}
	return rand.IntN(n)
}

// Cred is an account to run as.
type Cred struct {
	UID, GID int
	Groups   []int
	Name     string
	Home     string
	Shell    string
}

// Syscall returns the credential in the form that starts a process; nil for a nil Cred.
func (c *Cred) Syscall() *syscall.Credential {
	if c == nil {
		return nil
	}
	out := &syscall.Credential{Uid: uint32(c.UID), Gid: uint32(c.GID)}
	for _, g := range c.Groups {
		out.Groups = append(out.Groups, uint32(g))
	}
	return out
}

// ErrNoAccount is wrapped by errors about a user or group that does not exist.
var ErrNoAccount = errors.New("no such account")

// User is an entry of the account database.
type User struct {
	Name     string
	UID, GID int
	Gecos    string
	Home     string
	Shell    string
	// Passwd is the second field, usually x: the hash is elsewhere.
	Passwd string
}

// Group is an entry of the group database.
type Group struct {
	Name    string
	GID     int
	Members []string
	// Passwd is the second field, usually x.
	Passwd string
}

// Users looks up accounts by name or number. Errors wrap ErrNoAccount if there is none. The database is read for each call, since states
// change it.
type Users interface {
	User(nameOrUID string) (User, error)
	Group(nameOrGID string) (Group, error)
	// UserByID and GroupByID look up by number only, since the name of an account may be the number of another.
	UserByID(uid int) (User, error)
	GroupByID(gid int) (Group, error)
	// GroupsOf returns the IDs of all groups of a user, the primary one first.
	GroupsOf(u User) ([]int, error)
}

// CredFor returns the credential to run as a user. It is nil if that is this process's own user, and an error if this process may not
// become that user.
func (h *Host) CredFor(name string) (*Cred, error) {
	if name == "" {
		return nil, nil
	}
	u, err := h.Users.User(name)
	if err != nil {
		return nil, err
	}
	if u.UID == h.EUID {
		return nil, nil
	}
	if h.EUID != 0 {
		return nil, errors.New("only root can run a command as " + u.Name + " (this process runs as uid " + strconv.Itoa(h.EUID) + ")")
	}
	groups, err := h.Users.GroupsOf(u)
	if err != nil {
		return nil, err
	}
	return &Cred{UID: u.UID, GID: u.GID, Groups: groups, Name: u.Name, Home: u.Home, Shell: u.Shell}, nil
}

// Whoami returns the name of the user this process runs as, or its number if it has no name.
func (h *Host) Whoami() string {
	u, err := h.Users.UserByID(h.EUID)
	if err != nil {
		return strconv.Itoa(h.EUID)
	}
	return u.Name
}

// New returns the real machine; commands run through exec.
func New(exec execx.Commander) *Host {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return &Host{
		Now:      time.Now,
		Exec:     exec,
		Users:    FileUsers{},
		Environ:  os.Environ(),
		ToolDirs: []string{"/usr/sbin", "/usr/bin", "/sbin", "/bin"},
		EUID:     os.Geteuid(),
		EGID:     os.Getegid(),
		Boot:     strings.TrimSpace(string(boot)),
	}
}
