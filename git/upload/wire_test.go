package upload

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/memory"
	"github.com/stretchr/testify/require"

	"corpus-git/git/pktline"
	"corpus-git/git/refs"
	"corpus-git/git/store"
	"corpus-git/internal/fault"
)

// open returns a request for the peer's repository, in this process.
func (p *peer) open() Request {
	p.t.Helper()
	db, err := store.Open(p.bare(), store.Options{})
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = db.Close() })
	return Request{Objects: db, Refs: &refs.Store{Dir: p.bare()}, Version: p.version}
}

// script writes pkt-lines: "0000" and "0001" as they are.
func script(lines ...string) []byte {
	var b bytes.Buffer
	w := pktline.NewWriter(&b)
	for _, l := range lines {
		switch l {
		case "0000":
			_ = w.Flush()
		case "0001":
			_ = w.Delim()
		default:
			_ = w.Linef("%s", l)
		}
	}
	return b.Bytes()
}

// talk serves a script and returns what comes after the advertisement.
func talk(t *testing.T, req Request, lines ...string) (*bufReader, error) {
	t.Helper()
	var out bytes.Buffer
	err := Serve(context.Background(), req, bytes.NewReader(script(lines...)), &out)
	r := pktline.NewReader(&out, pktline.Limits{})
	if !req.Stateless {
		for {
			k, _, lineErr := r.Line()
			require.NoError(t, lineErr)
			if k == pktline.Flush {
				break
			}
		}
	}
	return &bufReader{t, r}, err
}

type bufReader struct {
	t *testing.T
	r *pktline.Reader
}

func (b *bufReader) lines(want ...string) {
	b.t.Helper()
	for _, w := range want {
		k, s, err := b.r.Line()
		if err != nil {
			s = "ERR " + strings.TrimPrefix(err.Error(), "remote error: ")
		} else if k == pktline.Flush {
			s = "0000"
		} else if k == pktline.Delim {
			s = "0001"
		}
		require.Equal(b.t, w, s)
	}
}

// pack reads the pack that follows and returns the number of its objects.
func (b *bufReader) pack(band bool) int {
	b.t.Helper()
	var in io.Reader = b.r.Raw()
	if band {
		in = pktline.NewDemux(b.r)
	}
	data, err := io.ReadAll(in)
	require.NoError(b.t, err)
	s := memory.NewStorage()
	require.NoError(b.t, packfile.UpdateObjectStorage(s, bytes.NewReader(data)))
	return len(s.Objects)
}

// Every way of acknowledging, and a pack without a side-band, byte by byte.
func TestConversationsV0(t *testing.T) {
	p := newPeer(t, 0)
	one := p.commit(1, "a")
	two := p.commit(2, "a")
	nowhere := strings.Repeat("e", 40)
	req := p.open()
	b, err := talk(t, req, "want "+two, "0000", "done")
	require.NoError(t, err)
	b.lines("NAK")
	require.Equal(t, 6, b.pack(false))

	b, err = talk(t, req, "want "+two+" multi_ack_detailed side-band-64k no-progress ofs-delta", "0000", "have "+nowhere, "have "+one, "0000", "have "+nowhere, "done")
	require.NoError(t, err)
	b.lines("ACK "+one+" common", "NAK", "ACK "+nowhere+" ready", "ACK "+one)
	require.Equal(t, 3, b.pack(true))

	b, err = talk(t, req, "want "+two+" multi_ack_detailed no-done side-band no-progress", "0000", "have "+one, "0000")
	require.NoError(t, err)
	b.lines("ACK "+one+" common", "ACK "+one+" ready", "NAK", "ACK "+one)
	require.Equal(t, 3, b.pack(true))

	b, err = talk(t, req, "want "+two+" multi_ack", "0000", "have "+one, "have "+nowhere, "0000", "done")
	require.NoError(t, err)
	b.lines("ACK "+one+" continue", "ACK "+nowhere+" continue", "NAK", "ACK "+one)
	require.Equal(t, 3, b.pack(false))

	b, err = talk(t, req, "want "+two, "0000", "have "+nowhere, "0000", "have "+one, "0000", "done")
	require.NoError(t, err)
	b.lines("NAK", "ACK "+one)
	require.Equal(t, 3, b.pack(false))

	stateless := req
	stateless.Stateless = true
	b, err = talk(t, stateless, "want "+two+" multi_ack_detailed", "0000", "have "+nowhere, "0000")
	require.NoError(t, err)
	b.lines("NAK")

	_, err = talk(t, req, "0000")
	require.NoError(t, err, "a client that only looked")
	_, err = talk(t, req)
	require.NoError(t, err)
}

