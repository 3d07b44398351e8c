package agents

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/crypto/ssh"

	"corpus-git/fleet/upgrade"
	"corpus-git/internal/fault"
)

// trialTimeout is how long a new program of an agent may take to connect to the hub.
const trialTimeout = 2 * time.Minute

// Upgrading replaces the program of an agent that dials in.
type Upgrading struct {
	Programs *upgrade.Programs
	// Taken is closed when a program was received: the agent ends, and the new program is started.
	Taken chan struct{}

	mu   sync.Mutex
	done bool
}

// Take receives a program from the hub, unless a deployment is running.
func (u *Upgrading) Take(ctx context.Context, in *bufio.Reader, busy func() int, trusted func(ssh.PublicKey) error, log zerolog.Logger) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.done || busy() > 0 {
		return fault.New(fault.Busy, "", "a deployment or another upgrade is in progress there").WithHint("try again when it has ended")
	}
	if err := u.Programs.Take(ctx, in, trusted); err != nil {
		return err
	}
	u.done = true
	log.Info().Msg("received a new program for this agent: starting it")
	time.AfterFunc(time.Second, func() { close(u.Taken) }) // the hub hears of it before this agent ends
	return nil
}

// Dialling runs an agent that dials in, with run, and each program that its hub sends. run returns the signals to pass on. args and env are those of this
// process.
func Dialling(dir string, args, env []string, out, errout *os.File, run func(*Upgrading) (<-chan os.Signal, error)) error {
	programs, err := upgrade.Open(dir)
	if err != nil {
		return err
	}
	path, err := programs.Chosen()
	if err != nil {
		return err
	}
	if path != "" {
		return syscall.Exec(path, append([]string{path}, args...), env)
	}
	for {
		up := &Upgrading{Programs: programs, Taken: make(chan struct{})}
		signals, err := run(up)
		select {
		case <-up.Taken:
		default:
			return err
		}
		if err != nil {
			return err
		}
		came, err := programs.Try(upgrade.Trial{Args: args, Env: env, Stdout: out, Stderr: errout, Timeout: trialTimeout, Signals: signals})
		var exit *exec.ExitError
		switch {
		case errors.Is(err, upgrade.ErrStopped):
			return nil
		case came && errors.As(err, &exit) && exit.ExitCode() >= 0:
			os.Exit(exit.ExitCode())
		case came || err != nil:
			return err
		}
	}
}
