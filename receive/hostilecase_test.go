package receive_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
)

// hostileCase is a file of testdata/hostile. It begins with its story, in lines that begin with #. Then it says what the pack holds, in its order:
//
//	blob NAME "text"         a blob; NAME stands for it further on
//	blob NAME zeros N        one of N zeros
//	noise N                  one of N bytes that deflate does not make less
//	tree NAME                a tree; its entries follow, indented, each a mode, a name and an object
//	ofs OBJECT BASE RESULT D  a delta on OBJECT, or on the entry #n, which says these sizes; D is its instructions, hexadecimal, 200*b060ea for many
//	ref OBJECT BASE RESULT D  the same, by the name of its base
//	commit OBJECT            a commit with this tree, to which the branch is to point
//	tip OBJECT               to what the branch is to point else
//	count N                  what the header says, where it is not the truth
//
// and what became of the whole: cut N (that many bytes of its end), flip AT BITS (a place, from the end where it is below zero), nothing, append "text".
// OBJECT is a NAME or a hash. At the end is accepted, or refused "what is said".
type hostileCase struct {
	name, story string
	pack        []byte
	tip         plumbing.Hash
	refused     string
	accepted    bool
}

func hostileCases(t *testing.T) (out []hostileCase) {
	t.Helper()
	files, err := filepath.Glob("testdata/hostile/*.txt")
	require.NoError(t, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		c := hostileCase{name: strings.TrimSuffix(filepath.Base(name), ".txt")}
		r := recipe{objects: map[string]plumbing.Hash{}, entries: map[string]int{}}
		for i, line := range strings.Split(string(text), "\n") {
			require.NoError(t, r.line(&c, line), "%s:%d", name, i+1)
		}
		require.NoError(t, r.closeTree(), name)
		require.NotEmpty(t, c.story, "%s has no story", name)
		require.True(t, c.accepted != (c.refused != ""), "%s does not say what is expected", name)
		count := r.f.n
		if r.count != nil {
			count = *r.count
		}
		c.pack = r.f.bytes(count)
		for _, change := range r.changes {
			c.pack = change(c.pack)
		}
		out = append(out, c)
	}
	return out
}

// recipe is a pack that is being made.
type recipe struct {
	f       forge
	objects map[string]plumbing.Hash
	entries map[string]int // their places in the pack
	tree    string         // whose lines come
	lines   []treeLine
	open    bool
	count   *uint32
	changes []func([]byte) []byte
}

func (r *recipe) line(c *hostileCase, line string) error {
	if story, ok := strings.CutPrefix(line, "#"); ok {
		c.story = strings.TrimSpace(c.story + story)
		return nil
	}
	f, err := words(line)
	if err != nil || len(f) == 0 {
		return err
	}
	if strings.HasPrefix(line, "  ") {
		if len(f) != 3 || !r.open {
			return fmt.Errorf("%q is no entry of a tree", line)
		}
		h, err := r.object(f[2])
		r.lines = append(r.lines, treeLine{f[0], f[1], h})
		return err
	}
	if err := r.closeTree(); err != nil {
		return err
	}
	arity := map[string]int{"blob": -1, "noise": 1, "tree": 1, "ofs": 4, "ref": 4, "commit": 1, "tip": 1, "count": 1, "cut": 1, "flip": 2, "nothing": 0, "append": 1, "refused": 1, "accepted": 0}
	n, ok := arity[f[0]]
	if !ok || n >= 0 && len(f) != n+1 || n < 0 && len(f) < 3 {
		return fmt.Errorf("cannot read %q", line)
	}
	return r.do(c, f[0], f[1:])
}

func (r *recipe) do(c *hostileCase, verb string, f []string) (err error) {
	number := func(s string) int {
		n, e := strconv.Atoi(s)
		if e != nil && err == nil {
			err = e
		}
		return n
	}
	switch verb {
	case "blob":
		data := []byte(f[1])
		if f[1] == "zeros" && len(f) == 3 {
			data = make([]byte, number(f[2]))
		}
		r.entries[f[0]] = int(r.f.n)
		r.objects[f[0]] = r.f.add(plumbing.BlobObject, data)
	case "noise":
		junk := make([]byte, number(f[0]))
		for i := range junk {
			junk[i] = byte(i*i>>3 ^ i>>11)
		}
		r.f.raw(entryHead(plumbing.BlobObject, len(junk)), []byte{0x78, 0x01}, stored(junk))
	case "tree":
		r.tree, r.lines, r.open = f[0], nil, true
	case "ofs", "ref":
		delta := append(deltaSize(number(f[1])), deltaSize(number(f[2]))...)
		times, text := 1, f[3]
		if n, rest, ok := strings.Cut(text, "*"); ok {
			times, text = number(n), rest
		}
		ops, e := hex.DecodeString(text)
		if e != nil {
			return e
		}
		for range times {
			delta = append(delta, ops...)
		}
		if verb == "ref" {
			h, err := r.object(f[0])
			r.f.ref(h, delta)
			return err
		}
		at, ok := r.entries[f[0]]
		if !ok {
			at = number(strings.TrimPrefix(f[0], "#"))
		}
		if err == nil {
			r.f.ofs(at, delta)
		}
	case "commit":
		h, e := r.object(f[0])
		c.tip = r.f.commit(h)
		return e
	case "tip":
		c.tip, err = r.object(f[0])
	case "count":
		n, e := strconv.ParseUint(f[0], 10, 32)
		v := uint32(n)
		r.count = &v
		return e
	case "cut":
		n := number(f[0])
		r.changes = append(r.changes, func(b []byte) []byte { return b[:len(b)-n] })
	case "flip":
		at := number(f[0])
		bits, e := strconv.ParseUint(f[1], 16, 8)
		r.changes = append(r.changes, func(b []byte) []byte { b[(at+len(b))%len(b)] ^= byte(bits); return b })
		return e
	case "nothing":
		r.changes = append(r.changes, func([]byte) []byte { return nil })
	case "append":
		r.changes = append(r.changes, func(b []byte) []byte { return append(b, f[0]...) })
	case "refused":
		c.refused = f[0]
	case "accepted":
		c.accepted = true
	}
	return err
}

// closeTree adds the tree whose lines have come.
func (r *recipe) closeTree() error {
	if r.open {
		r.open = false
		r.objects[r.tree] = r.f.add(plumbing.TreeObject, treeBytes(r.lines...))
	}
	return nil
}

func (r *recipe) object(name string) (plumbing.Hash, error) {
	if h, ok := r.objects[name]; ok {
		return h, nil
	}
	if plumbing.IsHash(name) {
		return plumbing.NewHash(name), nil
	}
	return plumbing.ZeroHash, fmt.Errorf("nothing is called %s", name)
}

// words splits a line; what is in quotes is one, written as in Go.
func words(line string) (out []string, err error) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		if line[0] != '"' {
			word, rest, _ := strings.Cut(line, " ")
			out, line = append(out, word), rest
			continue
		}
		quoted, err := strconv.QuotedPrefix(line)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		word, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, err
		}
		out, line = append(out, word), line[len(quoted):]
	}
	return out, nil
}
