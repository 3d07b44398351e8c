package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"corpus-git/internal/terminal"
)

// WriteIdle is the timeout of a write to a client that does not read.
const WriteIdle = time.Minute

// Peer is the user at the other end, as reported by the kernel.
type Peer struct {
	UID  int
	User string
}

// Run serves one request and returns the exit status. ctx ends when the client goes away or is interrupted, and when the
// server stops.
type Run func(ctx context.Context, p Peer, q Request, stdin io.Reader, stdout, stderr io.Writer) int

// Server answers on the socket.
type Server struct {
	Run Run
	Log zerolog.Logger

	active   atomic.Int64
	listener *net.UnixListener
	path     string
	wg       sync.WaitGroup
}

// Listen creates the socket at path, replacing a stale one. The caller holds the state's lock, so that no other server
// can be using it.
func Listen(path string, run Run, log zerolog.Logger) (*Server, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	name, dir, err := shortName(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	// The directory is ours alone (0700), so nobody gets in between bind and chmod.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // its name may be the short one, which is no longer true then
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, err
	}
	return &Server{Run: run, Log: log, listener: l, path: path}, nil
}

// shortName returns a short alternative name of a socket, as unix(7) allows only 107 bytes. It is valid as long as dir is open.
func shortName(path string) (name string, dir *os.File, err error) {
	fd, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, &os.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", fd, filepath.Base(path)), os.NewFile(uintptr(fd), filepath.Dir(path)), nil //nolint:gosec // a descriptor is not negative
}

// Serve accepts connections until Close; requests end when ctx does. It returns after the last request has ended.
func (s *Server) Serve(ctx context.Context) error {
	defer s.wg.Wait()
	for {
		c, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			s.Log.Warn().Err(err).Msg("control: accept")
			time.Sleep(50 * time.Millisecond)
			continue
		}
		s.wg.Add(1)
		s.active.Add(1)
		go func() {
			defer s.wg.Done()
			defer s.active.Add(-1)
			defer c.Close()
			if err := s.serve(ctx, c); err != nil {
				s.Log.Debug().Err(err).Msg("control")
			}
		}()
	}
}

// Active returns the number of running requests.
func (s *Server) Active() int { return int(s.active.Load()) }

// Close stops listening and removes the socket. Running requests continue.
func (s *Server) Close() error { return errors.Join(os.Remove(s.path), s.listener.Close()) }

// deadlineConn is a connection with a deadline for each write.
type deadlineConn struct{ net.Conn }

func (p deadlineConn) Write(b []byte) (int, error) {
	if err := p.SetWriteDeadline(time.Now().Add(WriteIdle)); err != nil {
		return 0, err
	}
	return p.Conn.Write(b)
}

func (s *Server) serve(ctx context.Context, c *net.UnixConn) error {
	peer, err := credentials(c)
	if err != nil {
		return err
	}
	if peer.UID != os.Geteuid() && peer.UID != 0 {
		return fmt.Errorf("control: turned away user %d", peer.UID)
	}
	w := &writer{w: deadlineConn{c}}
	r := bufio.NewReader(c)
	if err := c.SetReadDeadline(time.Now().Add(WriteIdle)); err != nil {
		return err
	}
	k, p, err := receive(r)
	if err != nil {
		return err
	}
	if k != request {
		return fmt.Errorf("control: %q instead of a request", byte(k))
	}
	q, err := parseRequest(p)
	if err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if q.Protocol != Protocol {
		_ = w.send(errout, fmt.Appendf(nil, "error: the server speaks version %d of the control protocol, this command %d\nhint: use the corpus-git that the server runs\n", Protocol, q.Protocol))
		return w.send(exit, []byte{3})
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q.Sizes = make(chan terminal.Size, 1)
	in, feed := io.Pipe()
	defer in.Close()
	// A request may wait for input when the server stops: it gets an error, as the end of the input would look complete.
	defer context.AfterFunc(ctx, func() { feed.CloseWithError(context.Cause(ctx)) })()
	go func() {
		defer cancel()
		err := pump(r, feed, q.Sizes)
		feed.CloseWithError(err)
	}()
	code := s.Run(ctx, peer, q, in, stream{w, output}, stream{w, errout})
	return w.send(exit, []byte{byte(code)})
}

// pump forwards standard input until the client disconnects.
func pump(r io.Reader, feed *io.PipeWriter, sizes chan terminal.Size) error {
	for {
		k, p, err := receive(r)
		if err != nil {
			return err
		}
		switch k {
		case input:
			// A command that does not read its input closes the pipe: the rest is dropped.
			if _, err := feed.Write(p); err != nil && !errors.Is(err, io.ErrClosedPipe) {
				return err
			}
		case resized:
			var s terminal.Size
			if json.Unmarshal(p, &s) != nil {
				return errors.New("control: no size of a terminal")
			}
			select {
			case <-sizes:
			default:
			}
			sizes <- s // the only sender
		case eof:
			_ = feed.Close()
		case leave:
			return context.Canceled
		default:
			return fmt.Errorf("control: unexpected frame %q", byte(k))
		}
	}
}

// credentials returns the peer's credentials from the kernel.
func credentials(c *net.UnixConn) (Peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return Peer{}, err
	}
	var cred *unix.Ucred
	var cerr error
	if err := raw.Control(func(fd uintptr) { cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return Peer{}, err
	}
	if cerr != nil {
		return Peer{}, cerr
	}
	p := Peer{UID: int(cred.Uid), User: UserName(int(cred.Uid))}
	return p, nil
}

// UserName returns the name of a user of this machine, or the number if it has none.
func UserName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}
