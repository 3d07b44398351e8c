package sshd

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"corpus-git/access"
	"corpus-git/internal/fault"
	"corpus-git/internal/terminal"
)

// Terminal describes the client's terminal.
type Terminal struct {
	// Pty: the client requested a terminal (ssh -t, or no command).
	Pty bool
	// Term is its type; "" if unknown.
	Term string
	// Columns is its width; 0 if unknown.
	Columns int
	// Colour reports whether to use SGR sequences: CORPUS_COLOR requests them, or there is a terminal and NO_COLOR is not set.
	Colour bool
	// Screen is the client's terminal itself: in raw mode, without the processing of Stdin and Stdout. It is for a command that uses neither; nil without Pty.
	Screen *terminal.Terminal
}

// Session is one command of one client.
type Session struct {
	Identity access.Identity
	// User is the name before the @; it has no meaning here.
	User string
	// Command is what the client requested to run, as one string; "" if it requested a shell.
	Command string
	// Subsystem is the requested subsystem; "" if there is none.
	Subsystem string
	// Env holds the variables that the client sent and that are allowed; see AllowedEnv.
	Env      map[string]string
	Terminal Terminal
	// Stdin is the client's input; without a terminal it has the methods Keep and Peer (see timedReader). Stdout and Stderr may be used by any goroutine. With a terminal, line ends are translated, and the
	// interrupt key ends the session's context.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Local is the address of this server that the client connected to.
	Local string
	sizes chan terminal.Size
	// gone is called when the context of a session that is kept ends; nil once it was.
	gone atomic.Pointer[func()]
	peer *peer
}

// AllowedEnv reports whether a client may set a variable.
func AllowedEnv(name string) bool {
	switch name {
	case "GIT_PROTOCOL", "CORPUS_COLOR", "NO_COLOR", "TERM", "COLUMNS", "LANG":
		return true
	}
	return false
}

// reasonGrace is how long a client that is about to be disconnected has to read the reason.
const reasonGrace = time.Second

const (
	maxCommand = 32 << 10
	maxEnv     = 256
	maxSetup   = 64 // requests before the command
)

// accept accepts a session channel within the limit of its connection. If ok is true it counts as one of the connection's sessions.
func (s *Server) accept(sc *gossh.ServerConn, nch gossh.NewChannel) (st *state, ch gossh.Channel, reqs <-chan *gossh.Request, ok bool) {
	st, ok = sc.Permissions.ExtraData[stateKey{}].(*state)
	if !ok {
		_ = nch.Reject(gossh.Prohibited, "not logged in")
		return nil, nil, nil, false
	}
	c := st.conn
	if c.sessions.Add(1) <= int32(c.limits.Sessions) {
		ch, reqs, err := nch.Accept()
		if err != nil {
			c.sessions.Add(-1)
		}
		return st, ch, reqs, err == nil
	}
	c.sessions.Add(-1)
	why := fmt.Sprintf("more than %d sessions on one connection (limits.max_sessions_per_connection)", c.limits.Sessions)
	if c.limitLogged.CompareAndSwap(false, true) { // logged only once
		s.Log.Info().Str("from", c.RemoteAddr().String()).Str("key", st.id.Name).Str("why", why).Msg("session refused")
	}
	_ = nch.Reject(gossh.ResourceShortage, why)
	return nil, nil, nil, false
}

// setCommand reads the command in a request; ok is false if it is malformed or too long.
func (s *Session) setCommand(req *gossh.Request) (ok bool) {
	if req.Type == "shell" {
		return true
	}
	text, ok := payloadString(req.Payload)
	if !ok || len(text) > maxCommand {
		return false
	}
	if req.Type == "exec" {
		s.Command = text
	} else {
		s.Subsystem = text
	}
	return true
}

