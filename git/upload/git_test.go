package upload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLsRemote(t *testing.T) {
	each(t, func(t *testing.T, p *peer) {
		want := p.git(p.src, "ls-remote", "--symref", p.bare())
		require.Equal(t, want, p.git(p.src, "ls-remote", "--symref", p.url()))
		require.Equal(t, p.git(p.src, "ls-remote", "--tags", p.bare(), "v1*"), p.git(p.src, "ls-remote", "--tags", p.url(), "v1*"))
		p.git(p.src, "update-ref", "refs/corpus/deployments/1", "HEAD")
		require.Equal(t, want, p.git(p.src, "ls-remote", "--symref", p.url()))
		p.git(p.src, "checkout", "-q", "--detach")
		require.Equal(t, p.git(p.src, "rev-parse", "HEAD")+"\tHEAD", p.git(p.src, "ls-remote", "--symref", p.url(), "HEAD"))
	})
}

func TestEmptyRepository(t *testing.T) {
	for v := range 3 {
		p := newPeer(t, v)
		require.Empty(t, p.git(p.src, "ls-remote", p.url()))
		dir := filepath.Join(t.TempDir(), "clone")
		p.git(p.src, "clone", "-q", p.url(), dir)
		if v == 2 {
			require.Equal(t, "refs/heads/main", p.git(dir, "symbolic-ref", "HEAD"))
		}
		p.commit(1, "a")
		p.git(dir, "pull", "-q", "origin", "main")
	}
}

func TestCloneAndFetch(t *testing.T) {
	each(t, func(t *testing.T, p *peer) {
		dir := filepath.Join(t.TempDir(), "clone")
		p.git(p.src, "clone", "-q", "--mirror", p.url(), dir)
		p.equal(dir)
		work := filepath.Join(t.TempDir(), "work")
		p.git(p.src, "clone", "-q", p.url(), work)
		require.Equal(t, p.git(p.src, "rev-parse", "HEAD^{tree}"), p.git(work, "write-tree"))

		// Both continue, so that there is something to negotiate.
		env := p.env
		local := filepath.Join(work, "local")
		for range 6 {
			require.NoError(t, os.WriteFile(local, []byte(p.git(work, "rev-parse", "HEAD")), 0o644))
			p.git(work, "add", "-A")
			p.git(work, "commit", "-q", "-m", "local")
		}
		p.env = env
		p.commit(8, "a", "moved/2")
		p.git(p.src, "tag", "-a", "-m", "two", "v2")
		p.git(p.src, "repack", "-adq")
		p.commit(9, "a")
		before := p.git(work, "count-objects", "-v")
		p.git(work, "fetch", "-q")
		require.NotEqual(t, before, p.git(work, "count-objects", "-v"))
		require.Equal(t, p.git(p.src, "rev-parse", "main"), p.git(work, "rev-parse", "origin/main"))
		require.Equal(t, p.git(p.src, "rev-parse", "v2"), p.git(work, "rev-parse", "v2"), "the tag came along")
		p.git(work, "fsck", "--strict", "--no-dangling")
		p.git(dir, "fetch", "-q", "--prune")
		p.equal(dir)
		p.git(dir, "fetch", "-q")

		// A force push of an unrelated history, and refs that are deleted.
		p.git(p.src, "checkout", "-q", "--orphan", "other")
		p.commit(10, "new")
		p.git(p.src, "branch", "-q", "-M", "other", "main")
		p.git(p.src, "tag", "-d", "light")
		p.git(dir, "fetch", "-q", "--prune")
		p.equal(dir)
	})
}

// An incremental fetch sends what is new and little more.
func TestFetchSendsOnlyWhatIsNew(t *testing.T) {
	each(t, func(t *testing.T, p *peer) {
		dir := filepath.Join(t.TempDir(), "clone")
		p.git(p.src, "clone", "-q", "--mirror", p.url(), dir)
		p.commit(8, "moved/3")
		p.git(dir, "-c", "fetch.unpackLimit=1000", "fetch", "-q")
		// A commit, the trees "/" and "moved", a file.
		require.Contains(t, p.git(dir, "count-objects", "-v"), "count: 4\n")
		p.git(p.src, "mv", "moved", "again")
		p.commit(9)
		p.git(dir, "-c", "fetch.unpackLimit=1000", "fetch", "-q")
		p.equal(dir)
	})
}

