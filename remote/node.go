package remote

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"corpus-git/bundle"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
)

// Node is corpus-git on another machine. It is not safe for concurrent use.
type Node struct {
	// Host is the connection. Dial, if set, returns sessions of a connected agent, and Host only names the machine.
	Host *Host
	Dial func(ctx context.Context) (io.ReadWriteCloser, error)
	// Hello is the machine's greeting at the beginning of the session.
	Hello Hello
	// Protocol is the version that both sides use, once a session was begun. Any allows a machine with an unknown version: for Upgrade
	// only.
	Protocol int
	Any      bool
	// Release is the program to install there.
	Release Release
	// Program is its path there, once a session was begun.
	Program string
	// Root is the root there, "" for the program's default.
	Root string
	// Untrust are the public keys that this machine had before, lines as in authorized_keys: their bundles are not accepted there any more.
	Untrust []string
	// Project is whose commits there are asked for at the beginning of a session: the answer comes with that of the key. "" asks when a bundle is sent.
	Project project.Name

	key  string
	conn *conn
	// looks: the session was begun by Look.
	looks bool
	// tips is what the machine has of Project, as it said in this session or as follows from what it took; nil if that is not known.
	tips *bundle.Tips
}

// Open begins a session, once: then the program is installed, and a server or an agent owns the state, so that what is deployed outlives
// the connection. Bundles signed with key are accepted; "" trusts no further key. sent is how many bytes were sent for the program.
func (n *Node) Open(ctx context.Context, key string) (sent int64, err error) {
	n.key = key
	if n.conn != nil {
		return 0, nil
	}
	return n.connect(ctx)
}

// connect begins a new session, and installs the program if it is missing.
func (n *Node) connect(ctx context.Context) (sent int64, err error) {
	n.tips = nil
	if n.Dial != nil {
		if n.conn, err = n.attach(ctx); err != nil {
			return 0, err
		}
	}
	if n.Dial == nil {
		n.conn = n.resume(ctx)
	}
	verified := false
	for range 3 {
		if n.conn != nil {
			break
		}
		c, missing, err := n.start(ctx)
		var no *noGreeting
		if errors.As(err, &no) && !verified {
			verified = true
			missing, err = n.damaged(ctx, no.err)
		}
		if err != nil {
			return sent, err
		}
		if missing == "" {
			n.conn = c
			break
		}
		if sent, err = n.Host.Install(ctx, n.Release, missing); err != nil {
			return sent, err
		}
	}
	if n.conn == nil {
		return sent, fault.New(fault.Failed, "", "on %s: the program is not there after it was copied", printable.Text(n.Host.Target))
	}
	if n.key == "" {
		return sent, nil
	}
	if n.Project == "" {
		_, err = n.ask(ctx, Request{Trust: n.key, Untrust: n.Untrust})
		return sent, err
	}
	// Two requests at once: the machine reads one after the other.
	none := func(Frame) error { return nil }
	_, trusted := n.follow(ctx, []Request{{Trust: n.key, Untrust: n.Untrust}, {Tips: n.Project}}, nil, none)
	if n.conn == nil {
		return sent, trusted
	}
	switch f, err := n.follow(ctx, nil, nil, none); {
	case n.conn == nil:
		return sent, cmp.Or(trusted, err)
	case err == nil:
		n.tips = tipsOf(f) // else it is asked again, where the answer is needed
	}
	return sent, trusted
}

// tipsOf returns the tips of a response.
func tipsOf(f Frame) *bundle.Tips {
	if f.Tips == nil {
		return &bundle.Tips{}
	}
	return f.Tips
}

// Close ends the session; the connection stays for the next one until Host.Close. See Keep. Idempotent.
func (n *Node) Close() error {
	c := n.conn
	n.conn = nil
	if c != nil {
		_ = c.end() // errors of ending a session that is not needed are ignored
	}
	return nil
}

// conn is one session.
type conn struct {
	// in is a file, if a command reads it directly: it can end while nobody writes.
	in     io.WriteCloser
	frames chan Frame
	// stop ends the command, ended is closed when it has. err is the reason then.
	stop  context.CancelCauseFunc
	ended chan struct{}
	err   error
	// began: the login ran what was asked, up to the program. It is set when frames is closed.
	began bool
}

// endTimeout is how long a session may take to end.
const endTimeout = 5 * time.Second

// end closes the command's input, waits for its end, and returns why it ended.
func (c *conn) end() error {
	_ = c.in.Close()
	late := time.AfterFunc(endTimeout, func() { c.stop(fault.New(fault.Busy, "", "%w", &ConnectionError{"the session did not end"})) })
	defer late.Stop()
	for range c.frames { // nothing else reads them
	}
	<-c.ended
	return c.err
}