// channel serves one session channel (RFC 4254, 6).
func (s *Server) channel(sc *gossh.ServerConn, nch gossh.NewChannel) {
	st, ch, reqs, ok := s.accept(sc, nch)
	if !ok {
		return
	}
	c := st.conn
	defer c.sessions.Add(-1)
	c.watch(sc)
	s.announce(sc, c)
	ctx, cancelContext := context.WithCancel(context.Background())
	sess := &Session{Identity: st.id, User: sc.User(), Env: map[string]string{}, Local: sc.LocalAddr().String(), peer: &peer{s, c, sc}}
	cancel := func() {
		cancelContext()
		if gone := sess.gone.Swap(nil); gone != nil {
			go (*gone)()
		}
	}
	defer cancel()
	done := make(chan bool, 1)
	started := false
	closed := make(chan struct{}) // closed by the client
	// over is called when our side has ended; the client closes its side in turn.
	over := sync.OnceFunc(func() {
		c.running.Add(-1)
		go c.awaitClose(closed)
	})
	c.running.Add(1)
	defer over()
	defer close(closed)
	ended := func(why string) {
		s.Log.Info().Str("from", c.RemoteAddr().String()).Str("key", st.id.Name).Str("why", why).Msg("session ended")
		_ = ch.Close()
		over()
	}
	setup := time.AfterFunc(c.limits.Idle, func() { ended(fmt.Sprintf("no command within %s (limits.idle_timeout)", c.limits.Idle)) })
	defer setup.Stop()
	for n := 0; ; n++ {
		req, open := <-reqs
		if !open {
			break
		}
		if n > maxSetup && !started {
			ended(fmt.Sprintf("more than %d requests before a command", maxSetup))
			break
		}
		ok := false
		switch req.Type {
		case "exec", "shell", "subsystem":
			if started || !sess.setCommand(req) {
				break
			}
			ok, started = true, true
			setup.Stop()
			if req.WantReply {
				_ = req.Reply(true, nil)
			}
			go s.run(ctx, cancel, c, ch, sess, ended, func(counted bool) {
				over()
				done <- counted
			})
			continue
		case "env":
			ok = !started && sess.setEnv(req.Payload)
		case "pty-req":
			ok = !started && !sess.Terminal.Pty && sess.setPty(req.Payload)
		case "window-change":
			sess.resize(req.Payload)
			ok = true
		case "signal":
			if name, good := payloadString(req.Payload); good && slices.Contains([]string{"INT", "TERM", "HUP", "KILL", "QUIT"}, name) {
				cancel()
			}
		}
		if req.WantReply {
			_ = req.Reply(ok, nil)
		}
	}
	// The client closed the channel, or disconnected. The handler ends soon: its context has ended, and its writes fail.
	cancel()
	_ = ch.Close()
	if started {
		if <-done {
			s.end()
		}
	}
}

