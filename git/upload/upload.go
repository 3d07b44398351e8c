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

// Refs is the refs of a repository; *refs.Store implements it.
type Refs interface {
	// ListReadable returns the refs below a prefix in byte order, symbolic ones resolved, and separately those that can't be read.
	ListReadable(prefix string) ([]refs.Ref, []refs.Broken, error)
	// Head returns the branch that HEAD points to, "" if it is detached.
	Head() (string, error)
	// Get returns where a ref points to, zero if there is none.
	Get(name string) (plumbing.Hash, error)
}

// Request describes what to serve.
type Request struct {
	// Objects is the repository's store, Refs its refs. Required.
	Objects store.Reader
	Refs    Refs
	// Version is the protocol that the client requested with GIT_PROTOCOL (parsed by Version): 0, 1 or 2.
	Version int
	// Stateless serves one request and no advertisement, as git-upload-pack --stateless-rpc does.
	Stateless bool
	// Hidden reports refs that are neither shown nor served, in addition to those below refs/corpus/.
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
	// Keepalive is the longest time without sending anything while a pack is made. Default 5 s.
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

// Version parses the value of GIT_PROTOCOL ("version=2", more keys after colons), which an SSH client sends as an environment variable: 0,
// 1 or 2. Unknown values are ignored.
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

// Serve speaks git-upload-pack with a client until the client is done or gone. r ends when the client's stream does; a caller that wants a
// deadline for a silent client closes r, or makes its reads fail, when ctx ends.
//
// If the client breaks the protocol, requests what it may not have, or disconnects, the error is fault.Failed or fault.Refused, and it was
// sent to the client if possible; other errors are internal, and their details are not sent.
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
	return s.sendError(err)
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

	refs []refs.Ref // what the client may see; HEAD, if it resolves, first
	tips []plumbing.Hash
}

// sendError sends the client an error, and classifies it.
func (s *session) sendError(err error) error {
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

// How much is read from a client that was refused, and how long it may pause.
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

// hidden reports whether a ref may be read by nobody.
func (s *session) hidden(name string) bool {
	return strings.HasPrefix(name, hiddenPrefix) || s.req.Hidden != nil && s.req.Hidden(name)
}

// load reads the refs that the client may see.
func (s *session) load() error {
	// Refs that can't be read are skipped, as by git: the rest can still be fetched.
	all, _, err := s.req.Refs.ListReadable("")
	if err != nil {
		return err
	}
	s.refs, s.tips = s.refs[:0], s.tips[:0]
	head, err := s.head()
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

// head returns the branch that HEAD names, "" if it names none that can be read.
func (s *session) head() (string, error) {
	head, err := s.req.Refs.Head()
	if errors.Is(err, refs.ErrCorrupt) {
		return "", nil
	}
	return head, err
}

// peeled returns the target of an annotated tag; zero for everything else.
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

// allowed refuses wants that no visible ref reaches.
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
