package submodule

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/pktline"
)

// transport is a connection to a server's git-upload-pack.
type transport interface {
	// open starts the service and returns its first output.
	open(ctx context.Context) (*bufio.Reader, error)
	// request sends one request and returns its response. Only one may be sent in protocols 0 and 1.
	request(ctx context.Context, body []byte) (*bufio.Reader, error)
	// close ends everything. It may be called at any time, by any goroutine, and repeatedly.
	close()
}

// ask is a request to a server.
type ask struct {
	commit plumbing.Hash
	// have are commits that exist here with their trees, shallow those that exist without their parents.
	have, shallow []plumbing.Hash
	// all asks for every branch and tag, with history.
	all bool
	// whole asks for the commit, or the tag, with history.
	whole bool
}

// answer is a server's response.
type answer struct {
	pack *bufio.Reader
	// shallow are commits sent without their parents, unshallow those whose parents are sent now.
	shallow, unshallow []plumbing.Hash
}

// notGivenError reports that the server does not serve the commit by its hash.
type notGivenError struct{ said string }

func (e *notGivenError) Error() string { return "the server does not provide the commit: " + e.said }

// errNoRefs reports that the repository is empty.
var errNoRefs = errors.New("the repository is empty")

// maxAdvertised limits the lines of an advertisement, and maxAdvertisedBytes their bytes.
const (
	maxAdvertised      = 1_000_000
	maxAdvertisedBytes = 256 << 20
)

// client speaks the fetching side of git's protocol on one transport. Source: gitprotocol-pack(5), gitprotocol-v2(5).
type client struct {
	t     transport
	agent string
	caps  map[string]string
	refs  []remoteRef
	v2    bool
}

type remoteRef struct {
	name string
	hash plumbing.Hash
	// peeled is the commit that an annotated tag points to, zero if the server did not send it.
	peeled plumbing.Hash
}

// connect dials, and reads the server's capabilities. A silent server is abandoned when ctx ends. The caller calls
// hangUp.
func connect(ctx context.Context, dial func(context.Context) (transport, error), agent string) (c *client, hangUp func(), err error) {
	t, err := dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, t.close)
	hangUp = func() {
		stop()
		t.close()
	}
	c = &client{t: t, agent: agent}
	if err := c.start(ctx); err != nil {
		hangUp()
		return nil, nil, err
	}
	return c, hangUp, nil
}

// start reads the server's capabilities and, in protocols 0 and 1, its refs.
func (c *client) start(ctx context.Context) error {
	br, err := c.t.open(ctx)
	if err != nil {
		return err
	}
	r := pktline.NewReader(br, pktline.Limits{Lines: maxAdvertised, Bytes: maxAdvertisedBytes})
	c.caps = map[string]string{}
	for first := true; ; first = false {
		kind, line, err := r.Line()
		if err != nil {
			return cut(err)
		}
		switch {
		case kind == pktline.Flush:
			return nil
		case kind != pktline.Data:
			return fmt.Errorf("%w: a %s in an advertisement", pktline.ErrSyntax, kind)
		case first && line == "version 2":
			c.v2 = true
			continue
		case first && line == "version 1":
			continue
		case c.v2:
			key, value, _ := strings.Cut(line, "=")
			c.caps[key] = value
			continue
		}
		ref, caps, has := strings.Cut(line, "\x00")
		if has {
			for f := range strings.FieldsSeq(caps) {
				key, value, _ := strings.Cut(f, "=")
				c.caps[key] = value
			}
		}
		c.ref(ref)
	}
}

// ref records one line of an advertisement or of ls-refs.
func (c *client) ref(line string) {
	f := strings.Fields(line)
	if len(f) < 2 || !plumbing.IsHash(f[0]) {
		return
	}
	h := plumbing.NewHash(f[0])
	if name, ok := strings.CutSuffix(f[1], "^{}"); ok { // protocols 0 and 1
		if i := len(c.refs) - 1; i >= 0 && c.refs[i].name == name {
			c.refs[i].peeled = h
		}
		return
	}
	if h.IsZero() {
		return
	}
	r := remoteRef{name: f[1], hash: h}
	for _, attribute := range f[2:] { // protocol 2
		if id, ok := strings.CutPrefix(attribute, "peeled:"); ok && plumbing.IsHash(id) {
			r.peeled = plumbing.NewHash(id)
		}
	}
	c.refs = append(c.refs, r)
}

