package host

import (
	"context"
	"errors"
	"io"
	"os/user"
	"strconv"
	"time"
)

// Host is the machine as SLS files see it. New gives the real one; tests replace fields.
type Host struct {
	// Now is the clock.
	Now func() time.Time
	// Exec runs commands.
	Exec Commander
	// Users looks accounts up.
	Users Users
	// Environ is the environment that commands inherit, as os.Environ gives it.
	Environ []string
	// EUID is the effective user that this process runs as; 0 may become other users.
	EUID int
	// EGID is the effective group of this process.
	EGID int
}

// Cmd is one command to run.
type Cmd struct {
	// Argv is the program and its arguments; Argv[0] is looked up in PATH of Env.
	Argv []string
	// Dir is the working directory; it must exist.
	Dir string
	// Env is the whole environment of the command, KEY=VALUE.
	Env []string
	// Cred is who the command runs as; nil is the user of this process.
	Cred *Cred
	// Umask is the file mode mask of the command; nil leaves that of this process.
	Umask *int
	// Stdin is what the command reads; nil is an empty input.
	Stdin io.Reader
	// Stdout and Stderr get the output as it comes; they may be the same writer, which
	// is then never called by two goroutines at once. nil discards.
	Stdout, Stderr io.Writer
	// Timeout ends the command; 0 is no limit of its own.
	Timeout time.Duration
}

// Cred is an account to run as.
type Cred struct {
	UID, GID int
	Groups   []int
	Name     string
	Home     string
	Shell    string
}

// Exit tells how a command ended.
type Exit struct {
	// Code is the exit status; 128 plus the signal's number where a signal ended it.
	Code int
	// Pid was the process ID of the command.
	Pid int
	// TimedOut is true where Cmd.Timeout ended it.
	TimedOut bool
	Duration time.Duration
}

// Commander runs commands. An exit status other than 0 is an Exit, not an error; the error
// tells that the command could not be started, or that ctx ended. Run returns when the
// command and its process group are gone.
type Commander interface {
	Run(ctx context.Context, c *Cmd) (Exit, error)
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
}

// Group is an entry of the group database.
type Group struct {
	Name    string
	GID     int
	Members []string
}

// Users looks up accounts by name or number. Errors wrap ErrNoAccount where there is none.
// Answers are read afresh each time, as states change the database.
type Users interface {
	User(nameOrUID string) (User, error)
	Group(nameOrGID string) (Group, error)
	// GroupsOf are the IDs of all groups of a user, the primary one first.
	GroupsOf(u User) ([]int, error)
}

// CredFor is the credential to run as a user. It is nil where that is the user this process
// already runs as, and an error where this process may not become that user.
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

// Whoami is the name of the user this process runs as, or its number where it has no name.
func (h *Host) Whoami() string {
	u, err := h.Users.User(strconv.Itoa(h.EUID))
	if err != nil {
		var unknown user.UnknownUserIdError
		_ = errors.As(err, &unknown)
		return strconv.Itoa(h.EUID)
	}
	return u.Name
}
