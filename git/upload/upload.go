package upload

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/git/pktline"
	"corpus-git/git/refs"
	"corpus-git/git/store"
	"corpus-git/internal/fault"
)

// Refs is the refs of a repository; *refs.Store is one.
type Refs interface {
	// ListReadable gives the refs below a prefix in byte order, symbolic ones with what they stand for, and those that cannot be read apart.
	ListReadable(prefix string) ([]refs.Ref, []refs.Broken, error)
	// Head is the branch that HEAD stands for, "" where it is detached.
	Head() (string, error)
	// Get is where a ref points to, zero where there is none.
	Get(name string) (plumbing.Hash, error)
}

// Request says what to serve.
type Request struct {
	// Objects is the repository's store, Refs its refs. Required.
	Objects store.Reader
	Refs    Refs
	// Version is the protocol that the client asked for with GIT_PROTOCOL (Version parses it): 0, 1 or 2.
	Version int
	// Stateless serves one request and no advertisement, as git-upload-pack --stateless-rpc does.
	Stateless bool
	// Hidden tells refs that are neither shown nor served, besides those below refs/corpus/.
	Hidden func(name string) bool
	// Agent is announced to the client. Default "corpus-git".
	Agent string
	// Limits bound what a client may send; zero fields have defaults.
	Limits Limits
}

// Limits bound a client.
type Limits struct {
	// Wants and Haves count the lines of one request. Defaults 100,000 and 1,000,000.
	Wants, Haves int
	// Commands counts the requests of one connection in protocol 2. Default 10,000.
	Commands int
	// Keepalive is how long the line may be silent while a pack is made. Default 5 s.
	Keepalive time.Duration
}

func (l Limits) withDefaults() Limits {
	set := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&l.Wants, 100_000)
	set(&l.Haves, 1_000_000)
	set(&l.Commands, 10_000)
	if l.Keepalive <= 0 {
		l.Keepalive = 5 * time.Second
	}
	return l
}

// Version reads the value of GIT_PROTOCOL ("version=2", more keys after colons), which an SSH client sends as a variable
// of the environment: 0, 1 or 2. What is not understood counts for nothing.
func Version(env string) int {
	v := 0
	for key := range strings.SplitSeq(env, ":") {
		switch key {
		case "version=1":
			v = max(v, 1)
		case "version=2":
			v = max(v, 2)
		}
	}
	return v
}

const hiddenPrefix = "refs/corpus/"

// Serve speaks git-upload-pack with a client until it is content or gone. r ends where the client's stream does; whoever
// wants a deadline on a silent client closes r, or makes its reads fail, when ctx ends.
//
// A client that breaks the protocol, asks for what it may not have, or goes away is a fault.Failed or fault.Refused, of which it was told
// where possible; Internal is ours, and the client hears no details.
func Serve(ctx context.Context, req Request, r io.Reader, w io.Writer) error {
	req.Limits = req.Limits.withDefaults()
	if req.Agent == "" {
		req.Agent = "corpus-git"
	}
	buf := bufio.NewWriterSize(w, 64<<10)
	s := &session{ctx: ctx, req: &req, in: r, r: pktline.NewReader(r, pktline.Limits{}), buf: buf, w: pktline.NewWriter(buf)}
	var err error
	if req.Version == 2 {
		err = s.serve2()
	} else {
		err = s.serve0()
	}
	if err == nil {
		err = buf.Flush()
	}
	return s.say(err)
}

// session is one connection.
type session struct {
	ctx context.Context
	req *Request
	in  io.Reader
	r   *pktline.Reader
	buf *bufio.Writer
	w   *pktline.Writer
	// muxed is set while the client reads a side-band: an ERR line would break it.
	muxed bool

	refs []refs.Ref // what the client may see; HEAD, if it stands for something, first
	tips []plumbing.Hash
}

// say tells the client of an error, and gives the error a kind.
func (s *session) say(err error) error {
	if err == nil {
		return nil
	}
	if s.ctx.Err() != nil {
		return fault.New(fault.Failed, "upload pack", "%w", s.ctx.Err())
	}
	var known *fault.Error
	text := "upload-pack: the server failed"
	switch {
	case errors.As(err, &known) && known.Kind != fault.Internal:
		text = "upload-pack: " + known.Err.Error()
	case errors.Is(err, pktline.ErrSyntax), errors.Is(err, pktline.ErrTooMuch):
		err = fault.New(fault.Failed, "upload pack", "%w", err)
		text = "upload-pack: " + errors.Unwrap(err).Error()
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, errGone):
		return fault.New(fault.Failed, "upload pack", "the client went away: %w", err)
	default:
		err = fault.New(fault.Internal, "upload pack", "%w", err)
	}
	if !s.muxed {
		_ = s.w.Errorf("%s", text)
		if s.buf.Flush() == nil && !s.req.Stateless {
			pktline.Drain(s.ctx, s.in, drainBytes, drainPause)
		}
	}
	return err
}

// What is read of a client that was refused, and for how long it may pause.
const (
	drainBytes = 16 << 20
	drainPause = 2 * time.Second
)

// errGone marks errors of writing to the client.
var errGone = errors.New("cannot write")

// refused is an error whose text the client sees.
func refused(format string, args ...any) error {
	return fault.New(fault.Refused, "upload pack", format, args...)
}

// hidden tells refs that nobody sees.
func (s *session) hidden(name string) bool {
	return strings.HasPrefix(name, hiddenPrefix) || s.req.Hidden != nil && s.req.Hidden(name)
}

// load reads the refs that the client may see.
func (s *session) load() error {
	// What cannot be read is left out, as by git: the rest can be fetched all the same.
	all, _, err := s.req.Refs.ListReadable("")
	if err != nil {
		return err
	}
	s.refs, s.tips = s.refs[:0], s.tips[:0]
	head, err := s.req.Refs.Head()
	if err != nil {
		return err
	}
	if head == "" || !s.hidden(head) {
		h, err := s.req.Refs.Get("HEAD")
		if err != nil && !errors.Is(err, refs.ErrCorrupt) {
			return err
		}
		if !h.IsZero() {
			s.refs = append(s.refs, refs.Ref{Name: "HEAD", Hash: h, Symbolic: head})
		}
	}
	for _, r := range all {
		if s.hidden(r.Name) || r.Symbolic != "" && s.hidden(r.Symbolic) {
			continue
		}
		s.refs = append(s.refs, r)
	}
	for i := range s.refs {
		s.tips = append(s.tips, s.refs[i].Hash)
	}
	return nil
}

// peeled is what an annotated tag stands for; zero for everything else.
func (s *session) peeled(r *refs.Ref) (plumbing.Hash, error) {
	if !r.Peeled.IsZero() {
		return r.Peeled, nil
	}
	if strings.HasPrefix(r.Name, "refs/heads/") {
		return plumbing.ZeroHash, nil // a branch is a commit
	}
	h, _, err := object.Peel(s.req.Objects, r.Hash)
	if err != nil {
		return h, fmt.Errorf("%s: %w", r.Name, err)
	}
	if h == r.Hash {
		return plumbing.ZeroHash, nil
	}
	return h, nil
}

// allowed refuses wants that no visible ref leads to.
func (s *session) allowed(h *history, wants []plumbing.Hash) error {
	id, bad, err := h.unreachable(wants, s.tips)
	if err != nil {
		return err
	}
	if bad {
		return refused("not our ref %s", id)
	}
	return nil
}