func TestShallow(t *testing.T) {
	each(t, func(t *testing.T, p *peer) {
		count := func(dir string) string { return p.git(dir, "rev-list", "--count", "HEAD") }
		dir := filepath.Join(t.TempDir(), "clone")
		p.git(p.src, "clone", "-q", "--depth", "1", p.url(), dir)
		require.Equal(t, "1", count(dir))
		require.Equal(t, p.git(p.src, "rev-parse", "HEAD^{tree}"), p.git(dir, "write-tree"))
		p.git(dir, "fsck", "--strict", "--no-dangling")
		reference := filepath.Join(t.TempDir(), "reference")
		p.git(p.src, "clone", "-q", "--depth", "3", "file://"+p.bare(), reference)
		same := func(dir string) {
			t.Helper()
			p.git(dir, "fsck", "--strict", "--no-dangling")
			require.Equal(t, shallowFile(t, reference), shallowFile(t, dir))
			require.Equal(t, count(reference), count(dir))
		}
		p.git(dir, "fetch", "-q", "--depth", "3")
		same(dir)
		p.git(reference, "fetch", "-q", "--deepen", "1")
		p.git(dir, "fetch", "-q", "--deepen", "1")
		same(dir)
		p.git(reference, "fetch", "-q", "--depth", "2")
		p.git(dir, "fetch", "-q", "--depth", "2")
		same(dir)
		p.commit(8, "a")
		p.git(reference, "pull", "-q")
		p.git(dir, "pull", "-q")
		same(dir)
		p.git(dir, "fetch", "-q", "--unshallow")
		require.Equal(t, count(p.src), count(dir))
		require.NoFileExists(t, filepath.Join(dir, ".git/shallow"))
		p.git(dir, "fsck", "--strict", "--no-dangling")

		for _, arg := range []string{"--shallow-since=1700018000", "--shallow-exclude=v1"} {
			a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
			p.git(p.src, "clone", "-q", arg, "file://"+p.bare(), a)
			p.git(p.src, "clone", "-q", arg, p.url(), b)
			require.Equal(t, shallowFile(t, a), shallowFile(t, b), arg)
			require.Equal(t, count(a), count(b), arg)
			p.git(b, "fsck", "--strict", "--no-dangling")
		}
		out, err := p.command(p.src, "clone", "-q", "--shallow-since=2000000000", p.url(), filepath.Join(t.TempDir(), "none"))
		require.Error(t, err)
		require.Contains(t, out, "no commits selected for shallow requests")
	})
}

func shallowFile(t *testing.T, dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, ".git/shallow"))
	require.NoError(t, err)
	return string(b)
}

func TestPartialClone(t *testing.T) {
	each(t, func(t *testing.T, p *peer) {
		missing := func(dir string) int {
			return strings.Count(p.git(dir, "rev-list", "--objects", "--all", "--missing=print"), "?")
		}
		for _, filter := range []string{"blob:none", "blob:limit=1k", "tree:0", "tree:2", "combine:blob:none+tree:3"} {
			a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
			p.git(p.src, "-c", "uploadpack.allowFilter=true", "config", "uploadpack.allowFilter", "true")
			p.git(p.src, "clone", "-q", "--bare", "--filter="+filter, "file://"+p.bare(), a)
			p.git(p.src, "clone", "-q", "--bare", "--filter="+filter, p.url(), b)
			require.Positive(t, missing(a), filter)
			require.Equal(t, missing(a), missing(b), filter)
		}
		// A work tree makes the client return for the files, and log -p for older ones.
		dir := filepath.Join(t.TempDir(), "work")
		p.git(p.src, "clone", "-q", "--filter=blob:none", p.url(), dir)
		require.Equal(t, p.git(p.src, "rev-parse", "HEAD^{tree}"), p.git(dir, "write-tree"))
		require.Empty(t, p.git(dir, "status", "--porcelain"))
		p.git(dir, "log", "-p", "--all")
		p.commit(8, "a")
		p.git(dir, "pull", "-q")
		p.git(dir, "fsck")
	})
}

