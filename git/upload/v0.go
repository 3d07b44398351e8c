package upload

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/object"
	"corpus-git/git/pktline"
)

// capabilities0 are those of protocols 0 and 1. Source: gitprotocol-capabilities(5).
const capabilities0 = "multi_ack multi_ack_detailed no-done thin-pack side-band side-band-64k ofs-delta shallow deepen-since deepen-not " +
	"deepen-relative no-progress include-tag allow-tip-sha1-in-want allow-reachable-sha1-in-want filter object-format=sha1"

// Ways of acknowledging.
const (
	ackNone = iota
	ackMulti
	ackDetailed
)

func (s *session) serve0() error {
	if err := s.load(); err != nil {
		return err
	}
	if !s.req.Stateless {
		if err := s.advertise(); err != nil {
			return err
		}
	}
	f := newFetch()
	ack, noDone, err := s.wants0(f)
	if err != nil || len(f.wants) == 0 {
		return err
	}
	h := newHistory(s.ctx, s.req.Objects)
	if err := s.allowed(h, f.wants); err != nil {
		return err
	}
	b, err := s.bound(h, f)
	if err != nil {
		return err
	}
	f.behind = b.more
	if f.deepen.asked() {
		if err := s.shallowInfo(b); err != nil {
			return err
		}
		if err := s.w.Flush(); err != nil {
			return err
		}
	}
	if err := s.buf.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	done, err := s.negotiate0(h, f, ack, noDone)
	if err != nil || !done {
		return err
	}
	return s.send(h, f, b)
}

// advertise lists the refs. Source: gitprotocol-pack(5), "Reference Discovery".
func (s *session) advertise() error {
	caps := capabilities0 + " agent=" + s.req.Agent
	if s.req.Version == 1 {
		if err := s.w.Linef("version 1"); err != nil {
			return err
		}
	}
	if len(s.refs) > 0 && s.refs[0].Name == "HEAD" && s.refs[0].Symbolic != "" {
		caps += " symref=HEAD:" + s.refs[0].Symbolic
	}
	tail := "\x00" + caps
	for i := range s.refs {
		r := &s.refs[i]
		if err := s.w.Linef("%s %s%s", r.Hash, r.Name, tail); err != nil {
			return err
		}
		tail = ""
		p, err := s.peeled(r)
		if err != nil {
			return err
		}
		if p.IsZero() || r.Name == "HEAD" {
			continue
		}
		if err := s.w.Linef("%s %s^{}", p, r.Name); err != nil {
			return err
		}
	}
	if tail != "" {
		if err := s.w.Linef("%s capabilities^{}%s", plumbing.ZeroHash, tail); err != nil {
			return err
		}
	}
	if err := s.w.Flush(); err != nil {
		return err
	}
	if err := s.buf.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return nil
}

// wants0 reads the client's wants. A client that only lists refs disconnects, or sends a flush-pkt at once.
func (s *session) wants0(f *fetch) (ack int, noDone bool, err error) {
	s.r.Reset(pktline.Limits{Lines: 2*s.req.Limits.Wants + 1000})
	for first := true; ; {
		kind, line, err := s.r.Line()
		switch {
		case errors.Is(err, io.EOF) && first:
			return 0, false, nil
		case err != nil:
			return 0, false, err
		case kind == pktline.Flush:
			return ack, noDone, nil
		case kind != pktline.Data:
			return 0, false, refused("a %s among the wants", kind)
		}
		want, ok := strings.CutPrefix(line, "want ")
		if !ok {
			if err := f.shallowLine(line); err != nil {
				return 0, false, err
			}
			continue
		}
		id, caps, _ := strings.Cut(want, " ")
		if err := f.want(id, s.req.Limits.Wants); err != nil {
			return 0, false, err
		}
		first = false // git reads the capabilities of every want
		for _, c := range strings.Fields(caps) {
			switch c {
			case "multi_ack":
				ack = max(ack, ackMulti)
			case "multi_ack_detailed":
				ack = ackDetailed
			case "no-done":
				noDone = true
			case "side-band":
				f.band = max(f.band, pktline.SideBand)
			case "side-band-64k":
				f.band = pktline.SideBand64k
			case "deepen-relative":
				f.deepen.relative = true
			default:
				if v, ok := strings.CutPrefix(c, "object-format="); ok && v != "sha1" {
					return 0, false, refused("object format %q is not the repository's, which is sha1", v)
				}
				f.option(c)
			}
		}
	}
}

