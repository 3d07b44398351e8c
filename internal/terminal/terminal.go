// Package terminal runs commands on a pseudo terminal for a user whose own terminal is elsewhere: at the other end of an SSH session, or of a socket.
package terminal

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"corpus-git/internal/execx"
)

// Size is the size of a screen, in characters.
type Size struct {
	Columns int `json:"columns"`
	Rows    int `json:"rows"`
}

// Terminal is the caller's, in raw mode: what is read from In are keys, what is written to Out is shown as it is.
type Terminal struct {
	// Name is the type of the terminal, as in TERM; "" if unknown.
	Name string
	Size Size
	// Sizes receives the new size when it changes; nil if that is not reported.
	Sizes <-chan Size
	In    io.Reader
	Out   io.Writer
}

// lastOutput is how long Run waits for further output of background processes after the command has ended.
const lastOutput = time.Second

// Run runs a command on a pseudo terminal, which becomes the controlling terminal of its session, and returns how it ended. The streams of c are not used.
// When ctx ends, the terminal is hung up, and the session is ended as described at execx.Commander. In may be read once more after Run has returned.
func (t *Terminal) Run(ctx context.Context, exec execx.Commander, c execx.Cmd) (execx.Status, error) {
	master, tty, err := openPair()
	if err != nil {
		return execx.Status{}, fmt.Errorf("open a pseudo terminal: %w", err)
	}
	defer master.Close()
	defer tty.Close()
	if c.Credential != nil {
		if err := tty.Chown(int(c.Credential.Uid), -1); err != nil {
			return execx.Status{}, err
		}
	}
	resize := func(s Size) error {
		if s.Columns <= 0 || s.Rows <= 0 {
			s = Size{80, 24}
		}
		return setSize(master, s)
	}
	if err := resize(t.Size); err != nil {
		return execx.Status{}, fmt.Errorf("set the size of a pseudo terminal: %w", err)
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case s := <-t.Sizes:
				_ = resize(s)
			case <-ctx.Done():
				_ = master.Close() // the session gets SIGHUP
				return
			case <-over:
				return
			}
		}
	}()
	go func() { _, _ = io.Copy(master, t.In) }()
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		_, _ = io.Copy(t.Out, master) // ends with EIO when the last process has closed the terminal
	}()
	if t.Name != "" {
		c.Env = append(append([]string{}, c.Env...), "TERM="+t.Name)
	}
	c.Terminal = tty
	st, err := exec.Run(ctx, c)
	_ = tty.Close()
	select {
	case <-shown:
	case <-time.After(lastOutput):
	}
	return st, err
}

// openPair opens a pseudo terminal. Its master does not block: closing it ends a waiting Read, and hangs the terminal up at once, whereas a blocking one would be
// open until the Read has ended (pty.Open makes it blocking, as os.File.Fd does).
func openPair() (master, tty *os.File, err error) {
	blocking, tty, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer blocking.Close()
	fd, err := unix.FcntlInt(blocking.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		if err = unix.SetNonblock(fd, true); err != nil {
			_ = unix.Close(fd)
		}
	}
	if err != nil {
		_ = tty.Close()
		return nil, nil, err
	}
	return os.NewFile(uintptr(fd), blocking.Name()), tty, nil //nolint:gosec // a descriptor is not negative
}

// setSize tells the kernel the size of a terminal, at most 10,000 characters each way. The file stays non-blocking.
func setSize(master *os.File, s Size) error {
	conn, err := master.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	if err := conn.Control(func(fd uintptr) {
		set = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(min(s.Columns, 10_000)), Row: uint16(min(s.Rows, 10_000))}) //nolint:gosec // bounded
	}); err != nil {
		return err
	}
	return set
}
