package object

import (
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
)

const (
	one = "1111111111111111111111111111111111111111"
	two = "2222222222222222222222222222222222222222"
	six = "6666666666666666666666666666666666666666"
)

func TestParseCommit(t *testing.T) {
	data := []byte("tree " + one + "\nparent " + two + "\nparent " + six + "\nauthor A U Thor <a@example.org> 1700000000 +0130\n" +
		"committer C O Mitter <c@example.org> 1700000100 -0500\nencoding ISO-8859-1\n\n\nFirst line\nsecond line\n\nbody\n")
	c, err := ParseCommit(plumbing.NewHash(six), data)
	require.NoError(t, err)
	require.Equal(t, plumbing.NewHash(one), c.Tree)
	require.Equal(t, []plumbing.Hash{plumbing.NewHash(two), plumbing.NewHash(six)}, c.Parents)
	require.Equal(t, "First line second line", c.Subject)
	require.Equal(t, "ISO-8859-1", c.Encoding)
	require.Equal(t, "A U Thor", c.Author.Name)
	require.Equal(t, "c@example.org", c.Committer.Email)
	require.True(t, time.Unix(1700000000, 0).Equal(c.Author.When))
	require.Equal(t, "2023-11-14T23:43:20+01:30", c.Author.When.Format(time.RFC3339))
	head, err := ParseHead(plumbing.NewHash(six), data)
	require.NoError(t, err)
	require.Equal(t, c.Head, head, "both readers agree")
	require.EqualValues(t, 1700000100, head.Date)
}

func TestDamagedCommits(t *testing.T) {
	for name, data := range map[string]string{
		"empty": "", "no tree": "parent " + one + "\n", "short tree": "tree 1234\n", "bad parent": "tree " + one + "\nparent x\n",
		"tree without end": "tree " + one[:39],
	} {
		_, err := ParseCommit(plumbing.ZeroHash, []byte(data))
		require.ErrorIs(t, err, ErrCorrupt, name)
		_, err = ParseHead(plumbing.ZeroHash, []byte(data))
		require.ErrorIs(t, err, ErrCorrupt, name)
	}
	for _, ident := range []string{"", "nobody", "a <b>", "a <b> x +0000", "a <b> 99999999999999999999 +0000", "<", "> 5"} {
		data := []byte("tree " + one + "\ncommitter " + ident + "\n\nx")
		c, err := ParseCommit(plumbing.ZeroHash, data)
		require.NoError(t, err, ident)
		head, err := ParseHead(plumbing.ZeroHash, data)
		require.NoError(t, err, ident)
		require.Equal(t, c.Head, head, ident)
	}
}

func TestEntries(t *testing.T) {
	tree := []byte("100644 a\x00" + string(make([]byte, 20)) + "40000 b\x00" + string(make([]byte, 20)))
	e, rest, ok := NextEntry(tree)
	require.True(t, ok)
	require.Equal(t, "a", string(e.Name))
	require.Equal(t, plumbing.BlobObject, e.Type())
	e, rest, ok = NextEntry(rest)
	require.True(t, ok)
	require.True(t, e.IsTree())
	require.Empty(t, rest)
	for _, bad := range []string{"", "100644", "100648 a\x00", " a\x00", "100644 a\x00short", "100644100644 a\x00"} {
		_, rest, ok := NextEntry([]byte(bad))
		require.False(t, ok, bad)
		require.Len(t, rest, len(bad))
	}
	require.Negative(t, Compare(&Entry{Mode: ModeFile, Name: []byte("a-b")}, &Entry{Mode: ModeTree, Name: []byte("a")}))
	require.Negative(t, CompareNames("a-b", ModeFile, "a", ModeTree))
	require.Zero(t, CompareNames("a", ModeFile, "a", ModeExecutable))
	require.Positive(t, Compare(&Entry{Mode: ModeTree, Name: []byte("a")}, &Entry{Mode: ModeFile, Name: []byte("a")}))
}

func TestCanonical(t *testing.T) {
	for in, want := range map[uint32]uint32{
		0o100664: ModeFile, 0o100644: ModeFile, 0o100775: ModeExecutable, 0o040755: ModeTree, 0o120000: ModeSymlink, 0o160000: ModeGitlink, 0o010644: 0o010644,
	} {
		require.Equal(t, want, Canonical(in), "%o", in)
	}
}

func TestQueue(t *testing.T) {
	var q Queue[string]
	for name, date := range map[string]int64{"old": 1, "new": 9, "middle": 5} {
		q.Push(date, name)
	}
	require.Equal(t, 3, q.Len())
	require.Equal(t, []string{"new", "middle", "old"}, []string{q.Pop(), q.Pop(), q.Pop()})
}

// objects implements Reader.
type objects map[plumbing.Hash]struct {
	t    plumbing.ObjectType
	data string
}

func (o objects) Header(h plumbing.Hash) (plumbing.ObjectType, int64, error) {
	t, data, err := o.Get(h)
	return t, int64(len(data)), err
}

func (o objects) Get(h plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	x, ok := o[h]
	if !ok {
		return 0, nil, plumbing.ErrObjectNotFound
	}
	return x.t, []byte(x.data), nil
}

func TestPeel(t *testing.T) {
	a, b, c := plumbing.NewHash(one), plumbing.NewHash(two), plumbing.NewHash(six)
	o := objects{a: {plumbing.TagObject, "object " + two + "\ntype commit\n"}, b: {plumbing.CommitObject, "tree " + six + "\n"}}
	h, typ, err := Peel(o, a)
	require.NoError(t, err)
	require.Equal(t, b, h)
	require.Equal(t, plumbing.CommitObject, typ)
	_, _, err = Peel(o, c)
	require.ErrorIs(t, err, plumbing.ErrObjectNotFound)
	o[a] = struct {
		t    plumbing.ObjectType
		data string
	}{plumbing.TagObject, "object " + one + "\ntype tag\n"}
	_, _, err = Peel(o, a)
	require.ErrorContains(t, err, "more than 64 tags", "a tag of itself ends")
	o[a] = struct {
		t    plumbing.ObjectType
		data string
	}{plumbing.TagObject, "type commit\n"}
	_, _, err = Peel(o, a)
	require.ErrorIs(t, err, ErrCorrupt)
	_, err = ReadHead(o, a)
	var wrong *WrongTypeError
	require.ErrorAs(t, err, &wrong)
	head, err := ReadHead(o, b)
	require.NoError(t, err)
	require.Equal(t, c, head.Tree)
}
