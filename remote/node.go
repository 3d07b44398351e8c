package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"corpus-git/bundle"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
)

// Frame is one line of what  bundle apply --events  prints: an event, or at last the result.
type Frame struct {
	Event  *event.Event    `json:"event,omitempty"`
	Result *project.Result `json:"result,omitempty"`
	// Exit is the exit status that goes with the result.
	Exit int `json:"exit,omitempty"`
}

// Node is corpus-git on another machine.
type Node struct {
	Host *Host
	// Program is its path there.
	Program string
	// Root is the root there, "" for the program's default.
	Root string
}

// command is a command of corpus-git there.
func (n *Node) command(words ...string) []string {
	out := []string{n.Program}
	if n.Root != "" {
		out = append(out, "--root="+n.Root)
	}
	return append(out, words...)
}

// Start sees to it that a server or an agent owns the state there, so that what is deployed outlives the connection, and that bundles signed
// with key are taken.
func (n *Node) Start(ctx context.Context, key string) error {
	script := shell(n.command("agent", "--detach")) + " && " + shell(n.command("bundle", "trust", "--", key))
	_, err := n.Host.output(ctx, []string{"sh", "-c", script}, nil)
	return err
}

// Tips are the commits that the machine has of a project.
func (n *Node) Tips(ctx context.Context, name project.Name) ([]project.Commit, error) {
	text, err := n.Host.output(ctx, n.command("bundle", "tips", "--", string(name)), nil)
	if err != nil {
		return nil, err
	}
	var t bundle.Tips
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return nil, fault.New(fault.Failed, "", "on %s: what it has of %s: %w", printable.Text(n.Host.Target), name, err)
	}
	return append(t.Code, t.Pillar...), nil
}

// Apply is one delivery of a bundle.
type Apply struct {
	// Send writes the bundle. It is called anew for each connection; have is what the machine has then.
	Send func(ctx context.Context, have []project.Commit, w io.Writer) error
	// Project is what it is about.
	Project project.Name
	// StoreOnly deploys nothing.
	StoreOnly bool
	// Show is told each event once, in order.
	Show func(event.Event) error
	// Lost is told that the connection was lost, and when it is made again.
	Lost func(err error, again time.Duration)
	// Patience is how long a lost connection is tried again.
	Patience time.Duration
}

// ErrNoResult means that the deployment may go on there, and that nobody knows how it ends.
var ErrNoResult = errors.New("the connection was lost before the result came")

// Apply sends a bundle and follows its deployment to the end. A connection that is lost is made again: the deployment is known by its ID, runs
// once, and its events go on where they stopped. The exit status is the deployment's.
func (n *Node) Apply(ctx context.Context, a Apply) (Frame, error) {
	var seq uint64
	begun := time.Now()
	wait := time.Second
	for {
		f, err := n.applyOnce(ctx, a, &seq)
		var lost *LostError
		if err == nil || !errors.As(err, &lost) || fault.KindOf(err) != fault.Busy {
			return f, err
		}
		if time.Since(begun)+wait > a.Patience {
			return f, fault.New(fault.Busy, "", "%w: %w", ErrNoResult, err)
		}
		a.Lost(err, wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return f, context.Cause(ctx)
		}
		wait = min(2*wait, 30*time.Second)
	}
}

func (n *Node) applyOnce(ctx context.Context, a Apply, seq *uint64) (Frame, error) {
	have, err := n.Tips(ctx, a.Project)
	if err != nil {
		return Frame{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, w := io.Pipe()
	defer r.Close()
	go func() {
		err := a.Send(ctx, have, w)
		if err != nil && !errors.Is(err, io.ErrClosedPipe) {
			cancel(err)
		}
		w.CloseWithError(err)
	}()
	words := n.command("bundle", "apply", "--events", fmt.Sprintf("--after=%d", *seq))
	if a.StoreOnly {
		words = append(words, "--store-only")
	}
	out, feed := io.Pipe()
	frames := make(chan read, 1)
	go func() { frames <- n.frames(out, a, seq, cancel) }()
	var errw bytes.Buffer
	code, err := n.Host.Run(ctx, words, r, feed, &errw)
	_ = feed.Close()
	got := <-frames
	last, bad := got.last, got.err
	switch {
	case last.Result != nil:
		return last, nil // whatever became of the connection then
	case err != nil:
		return last, err
	case bad != nil:
		return last, fault.New(fault.Failed, "", "on %s: %w", printable.Text(n.Host.Target), bad)
	case code != 0 || !a.StoreOnly:
		return last, n.remoteError(code, errw.String())
	}
	return last, nil
}

// read is what the frames came to.
type read struct {
	last Frame
	err  error
}

// frames reads what the command prints, to its end, and shows the events that are new. An error ends the command.
func (n *Node) frames(out *io.PipeReader, a Apply, seq *uint64, cancel context.CancelCauseFunc) (r read) {
	defer func() {
		if r.err != nil {
			cancel(r.err)
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	dec := json.NewDecoder(out)
	for {
		var f Frame
		err := dec.Decode(&f)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return r // the exit status says why
		}
		if err != nil {
			r.err = err
			return r
		}
		if f.Result != nil {
			r.last = f
		}
		if f.Event == nil || f.Event.Seq <= *seq {
			continue
		}
		*seq = f.Event.Seq
		// Another machine's text: what was cleaned there is cleaned here.
		f.Event.Text = event.Clean(f.Event.Text)
		for i, l := range f.Event.Lines {
			f.Event.Lines[i] = event.Clean(l)
		}
		if err := a.Show(*f.Event); err != nil {
			r.err = err
			return r
		}
	}
}

// remoteError is the error that corpus-git printed there.
func (n *Node) remoteError(code int, text string) error {
	var first, hint string
	sc := bufio.NewScanner(strings.NewReader(text))
	for sc.Scan() {
		if s, ok := strings.CutPrefix(sc.Text(), "error: "); ok && first == "" {
			first = s
		}
		if s, ok := strings.CutPrefix(sc.Text(), "hint: "); ok && hint == "" {
			hint = s
		}
	}
	if first == "" {
		first = fmt.Sprintf("corpus-git ended with status %d and without a result", code)
	}
	e := fault.New(kindOf(code), "", "on %s: %s", printable.Text(n.Host.Target), printable.Text(first))
	if hint != "" {
		e = e.WithHint("on %s: %s", printable.Text(n.Host.Target), printable.Text(hint))
	}
	return e
}