func TestConversationsV2(t *testing.T) {
	p := newPeer(t, 2)
	one := p.commit(1, "a")
	two := p.commit(2, "a")
	nowhere := strings.Repeat("e", 40)
	req := p.open()
	b, err := talk(t, req, "command=ls-refs", "agent=x", "object-format=sha1", "0001", "symrefs", "ref-prefix HEAD", "0000",
		"command=fetch", "0001", "want "+two, "have "+nowhere, "0000",
		"command=fetch", "0001", "want "+two, "have "+one, "wait-for-done", "0000",
		"command=fetch", "0001", "want "+two, "have "+one, "no-progress", "0000", "0000")
	require.NoError(t, err)
	b.lines(two+" HEAD symref-target:refs/heads/main", "0000")
	b.lines("acknowledgments", "NAK", "0000")
	b.lines("acknowledgments", "ACK "+one, "0000")
	b.lines("acknowledgments", "ACK "+one, "ready", "0001", "packfile")
	require.Equal(t, 3, b.pack(true))
}

func TestClientsThatBreakTheRules(t *testing.T) {
	p := newPeer(t, 0)
	one := p.commit(1, "a")
	req := p.open()
	req.Limits.Wants = 1
	for said, lines := range map[string][]string{
		`"zz" is not an object name`:              {"want zz", "0000"},
		"not our ref " + strings.Repeat("e", 40):  {"want " + strings.Repeat("e", 40), "0000"},
		`"hello" is not understood`:               {"want " + one, "hello", "0000"},
		`deepen: "-1" is not a depth`:             {"want " + one, "deepen -1", "0000"},
		"more than 1 wants":                       {"want " + one, "want " + strings.Repeat("e", 40), "0000"},
		`filter "sparse:oid=x" is not supported`:  {"want " + one, "filter sparse:oid=x", "0000"},
		`"x" where have or done is expected`:      {"want " + one, "0000", "x"},
		"deepen-not is not a ref: none":           {"want " + one, "deepen-not none", "0000"},
		`object format "sha256" is not the rep`:   {"want " + one + " object-format=sha256", "0000"},
		"a delim-pkt among the wants":             {"want " + one, "0001"},
		"deepen and deepen-since or deepen-not c": {"want " + one, "deepen 1", "deepen-since 5", "0000"},
	} {
		b, err := talk(t, req, lines...)
		require.Equal(t, fault.Refused, fault.KindOf(err), said)
		require.ErrorContains(t, err, said)
		_, _, err = b.r.Line()
		require.ErrorContains(t, err, said, "the client hears it")
	}
	_, err := talk(t, req, "want "+one, "0000", "have "+strings.Repeat("e", 40))
	require.Equal(t, fault.Failed, fault.KindOf(err), "gone")
	req.Version = 2
	for said, lines := range map[string][]string{
		`unknown command "x"`:          {"command=x", "0000"},
		"no command":                   {"agent=x", "0000"},
		"two commands in one request":  {"command=fetch", "command=fetch", "0000"},
		`ls-refs: "x" is not understo`: {"command=ls-refs", "0001", "x", "0000"},
		"a delim-pkt among the argume": {"command=fetch", "0001", "0001"},
	} {
		_, err := talk(t, req, lines...)
		require.ErrorContains(t, err, said)
		require.Equal(t, fault.Refused, fault.KindOf(err), said)
	}
}

// gone is a store without one object.
type gone struct {
	store.Reader
	id plumbing.Hash
}

func (g gone) Get(h plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	if h == g.id {
		return 0, nil, store.ErrNotFound
	}
	return g.Reader.Get(h)
}