// negotiation is the state of negotiate0.
type negotiation struct {
	*session
	h             *history
	f             *fetch
	ack           int
	last          plumbing.Hash // the last have that we also have
	ready         bool          // the client's haves suffice
	common, other bool          // in this round: a have that we have, one that we don't
}

// round answers the flush that ends a round of haves.
func (n *negotiation) round() error {
	if n.ack == ackDetailed && n.common && !n.other {
		ok, err := n.f.enough(n.h)
		if err != nil {
			return err
		}
		if ok {
			n.ready = true
			if err := n.w.Linef("ACK %s ready", n.last); err != nil {
				return err
			}
		}
	}
	n.common, n.other = false, false
	if len(n.f.haves) == 0 || n.ack != ackNone {
		return n.w.Linef("NAK")
	}
	return nil
}

// have answers one have.
func (n *negotiation) have(line string) error {
	id, ours, err := n.f.have(n.h, line, n.req.Limits.Haves)
	if err != nil {
		return err
	}
	if ours {
		n.common, n.last = true, id
		switch {
		case n.ack == ackDetailed:
			return n.w.Linef("ACK %s common", id)
		case n.ack == ackMulti:
			return n.w.Linef("ACK %s continue", id)
		case len(n.f.haves) == 1:
			return n.w.Linef("ACK %s", id)
		}
		return nil
	}
	n.other = true
	if n.ack == ackNone {
		return nil
	}
	ok, err := n.f.enough(n.h)
	switch {
	case err != nil || !ok:
		return err
	case n.ack == ackDetailed:
		n.ready = true
		return n.w.Linef("ACK %s ready", id)
	}
	return n.w.Linef("ACK %s continue", id)
}

// negotiate0 finds out what the client has. done is false if a stateless client will send another request. Source: gitprotocol-pack(5),
// "Packfile Negotiation".
func (s *session) negotiate0(h *history, f *fetch, ack int, noDone bool) (done bool, err error) {
	n := negotiation{session: s, h: h, f: f, ack: ack}
	s.r.Reset(pktline.Limits{Lines: 2*s.req.Limits.Haves + 1000})
	for {
		kind, line, err := s.r.Line()
		if err != nil {
			if errors.Is(err, io.EOF) {
				if s.req.Stateless {
					return false, nil // it connects again with what it has
				}
				err = io.ErrUnexpectedEOF
			}
			return false, err
		}
		switch have, isHave := strings.CutPrefix(line, "have "); {
		case kind == pktline.Flush:
			if err := n.round(); err != nil {
				return false, err
			}
			if noDone && n.ready {
				return true, s.w.Linef("ACK %s", n.last)
			}
			if err := s.buf.Flush(); err != nil {
				return false, fmt.Errorf("%w: %w", errGone, err)
			}
			if s.req.Stateless {
				return false, nil
			}
		case kind != pktline.Data:
			return false, refused("a %s among the haves", kind)
		case isHave:
			if err := n.have(have); err != nil {
				return false, err
			}
		case line == "done":
			if len(f.haves) == 0 {
				return true, s.w.Linef("NAK")
			}
			if ack != ackNone {
				return true, s.w.Linef("ACK %s", n.last)
			}
			return true, nil
		default:
			return false, refused("%.100q where have or done is expected", line)
		}
	}
}

// fetch is one request for a pack.
type fetch struct {
	wants   []plumbing.Hash
	wantSet hashSet
	behind  []plumbing.Hash // parents of commits that are no longer shallow: wanted as well
	haves   []plumbing.Hash // common ones
	haveSet hashSet
	nHaves  int
	oldest  int64
	known   int  // len(haves) at the last answer of enough
	reached bool // that answer
	shallow []plumbing.Hash
	deepen  deepen
	filter  filter

	band       int
	thin       bool
	noProgress bool
	includeTag bool
	ofsDelta   bool
	done       bool
	waitDone   bool
}