func (c *client) can(key string) bool { _, ok := c.caps[key]; return ok }

// feature reports whether the fetch command of protocol 2 has a feature.
func (c *client) feature(name string) bool {
	for f := range strings.FieldsSeq(c.caps["fetch"]) {
		if f == name {
			return true
		}
	}
	return false
}

// fetch requests and returns the pack, unread. The error is a *notGivenError if fetching everything may work instead.
func (c *client) fetch(ctx context.Context, q ask) (*answer, error) {
	if f, ok := c.caps["object-format"]; ok && f != "sha1" {
		return nil, fmt.Errorf("its object format is %.20s; only sha1 is supported", f)
	}
	if c.v2 {
		return c.fetch2(ctx, q)
	}
	return c.fetch0(ctx, q)
}

// tips returns the hashes of branches and tags.
func (c *client) tips() []plumbing.Hash {
	var out []plumbing.Hash
	seen := map[plumbing.Hash]bool{}
	for _, r := range c.refs {
		if (strings.HasPrefix(r.name, "refs/heads/") || strings.HasPrefix(r.name, "refs/tags/")) && !seen[r.hash] {
			seen[r.hash] = true
			out = append(out, r.hash)
		}
	}
	return out
}

func (c *client) fetch2(ctx context.Context, q ask) (*answer, error) {
	wants := []plumbing.Hash{q.commit}
	if q.all {
		if err := c.lsRefs(ctx, "refs/heads/", "refs/tags/"); err != nil {
			return nil, err
		}
		if wants = c.tips(); len(wants) == 0 {
			return nil, errNoRefs
		}
	}
	var b bytes.Buffer
	w := pktline.NewWriter(&b)
	lines := []string{"command=fetch", "agent=" + c.agent, "object-format=sha1", "", "thin-pack", "ofs-delta", "no-progress"}
	if !q.all && !q.whole && c.feature("shallow") {
		lines = append(lines, "deepen 1")
		for _, h := range q.shallow {
			lines = append(lines, "shallow "+h.String())
		}
	}
	for _, h := range wants {
		lines = append(lines, "want "+h.String())
	}
	for _, h := range q.have {
		lines = append(lines, "have "+h.String())
	}
	if err := send(w, append(lines, "done")); err != nil {
		return nil, err
	}
	br, err := c.t.request(ctx, b.Bytes())
	if err != nil {
		return nil, err
	}
	r := pktline.NewReader(br, pktline.Limits{})
	a := &answer{}
	for {
		kind, line, err := answerLine(r)
		switch {
		case err != nil:
			return nil, err
		case kind == pktline.Delim:
			continue
		case kind != pktline.Data:
			return nil, fmt.Errorf("%w: a %s where a pack is due", pktline.ErrSyntax, kind)
		case line == "packfile":
			r.Reset(pktline.Limits{})
			a.pack = bufio.NewReaderSize(pktline.NewDemux(r), 64<<10)
			return a, nil
		case line == "acknowledgments", line == "shallow-info", line == "wanted-refs", line == "packfile-uris":
		default:
			a.boundary(line)
		}
	}
}

// send writes one request of protocol 2; "" is a delim-pkt.
func send(w *pktline.Writer, lines []string) error {
	for _, l := range lines {
		var err error
		if l == "" {
			err = w.Delim()
		} else {
			err = w.Linef("%s", l)
		}
		if err != nil {
			return err
		}
	}
	return w.Flush()
}

// boundary records a line of shallow-info.
func (a *answer) boundary(line string) {
	key, value, _ := strings.Cut(line, " ")
	if !plumbing.IsHash(value) {
		return
	}
	switch key {
	case "shallow":
		a.shallow = append(a.shallow, plumbing.NewHash(value))
	case "unshallow":
		a.unshallow = append(a.unshallow, plumbing.NewHash(value))
	}
}

