package upload

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/pktline"
)

// serve2 speaks protocol 2: an advertisement, then one command after the other. Source: gitprotocol-v2(5).
func (s *session) serve2() error {
	if !s.req.Stateless {
		for _, line := range []string{"version 2", "agent=" + s.req.Agent, "ls-refs=unborn", "fetch=shallow wait-for-done filter", "server-option", "object-format=sha1"} {
			if err := s.w.Linef("%s", line); err != nil {
				return err
			}
		}
		if err := s.w.Flush(); err != nil {
			return err
		}
	}
	for n := 0; ; n++ {
		if err := s.buf.Flush(); err != nil {
			return fmt.Errorf("%w: %w", errGone, err)
		}
		if s.req.Stateless && n == 1 {
			return nil
		}
		if more, err := s.command(n >= s.req.Limits.Commands); err != nil || !more {
			return err
		}
	}
}

// command serves one command, or reads a command that is over the limit and refuses it: a client that is still writing would not read the
// reason. more is false if the client is done.
func (s *session) command(over bool) (more bool, err error) {
	l := s.req.Limits
	s.r.Reset(pktline.Limits{Lines: l.Wants + l.Haves + 100_000})
	name := ""
	for first := true; ; first = false {
		kind, line, err := s.r.Line()
		switch {
		case first && (errors.Is(err, io.EOF) || err == nil && kind == pktline.Flush):
			return false, nil
		case err != nil:
			return false, err
		}
		if kind != pktline.Data {
			if name == "" {
				return false, refused("no command")
			}
			if kind == pktline.ResponseEnd {
				return false, refused("a %s in a request", kind)
			}
			args := func(yield func(string, error) bool) {
				for kind == pktline.Delim {
					k, line, err := s.r.Line()
					if k == pktline.Flush && err == nil {
						return
					}
					if err == nil && k != pktline.Data {
						err = refused("a %s among the arguments", k)
					}
					if !yield(line, err) || err != nil {
						return
					}
				}
			}
			if over {
				for _, err := range args {
					if err != nil {
						return false, err
					}
				}
				return false, refused("more than %d commands in one connection (limits.max_fetch_requests)", l.Commands)
			}
			switch name {
			case "ls-refs":
				return true, s.lsRefs(args)
			case "fetch":
				return true, s.fetch2(args)
			default:
				return false, refused("unknown command %.100q", name)
			}
		}
		key, value, _ := strings.Cut(line, "=")
		switch {
		case key == "command" && name == "":
			name = value
		case key == "command":
			return false, refused("two commands in one request")
		case key == "server-option", key == "agent": // no option has a meaning here: git-upload-pack accepts all, too
		case key == "object-format" && value != "sha1":
			return false, refused("object format %.100q is not the repository's, which is sha1", value)
		case key == "object-format":
		default:
			return false, refused("unknown capability %.100q", line)
		}
	}
}

// arguments is the list of a command's arguments; an error ends it.
type arguments func(yield func(string, error) bool)

// maxPrefixes is the number from which on prefixes are ignored.
const maxPrefixes = 65_536

func (s *session) lsRefs(args arguments) error {
	var peel, symrefs, unborn bool
	var prefixes []string
	n := 0
	for a, err := range args {
		if err != nil {
			return err
		}
		switch a {
		case "peel":
			peel = true
		case "symrefs":
			symrefs = true
		case "unborn":
			unborn = true
		default:
			p, ok := strings.CutPrefix(a, "ref-prefix ")
			if !ok {
				return refused("ls-refs: %.100q is not understood", a)
			}
			if n++; n < maxPrefixes {
				prefixes = append(prefixes, p)
			} else {
				prefixes = nil // as git does: all refs, and the client filters
			}
		}
	}
	if err := s.load(); err != nil {
		return err
	}
	asked := func(name string) bool {
		for _, p := range prefixes {
			if strings.HasPrefix(name, p) {
				return true
			}
		}
		return len(prefixes) == 0
	}
	if unborn && asked("HEAD") && (len(s.refs) == 0 || s.refs[0].Name != "HEAD") {
		head, err := s.head()
		if err != nil {
			return err
		}
		if head != "" && !s.hidden(head) {
			line := "unborn HEAD"
			if symrefs {
				line += " symref-target:" + head
			}
			if err := s.w.Linef("%s", line); err != nil {
				return err
			}
		}
	}
	for i := range s.refs {
		r := &s.refs[i]
		if !asked(r.Name) {
			continue
		}
		line := r.Hash.String() + " " + r.Name
		if symrefs && r.Symbolic != "" {
			line += " symref-target:" + r.Symbolic
		}
		if peel {
			p, err := s.peeled(r)
			if err != nil {
				return err
			}
			if !p.IsZero() {
				line += " peeled:" + p.String()
			}
		}
		if err := s.w.Linef("%s", line); err != nil {
			return err
		}
	}
	return s.w.Flush()
}