// Our own faults: the client is told that there was one, on the side-band if it reads one, and no details.
func TestOwnFaults(t *testing.T) {
	p := newPeer(t, 0)
	one := p.commit(1, "a")
	req := p.open()
	req.Objects = gone{req.Objects, plumbing.NewHash(p.git(p.src, "rev-parse", "HEAD^{tree}"))}
	b, err := talk(t, req, "want "+one+" side-band-64k", "0000", "done")
	require.Equal(t, fault.Internal, fault.KindOf(err))
	b.lines("NAK")
	_, err = io.ReadAll(pktline.NewDemux(b.r))
	require.ErrorContains(t, err, "failed to make the pack")
	require.NotContains(t, err.Error(), "not found")
}

func TestEndedContext(t *testing.T) {
	p := newPeer(t, 0)
	one := p.commit(1, "a")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := Serve(ctx, p.open(), bytes.NewReader(script("want "+one, "0000", "done")), io.Discard)
	require.ErrorIs(t, err, context.Canceled)
}

// slow makes every tree take longer than the silence that is allowed.
type slow struct{ store.Reader }

func (s slow) Get(h plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	t, data, err := s.Reader.Get(h)
	if t == plumbing.TreeObject {
		time.Sleep(20 * time.Millisecond)
	}
	return t, data, err
}

func TestKeepalive(t *testing.T) {
	p := newPeer(t, 0)
	one := p.commit(1, "a", "b/c", "d/e/f")
	req := p.open()
	req.Objects, req.Limits.Keepalive = slow{req.Objects}, time.Millisecond
	var out bytes.Buffer
	require.NoError(t, Serve(context.Background(), req, bytes.NewReader(script("want "+one+" side-band-64k no-progress", "0000", "done")), &out))
	require.Contains(t, out.String(), "0005\x01")
}

func TestSeenSet(t *testing.T) {
	var s objectSet
	require.False(t, s.has(plumbing.NewHash("01")))
	want := map[plumbing.Hash]bool{}
	for i := range 5000 {
		h := plumbing.ComputeHash(plumbing.BlobObject, []byte{byte(i), byte(i >> 8)})
		if i%2 == 0 { // neighbours that share all but the last bytes
			h = plumbing.Hash{1, 19: byte(i), 18: byte(i >> 8)}
		}
		require.False(t, s.has(h))
		require.True(t, s.add(h))
		require.False(t, s.add(h))
		want[h] = true
	}
	got := map[plumbing.Hash]bool{}
	s.each(func(h plumbing.Hash) { got[h] = true; require.True(t, s.has(h)) })
	require.Equal(t, want, got)
}

func TestVersion(t *testing.T) {
	for in, want := range map[string]int{"": 0, "version=1": 1, "version=2": 2, "x=y:version=2:version=1": 2, "version=3": 0, "Version=2": 0} {
		require.Equal(t, want, Version(in), in)
	}
}

// Whatever a client sends, Serve ends, and responds with an error or not at all.
func FuzzServe(f *testing.F) {
	p := newPeer(f, 0)
	one := p.commit(1, "a", "b/c")
	two := p.commit(2, "a")
	p.git(p.src, "update-ref", "refs/corpus/x", two)
	p.git(p.src, "update-ref", "refs/heads/main", one)
	req := p.open()
	f.Add(uint8(0), script("want "+one+" multi_ack_detailed side-band-64k", "shallow "+one, "deepen 1", "filter blob:none", "0000", "have "+two, "done"))
	f.Add(uint8(2), script("command=ls-refs", "0001", "peel", "symrefs", "unborn", "ref-prefix refs/", "0000"))
	f.Add(uint8(2), script("command=fetch", "0001", "want "+one, "have "+two, "thin-pack", "include-tag", "filter tree:1", "deepen-since 5", "0000"))
	f.Fuzz(func(t *testing.T, version uint8, in []byte) {
		q := req
		q.Version, q.Stateless = int(version%3), version > 127
		var out bytes.Buffer
		_ = Serve(context.Background(), q, bytes.NewReader(in), &out)
		require.NotContains(t, out.String(), "refs/corpus/")
	})
}