// The shell's output comes first: that the program is missing, and the type of machine; or its path. Then the session begins.
const (
	missingMark = "missing "
	programMark = "program "
)

// start runs the program in a session. missing is the type of machine if the program is missing.
func (n *Node) start(ctx context.Context) (c *conn, missing string, err error) {
	words := []string{"--root=" + n.Root, "agent", "--session"}
	if n.Root == "" {
		words = words[1:]
	}
	if n.looks {
		words = append(words, "--look")
	}
	script := fmt.Sprintf(begin, n.Release.Sum, n.Release.Size, shell(words))
	life, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	ended := context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })
	defer ended()
	r, w, err := os.Pipe()
	if err != nil {
		stop(nil)
		return nil, "", err
	}
	out, feed := io.Pipe()
	c = &conn{in: w, frames: make(chan Frame, 64), stop: stop, ended: make(chan struct{})}
	errw := &execx.Tail{Max: 4 << 10}
	hello := make(chan string, 1)
	read := make(chan error, 1)
	go func() { read <- c.read(out, hello) }()
	go func() {
		code, err := n.Host.Run(life, []string{"sh", "-c", script}, r, feed, errw)
		_ = errors.Join(feed.Close(), r.Close())
		bad := <-read
		switch {
		case context.Cause(life) != nil:
			c.err = context.Cause(life)
		case err != nil:
			c.err = err
		case bad != nil:
			c.err = fault.New(fault.Failed, "", "on %s: %w", printable.Text(n.Host.Target), bad)
		case code != 0 && !c.began:
			c.err = n.Host.loginError(code, errw.String())
		case code != 0:
			c.err = Reported(n.Host.Target, code, errw.String())
		default:
			c.err = n.Host.sshError("the session ended")
		}
		stop(nil)
		close(c.ended)
	}()
	line, ok := <-hello
	if !ok {
		return nil, "", c.end()
	}
	if rest, ok := strings.CutPrefix(line, missingMark); ok {
		_ = c.end()
		return nil, cmp.Or(strings.TrimSpace(rest), "unknown"), nil
	}
	path, ok := strings.CutPrefix(line, programMark)
	if !ok {
		if err := c.end(); fault.KindOf(err) == fault.Refused { // as nologin(8) does
			return nil, "", fault.New(fault.Refused, "", "on %s: the login prints %q and runs nothing", printable.Text(n.Host.Target), printable.Shorten(strings.TrimSpace(line), 80)).WithHint("%s", fault.HintOf(err))
		}
		return nil, "", fault.New(fault.Failed, "", "on %s: the login prints %q before anything was asked", printable.Text(n.Host.Target), printable.Shorten(strings.TrimSpace(line), 80)).
			WithHint("a shell's start files must print nothing where there is no terminal")
	}
	n.Program = strings.TrimSpace(path)
	return c, "", n.greet(c)
}

// attach begins a session over a stream of an agent.
func (n *Node) attach(ctx context.Context) (*conn, error) {
	to, err := n.Dial(ctx)
	if err != nil {
		return nil, err
	}
	stream := agentStream{to, n.Host.Target}
	life, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	c := &conn{in: stream, frames: make(chan Frame, 64), stop: stop, ended: make(chan struct{})}
	closed := context.AfterFunc(life, func() { _ = stream.Close() })
	go func() {
		defer closed()
		bad := c.decode(stream)
		close(c.frames)
		_ = stream.Close()
		var lost *ConnectionError
		switch {
		case context.Cause(life) != nil:
			c.err = context.Cause(life)
		case errors.As(bad, &lost):
			c.err = bad
		case bad != nil:
			c.err = fault.New(fault.Failed, "", "on %s: %w", printable.Text(n.Host.Target), bad)
		default:
			c.err = NewConnectionError(fmt.Sprintf("the agent of %s has gone", printable.Text(n.Host.Target)))
		}
		stop(nil)
		close(c.ended)
	}()
	return c, n.greet(c)
}

// greet reads the machine's first message.
func (n *Node) greet(c *conn) (err error) {
	switch f, ok := <-c.frames; {
	case !ok:
		return &noGreeting{c.end()}
	case f.Hello == nil:
		_ = c.end()
		return fault.New(fault.Failed, "", "on %s: something answers that is no corpus-git", printable.Text(n.Host.Target))
	default:
		n.Hello = *f.Hello
		if n.Any {
			return nil
		}
		if n.Protocol, err = n.Hello.Negotiate(); err != nil {
			_ = c.end()
			return fault.New(fault.Refused, "", "on %s: %w", printable.Text(n.Host.Target), err).WithHint("%s", n.versionHint())
		}
		return nil
	}
}