// run calls the handler and ends the channel: all output, exit status, end of file, close. Then it calls over; counted reports that Shutdown waits for the
// session, until the client has received its end. A session that is kept is ended by the function that Keep returned.
func (s *Server) run(ctx context.Context, cancel context.CancelFunc, c *conn, ch gossh.Channel, sess *Session, end func(why string), over func(counted bool)) {
	out := &timedWriter{w: ch, end: end, limit: c.limits.WriteIdle}
	errw := &timedWriter{w: ch.Stderr(), end: end, limit: c.limits.WriteIdle}
	in := &timedReader{r: ch, peer: sess.peer, limit: c.limits.ReadIdle, end: func(why string) {
		// The client may still read: standard error is shown to its user. This does not block.
		stuck := time.AfterFunc(reasonGrace, func() { _ = ch.Close() })
		_, _ = fmt.Fprintf(ch.Stderr(), "error: %s\n", why)
		stuck.Stop()
		end(why)
	}}
	sess.Stdin, sess.Stdout, sess.Stderr = in, out, errw
	sess.finishTerminal()
	if sess.Terminal.Pty {
		sess.Terminal.Screen.In, sess.Terminal.Screen.Out = ch, out
		sess.Stdin = &keyboard{r: in, interrupt: cancel}
		sess.Stdout, sess.Stderr = &screen{w: out}, &screen{w: errw}
	}
	exit, counted, kept := fault.Internal.ExitCode(), s.begin(), false
	var once sync.Once
	var forget func()
	finish := func(exit int) {
		once.Do(func() {
			forget()
			out.finish()
			errw.finish()
			// All output, then the status, then the end of file (RFC 4254, 6.10 and 5.3). The end of file must be last: a client that has ended its
			// own side closes the channel when it receives it (PuTTY does), and a status after that is never sent. Such a client treats a session without a status as a
			// success.
			_, _ = ch.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, uint32(exit)))
			_ = ch.CloseWrite()
			_ = ch.Close()
			over(counted)
		})
	}
	forget = s.track(sess, finish)
	in.keep = func(gone func()) func(exit int) {
		kept = true
		sess.gone.Store(&gone)
		if ctx.Err() != nil {
			cancel()
		}
		return func(exit int) {
			sess.gone.Store(nil)
			finish(exit)
		}
	}
	if !counted {
		exit = s.refuse(sess, fault.New(fault.Busy, "", "the server is shutting down").WithHint("try again in a minute"))
	} else {
		func() {
			defer func() {
				if p := recover(); p != nil {
					s.Log.Error().Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("session")
					fmt.Fprintln(sess.Stderr, "corpus-git: internal error, see the server's log")
				}
			}()
			if s.LoggedIn != nil {
				// In the background: writing a timestamp to disk must not delay a push.
				noted := make(chan struct{})
				go func() { defer close(noted); s.LoggedIn(sess.Identity) }()
				defer func() { <-noted }()
			}
			exit = s.Handler.Serve(ctx, sess)
		}()
	}
	if !kept {
		finish(exit)
	}
}

// refuse tells a client why its command is not run, and returns the exit status.
func (s *Server) refuse(sess *Session, err error) int {
	if s.Refuse != nil {
		return s.Refuse(sess, err)
	}
	fmt.Fprintf(sess.Stderr, "error: %s\nhint: %s\n", err, fault.HintOf(err))
	return fault.ExitCode(err)
}

// setEnv stores an allowed variable (RFC 4254, 6.4).
func (sess *Session) setEnv(payload []byte) bool {
	var kv struct{ Name, Value string }
	if gossh.Unmarshal(payload, &kv) != nil || !AllowedEnv(kv.Name) || len(kv.Value) > maxEnv {
		return false
	}
	for i := range len(kv.Value) {
		if b := kv.Value[i]; b < 0x20 || b == 0x7f {
			return false
		}
	}
	sess.Env[kv.Name] = kv.Value
	return true
}

// setPty records the terminal (RFC 4254, 6.2). A pty is allocated only by a command that takes it over.
func (sess *Session) setPty(payload []byte) bool {
	var p struct {
		Term                         string
		Columns, Rows, Width, Height uint32
		Modes                        string
	}
	if gossh.Unmarshal(payload, &p) != nil || len(p.Term) > maxEnv {
		return false
	}
	sess.sizes = make(chan terminal.Size, 1)
	sess.Terminal = Terminal{Pty: true, Term: p.Term, Columns: int(min(p.Columns, 1000)), Screen: &terminal.Terminal{
		Name: printableTerm(p.Term), Size: terminal.Size{Columns: int(min(p.Columns, 1000)), Rows: int(min(p.Rows, 1000))}, Sizes: sess.sizes,
	}}
	return true
}

// printableTerm returns the type of a terminal if it is valid: it becomes an environment variable of the command.
func printableTerm(name string) string {
	if len(name) > 64 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' }) {
		return ""
	}
	return name
}