func (s *session) fetch2(args arguments) error {
	f := newFetch()
	f.band = pktline.SideBand64k
	h := newHistory(s.ctx, s.req.Objects)
	for a, err := range args {
		if err != nil {
			return err
		}
		switch a {
		case "done":
			f.done = true
			continue
		case "wait-for-done":
			f.waitDone = true
			continue
		case "deepen-relative":
			f.deepen.relative = true
			continue
		case "thin-pack", "no-progress", "include-tag", "ofs-delta":
			f.option(a)
			continue
		}
		key, value, _ := strings.Cut(a, " ")
		switch key {
		case "want":
			err = f.want(value, s.req.Limits.Wants)
		case "have":
			_, _, err = f.have(h, value, s.req.Limits.Haves)
		default:
			err = f.shallowLine(a)
		}
		if err != nil {
			return err
		}
	}
	// Refs may have moved since they were listed: a want is still reachable, or refused.
	if err := s.load(); err != nil {
		return err
	}
	if err := s.allowed(h, f.wants); err != nil {
		return err
	}
	switch {
	case len(f.wants) == 0 && !f.waitDone:
		return nil
	case f.nHaves > 0 && !f.done:
		ready, err := s.acknowledge(h, f)
		if err != nil {
			return err
		}
		if !ready {
			return s.w.Flush()
		}
		if err := s.w.Delim(); err != nil {
			return err
		}
	}
	b, err := s.bound(h, f)
	if err != nil {
		return err
	}
	if f.deepen.asked() {
		if err := s.w.Linef("shallow-info"); err != nil {
			return err
		}
		if err := s.shallowInfo(b); err != nil {
			return err
		}
		if err := s.w.Delim(); err != nil {
			return err
		}
	}
	if err := s.w.Linef("packfile"); err != nil {
		return err
	}
	return s.send(h, f, b)
}

// acknowledge answers the haves; ready reports that the pack follows.
func (s *session) acknowledge(h *history, f *fetch) (ready bool, err error) {
	if err := s.w.Linef("acknowledgments"); err != nil {
		return false, err
	}
	if len(f.haves) == 0 {
		err = s.w.Linef("NAK")
	}
	for _, id := range f.haves {
		if err == nil {
			err = s.w.Linef("ACK %s", id)
		}
	}
	if err != nil || f.waitDone {
		return false, err
	}
	if ready, err = f.enough(h); err != nil || !ready {
		return false, err
	}
	return true, s.w.Linef("ready")
}

// shallowInfo sends the client its new boundary, in lines without a line feed, as git does: libgit2 1.9 treats a line feed as part of the name.
func (s *session) shallowInfo(b *boundary) error {
	for _, id := range b.shallow {
		if err := s.w.Data([]byte("shallow " + id.String())); err != nil {
			return err
		}
	}
	for _, id := range b.unshallow {
		if err := s.w.Data([]byte("unshallow " + id.String())); err != nil {
			return err
		}
	}
	return nil
}

// bound computes the boundary that a request asks for.
func (s *session) bound(h *history, f *fetch) (*boundary, error) {
	var theirs, not []plumbing.Hash
	for _, id := range f.shallow {
		// Shallow commits that we do not have are ignored here, as by git.
		t, _, err := s.req.Objects.Header(id)
		switch {
		case err != nil:
		case t != plumbing.CommitObject:
			return nil, refused("invalid shallow object %s", id)
		default:
			theirs = append(theirs, id)
		}
	}
	for _, name := range f.deepen.not {
		id, err := s.named(name)
		if err != nil {
			return nil, err
		}
		c, err := h.commits([]plumbing.Hash{id})
		if err != nil {
			return nil, err
		}
		not = append(not, c...)
	}
	var visible []plumbing.Hash
	for i := range s.refs {
		visible = append(visible, s.refs[i].Hash)
	}
	b, err := h.bound(&f.deepen, f.wants, visible, theirs, not)
	if errors.Is(err, errNoShallow) {
		err = refused("%w", err)
	}
	return b, err
}

// named finds the one visible ref that a short name means, in git's order.
func (s *session) named(name string) (plumbing.Hash, error) {
	for _, prefix := range []string{"", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"} {
		for i := range s.refs {
			if s.refs[i].Name == prefix+name {
				return s.refs[i].Hash, nil
			}
		}
	}
	return plumbing.ZeroHash, refused("deepen-not is not a ref: %.100s", name)
}