// versionHint returns what to do about incompatible versions.
func (n *Node) versionHint() string {
	if n.Hello.Protocol < OldestProtocol && n.Dial != nil {
		return "corpus-git node upgrade " + n.Host.Target
	}
	return "install releases on both machines of which one is at most one older than the other, and restart their services"
}

// Upgrade replaces the program there by one from write, in the format of package bundle/program, and returns when the machine has it and is
// about to run it.
func (n *Node) Upgrade(ctx context.Context, write func(context.Context, io.Writer) error) error {
	if n.conn == nil {
		if _, err := n.connect(ctx); err != nil {
			return err
		}
	}
	_, err := n.follow(ctx, []Request{{Upgrade: true}}, write, func(Frame) error { return nil })
	return err
}

// Keys tells an agent in the session which key this machine has, and which one will replace it. Hello says what it knows then. ErrNotAsked is that of a machine of an older release.
func (n *Node) Keys(ctx context.Context, s bundle.Succession) error {
	f, err := n.ask(ctx, Request{Keys: &s})
	if f.Error != nil && f.Error.Text == unknownRequest {
		return ErrNotAsked
	}
	if err == nil && f.Hello != nil {
		n.Hello = *f.Hello
	}
	return err
}

// read passes on the first line, and then the frames, until the output ends.
func (c *conn) read(out *io.PipeReader, hello chan<- string) error {
	defer func() {
		close(hello)
		close(c.frames)
		_, _ = io.Copy(io.Discard, out)
	}()
	in := bufio.NewReader(out)
	line, err := in.ReadString('\n')
	if err != nil {
		return nil //nolint:nilerr // the exit status has the reason
	}
	hello <- line
	c.began = strings.HasPrefix(line, programMark)
	return c.decode(in)
}

// decode passes on the frames of a stream, to its end.
func (c *conn) decode(in io.Reader) error {
	dec := json.NewDecoder(in)
	for {
		var f Frame
		switch err := dec.Decode(&f); {
		case errors.Is(err, io.EOF), err != nil && ended(err):
			return nil
		case err != nil:
			return err
		}
		c.frames <- f
	}
}

// ask sends a request and reads its response, of one frame.
func (n *Node) ask(ctx context.Context, q Request) (Frame, error) {
	return n.follow(ctx, []Request{q}, nil, func(Frame) error { return nil })
}

// follow sends requests, with what follows the last, and passes on each frame of the response to the first but the last frame, which it returns. The responses to the others are read by calls without requests. If
// the session has already ended, the caller begins a new one.
func (n *Node) follow(ctx context.Context, requests []Request, body func(context.Context, io.Writer) error, show func(Frame) error) (Frame, error) {
	c := n.conn
	fail := func(err error) (Frame, error) {
		n.conn, n.tips = nil, nil
		if err != nil {
			c.stop(err)
		}
		return Frame{}, c.end()
	}
	leave := context.AfterFunc(ctx, func() { c.stop(context.Cause(ctx)) })
	defer leave()
	go func() {
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		var err error
		for _, q := range requests {
			err = errors.Join(err, enc.Encode(q))
		}
		switch {
		case err != nil:
		case body != nil:
			err = body(ctx, &begun{c.in, text.Bytes()})
		case len(requests) > 0:
			_, err = c.in.Write(text.Bytes())
		}
		if err != nil && !ended(err) && !errors.Is(err, io.EOF) {
			c.stop(err)
		}
	}()
	for f := range c.frames {
		if f.Error != nil {
			if body != nil {
				_, _ = fail(nil) // the unread part of the bundle is still being sent
			}
			return f, f.Error.fault(n.Host.Target)
		}
		if f.Done {
			return f, nil
		}
		if err := show(f); err != nil {
			return fail(err)
		}
	}
	return fail(nil)
}

// begun writes a request together with the first that follows it.
type begun struct {
	w       io.Writer
	request []byte
}

// Write implements io.Writer.
func (b *begun) Write(p []byte) (int, error) {
	if b.request == nil {
		return b.w.Write(p)
	}
	all := append(b.request, p...)
	b.request = nil
	n, err := b.w.Write(all)
	return max(0, n-(len(all)-len(p))), err
}

// fault is the error of another machine.
func (f *Failure) fault(where string) error {
	on := "on " + printable.Text(where) + ": "
	e := fault.New(kindOf(f.Exit), "", "%s%s", on, printable.Text(f.Text))
	if f.Hint != "" {
		e = e.WithHint("%s%s", on, printable.Text(f.Hint))
	}
	return e
}