// resize records a new size of the terminal (RFC 4254, 6.7), replacing one that has not been read yet.
func (sess *Session) resize(payload []byte) {
	var p struct{ Columns, Rows, Width, Height uint32 }
	if sess.sizes == nil || gossh.Unmarshal(payload, &p) != nil {
		return
	}
	select {
	case <-sess.sizes:
	default:
	}
	select {
	case sess.sizes <- terminal.Size{Columns: int(min(p.Columns, 1000)), Rows: int(min(p.Rows, 1000))}:
	default:
	}
}

// finishTerminal combines pty-req and the environment.
func (sess *Session) finishTerminal() {
	t := &sess.Terminal
	if t.Term == "" {
		t.Term = sess.Env["TERM"]
	}
	if t.Columns == 0 {
		if n, err := strconv.Atoi(sess.Env["COLUMNS"]); err == nil && n > 0 && n <= 1000 {
			t.Columns = n
		}
	}
	t.Colour = t.Pty && t.Term != "dumb" && sess.Env["NO_COLOR"] == ""
	switch sess.Env["CORPUS_COLOR"] {
	case "1", "always", "true", "yes", "on":
		t.Colour = true
	case "0", "never", "false", "no", "off":
		t.Colour = false
	}
}

func payloadString(b []byte) (string, bool) {
	var p struct{ Value string }
	if gossh.Unmarshal(b, &p) != nil {
		return "", false
	}
	return p.Value, true
}

// timedWriter ends the session when a write blocks for too long: a full window blocks a write forever.
type timedWriter struct {
	mu     sync.Mutex
	w      io.Writer
	end    func(why string) // ends the session
	limit  time.Duration
	closed bool
}

func (t *timedWriter) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return 0, io.ErrClosedPipe
	}
	why := fmt.Sprintf("the client did not read its output for %s (limits.write_timeout)", t.limit)
	timer := time.AfterFunc(t.limit, func() { t.end(why) })
	n, err := t.w.Write(p)
	if !timer.Stop() && err == nil {
		err = io.ErrClosedPipe
	}
	t.closed = err != nil
	return n, err
}

// finish refuses later writes, including those of goroutines that the handler left running.
func (t *timedWriter) finish() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
}

// timedReader ends the session when no input arrives for too long.
type timedReader struct {
	r     io.Reader
	end   func(why string)
	limit time.Duration
	keep  func(gone func()) (finish func(exit int))
	peer  *peer
}

// Keep lets the session go on after its handler has returned, without a goroutine of its own: there may be many that only wait. The handler calls it once, before it returns, and its exit status then does not matter. The session ends, and
// its streams with it, at the first call of finish. gone is called in a goroutine of its own when the session's context ends; finish must be called then, too.
func (t *timedReader) Keep(gone func()) (finish func(exit int)) { return t.keep(gone) }

func (t *timedReader) Read(p []byte) (int, error) {
	timer := time.AfterFunc(t.limit, func() { t.end(fmt.Sprintf("no data received for %s (limits.read_timeout)", t.limit)) })
	n, err := t.r.Read(p)
	if !timer.Stop() {
		return n, fault.New(fault.Failed, "reading", "no data received for %s (limits.read_timeout)", t.limit)
	}
	return n, err
}

// screen writes lines as a terminal in raw mode needs them.
type screen struct{ w io.Writer }

func (s *screen) Write(p []byte) (int, error) {
	if _, err := s.w.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// keyboard reads what a terminal in raw mode sends: the interrupt key ends the session, Ctrl-D the input.
type keyboard struct {
	r         io.Reader
	interrupt func()
	ended     bool
}

func (k *keyboard) Read(p []byte) (int, error) {
	if k.ended {
		return 0, io.EOF
	}
	n, err := k.r.Read(p)
	for i := range n {
		switch p[i] {
		case 3:
			k.interrupt()
			k.ended = true
			return i, io.EOF
		case 4:
			k.ended = true
			return i, io.EOF
		case '\r':
			p[i] = '\n'
		}
	}
	return n, err
}