// lsRefs reads the refs whose names begin with one of the prefixes, in protocol 2.
func (c *client) lsRefs(ctx context.Context, prefixes ...string) error {
	var b bytes.Buffer
	lines := []string{"command=ls-refs", "agent=" + c.agent, "object-format=sha1", "", "peel"}
	for _, p := range prefixes {
		lines = append(lines, "ref-prefix "+p)
	}
	err := send(pktline.NewWriter(&b), lines)
	if err != nil {
		return err
	}
	br, err := c.t.request(ctx, b.Bytes())
	if err != nil {
		return err
	}
	r := pktline.NewReader(br, pktline.Limits{Lines: maxAdvertised, Bytes: maxAdvertisedBytes})
	for {
		kind, line, err := r.Line()
		if err != nil {
			return cut(err)
		}
		if kind != pktline.Data {
			return nil
		}
		c.ref(line)
	}
}

// fetch0 is fetch for protocols 0 and 1. Without multi_ack the server answers with the first common have, or none.
func (c *client) fetch0(ctx context.Context, q ask) (*answer, error) {
	wants := []plumbing.Hash{q.commit}
	if q.all {
		if wants = c.tips(); len(wants) == 0 {
			return nil, errNoRefs
		}
	} else if !c.can("allow-reachable-sha1-in-want") && !c.can("allow-any-sha1-in-want") {
		tip := false
		for _, r := range c.refs {
			tip = tip || r.hash == q.commit
		}
		if !tip {
			return nil, &notGivenError{"no ref points to it"}
		}
	}
	band := ""
	for _, b := range []string{"side-band-64k", "side-band"} {
		if c.can(b) && band == "" {
			band = b
		}
	}
	deepen := !q.all && !q.whole && c.can("shallow")
	request, err := c.request0(q, wants, band, deepen)
	if err != nil {
		return nil, err
	}
	br, err := c.t.request(ctx, request)
	if err != nil {
		return nil, err
	}
	r := pktline.NewReader(br, pktline.Limits{Lines: maxAdvertised, Bytes: maxAdvertisedBytes})
	a := &answer{}
	for {
		kind, line, err := answerLine(r)
		switch {
		case err != nil:
			return nil, err
		case kind == pktline.Flush && deepen:
			deepen = false
			continue
		case kind != pktline.Data:
			return nil, fmt.Errorf("%w: a %s where an ACK or NAK is due", pktline.ErrSyntax, kind)
		case line == "NAK" || strings.HasPrefix(line, "ACK "):
			// Ancestors of the first common have are acknowledged as well.
			if next, err := r.Raw().Peek(8); err == nil && string(next[4:]) == "ACK " {
				continue
			}
			a.pack = bufio.NewReaderSize(r.Raw(), 64<<10)
			if band != "" {
				r.Reset(pktline.Limits{})
				a.pack = bufio.NewReaderSize(pktline.NewDemux(r), 64<<10)
			}
			return a, nil
		default:
			a.boundary(line)
		}
	}
}

// request0 writes the request of fetch0.
func (c *client) request0(q ask, wants []plumbing.Hash, band string, deepen bool) ([]byte, error) {
	caps := band + " agent=" + c.agent
	for _, k := range []string{"ofs-delta", "thin-pack", "no-progress", "shallow"} {
		if c.can(k) {
			caps += " " + k
		}
	}
	var b bytes.Buffer
	w := pktline.NewWriter(&b)
	var errs []error
	line := func(format string, args ...any) { errs = append(errs, w.Linef(format, args...)) }
	for i, h := range wants {
		if i == 0 {
			line("want %s %s", h, strings.TrimSpace(caps))
		} else {
			line("want %s", h)
		}
	}
	if deepen {
		for _, h := range q.shallow {
			line("shallow %s", h)
		}
		line("deepen 1")
	}
	errs = append(errs, w.Flush())
	for _, h := range q.have {
		line("have %s", h)
	}
	line("done")
	return b.Bytes(), errors.Join(errs...)
}

// answerLine reads a line of the server's answer to a fetch; an ERR line is a notGivenError, an early end is errHungUp.
func answerLine(r *pktline.Reader) (pktline.Kind, string, error) {
	kind, line, err := r.Line()
	var said *pktline.ErrorLine
	if errors.As(err, &said) {
		return kind, "", &notGivenError{said.Text}
	}
	return kind, line, cut(err)
}

// cut returns the error for an early end.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errHungUp
	}
	return err
}

// errHungUp reports that a connection ended too early.
var errHungUp = errors.New("the server closed the connection")