// Whatever a filter omits, the target of a ref is sent, and so are the targets of its tags: the same objects as from git.
func TestFilterWithTagsOfAnything(t *testing.T) {
	each(t, func(t *testing.T, p *peer) {
		p.git(p.src, "config", "uploadpack.allowFilter", "true")
		p.git(p.src, "tag", "-a", "-m", "a tag of a blob", "blob", "HEAD:a")
		// Trees that no commit has: for others git 2.39 forgets what the filter omitted before, and cannot clone itself.
		p.git(p.src, "rm", "-q", "--cached", "a")
		p.git(p.src, "tag", "-a", "-m", "a tag of a tree", "tree", p.git(p.src, "write-tree"))
		p.git(p.src, "rm", "-q", "--cached", "b")
		p.git(p.src, "tag", "lighttree", p.git(p.src, "write-tree"))
		p.git(p.src, "reset", "-q")
		p.git(p.src, "tag", "-a", "-m", "a tag of a tag", "twice", "blob")
		p.git(p.src, "tag", "lightblob", "HEAD:b")
		objects := func(url, filter string) string {
			dir := filepath.Join(t.TempDir(), "clone")
			p.git(p.src, "clone", "-q", "--bare", "--filter="+filter, url, dir)
			return p.git(dir, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
		}
		for _, filter := range []string{"blob:none", "blob:limit=1", "tree:0", "tree:1", "tree:2", "object:type=commit", "object:type=tree", "object:type=blob", "object:type=tag",
			"combine:blob:none+tree:1", "combine:object:type=tree+tree:2"} {
			require.Equal(t, objects("file://"+p.bare(), filter), objects(p.url(), filter), filter)
		}
	})
}

// Objects in the store that belong to no visible ref cannot be fetched by anybody: pins of deployments, failed pushes.
func TestHiddenIsNotServed(t *testing.T) {
	each(t, func(t *testing.T, p *peer) {
		p.git(p.src, "checkout", "-q", "-b", "secret")
		secret := p.commit(8, "secret")
		blob, tree := p.git(p.src, "rev-parse", "HEAD:secret"), p.git(p.src, "rev-parse", "HEAD^{tree}")
		p.git(p.src, "checkout", "-q", "main")
		p.git(p.src, "branch", "-qD", "secret")
		p.git(p.src, "update-ref", "refs/corpus/deployments/1", secret)
		dir := filepath.Join(t.TempDir(), "clone")
		p.git(p.src, "clone", "-q", "--mirror", p.url(), dir)
		_, err := p.command(dir, "cat-file", "-e", secret)
		require.Error(t, err)
		for _, id := range []string{secret, blob, tree, strings.Repeat("1", 40)} {
			out, err := p.command(dir, "fetch", "-q", "origin", id)
			require.Error(t, err)
			require.Contains(t, out, "not our ref "+id)
		}
		out, err := p.command(dir, "fetch", "-q", "origin", "refs/corpus/deployments/1")
		require.Error(t, err)
		require.Contains(t, out, "couldn't find remote ref")
		// What a visible ref leads to may be requested by name.
		p.git(p.src, "init", "-q", dir+"2")
		p.git(dir+"2", "fetch", "-q", p.url(), p.git(p.src, "rev-parse", "main~2"))
		p.git(dir+"2", "fsck", "--strict", "--no-dangling")
	})
}

// Progress is text on band 2 unless the client is quiet.
func TestProgress(t *testing.T) {
	each(t, func(t *testing.T, p *peer) {
		out := p.git(p.src, "clone", "--progress", p.url(), filepath.Join(t.TempDir(), "clone"))
		require.Contains(t, out, "remote: Sending ")
		require.NotContains(t, p.git(p.src, "clone", "-q", p.url(), filepath.Join(t.TempDir(), "quiet")), "remote:")
	})
}