func newFetch() *fetch {
	return &fetch{wantSet: hashSet{}, haveSet: hashSet{}, filter: noFilter(), known: -1}
}

func parseHash(s string) (plumbing.Hash, error) {
	h, ok := object.ParseHash(s)
	if !ok {
		return plumbing.ZeroHash, refused("%.100q is not an object name", s)
	}
	return h, nil
}

func (f *fetch) want(s string, limit int) error {
	id, err := parseHash(s)
	if err != nil {
		return err
	}
	if f.wantSet.add(id) {
		f.wants = append(f.wants, id)
	}
	if len(f.wants) > limit {
		return refused("more than %d wants (limits.max_wants)", limit)
	}
	return nil
}

// have records what the client has; ours reports whether we have it too.
func (f *fetch) have(h *history, s string, limit int) (id plumbing.Hash, ours bool, err error) {
	if id, err = parseHash(s); err != nil {
		return id, false, err
	}
	if f.nHaves++; f.nHaves > limit {
		return id, false, refused("more than %d haves (limits.max_haves)", limit)
	}
	if f.haveSet.has(id) {
		return id, true, nil
	}
	if ours, err = h.objs.Has(id); err != nil || !ours {
		return id, false, err
	}
	f.haveSet.add(id)
	f.haves = append(f.haves, id)
	// A tag does not limit how far back to look, as in git; it counts when the pack is made.
	t, _, err := h.objs.Header(id)
	if err != nil || t != plumbing.CommitObject {
		return id, true, err
	}
	n, err := h.commit(id)
	if err != nil {
		return id, true, err
	}
	n.marks |= theyHave
	if f.oldest == 0 || n.date < f.oldest {
		f.oldest = n.date
	}
	return id, true, nil
}

// enough reports whether more haves would not help: every want reaches a have.
func (f *fetch) enough(h *history) (bool, error) {
	if len(f.haves) == 0 || f.reached || f.known == len(f.haves) {
		return f.reached, nil
	}
	f.known = len(f.haves)
	var err error
	f.reached, err = h.reaches(slices.Concat(f.wants, f.behind), f.oldest)
	return f.reached, err
}

// shallowLine parses the lines about depth, and filters, which both protocols share.
func (f *fetch) shallowLine(line string) (err error) {
	key, arg, _ := strings.Cut(line, " ")
	switch key {
	case "shallow":
		var id plumbing.Hash
		if id, err = parseHash(arg); err == nil {
			f.shallow = append(f.shallow, id)
		}
		if len(f.shallow) > 100_000 {
			return refused("more than 100000 shallow commits")
		}
	case "deepen":
		n, e := strconv.ParseInt(arg, 0, 64) // also hexadecimal and octal, as in git's strtol
		if e != nil || n <= 0 {
			return refused("deepen: %.100q is not a depth", arg)
		}
		f.deepen.depth = int(min(n, math.MaxInt32))
	case "deepen-since":
		n, e := strconv.ParseInt(arg, 10, 64)
		if e != nil || n < 0 {
			return refused("deepen-since: %.100q is no time", arg)
		}
		f.deepen.since = max(n, 1) // everything is since 1970
	case "deepen-not":
		if f.deepen.not = append(f.deepen.not, arg); len(f.deepen.not) > 1000 {
			return refused("more than 1000 lines deepen-not")
		}
	case "filter":
		if f.filter.active() {
			return refused("filters cannot be combined but with combine:")
		}
		if e := f.filter.parse(arg); e != nil {
			return refused("%w", e)
		}
	default:
		return refused("%.100q is not understood", line)
	}
	if f.deepen.depth > 0 && (f.deepen.since > 0 || len(f.deepen.not) > 0) {
		return refused("deepen and deepen-since or deepen-not cannot be used together")
	}
	return err
}

// option parses a capability or argument that both protocols share; unknown ones are ignored.
func (f *fetch) option(name string) {
	switch name {
	case "thin-pack":
		f.thin = true
	case "no-progress":
		f.noProgress = true
	case "include-tag":
		f.includeTag = true
	case "ofs-delta":
		f.ofsDelta = true
	}
}
