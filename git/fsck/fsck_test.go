package fsck

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/git/object"
)

var someHash = plumbing.NewHash(strings.Repeat("1f", 20))

type line struct{ mode, name string }

func treeOf(lines ...line) []byte {
	var b bytes.Buffer
	for _, l := range lines {
		fmt.Fprintf(&b, "%s %s\x00", l.mode, l.name)
		b.Write(someHash[:])
	}
	return b.Bytes()
}

// verdict is what `git fsck` reports about an object, by the names of its messages.
func verdict(t testing.TB, repo string, typ string, data []byte) string {
	t.Helper()
	cmd := exec.Command("git", "hash-object", "-t", typ, "-w", "--stdin", "--literally")
	cmd.Dir = repo
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	require.NoError(t, err)
	cmd = exec.Command("git", "fsck", "--no-dangling", "--no-progress", strings.TrimSpace(string(out)))
	cmd.Dir = repo
	all, _ := cmd.CombinedOutput()
	// fsck checks the whole repository: keep what it reports about this object, except for missing entries.
	var said strings.Builder
	for l := range strings.Lines(string(all)) {
		if strings.Contains(l, strings.TrimSpace(string(out))) && !strings.Contains(l, "broken link") {
			said.WriteString(l)
		}
	}
	return said.String()
}

func TestTreesAgreeWithGit(t *testing.T) {
	repo := t.TempDir()
	require.NoError(t, exec.Command("git", "init", "-q", repo).Run())
	for name, c := range map[string]struct {
		data []byte
		rule string
	}{
		"empty":                  {nil, ""},
		"plain":                  {treeOf(line{"100644", "a"}, line{"100755", "b"}, line{"40000", "c"}, line{"120000", "d"}, line{"160000", "e"}), ""},
		".git":                   {treeOf(line{"40000", ".git"}), "hasDotgit"},
		".GIT":                   {treeOf(line{"40000", ".GiT"}), "hasDotgit"},
		".git file":              {treeOf(line{"100644", ".git"}), "hasDotgit"},
		"git~1":                  {treeOf(line{"40000", "GIT~1"}), "hasDotgit"},
		".git space":             {treeOf(line{"40000", ".git "}), "hasDotgit"},
		".git dots":              {treeOf(line{"40000", ".git . ."}), "hasDotgit"},
		".git stream":            {treeOf(line{"40000", ".git::$INDEX_ALLOCATION"}), "hasDotgit"},
		"HFS ignorable":          {treeOf(line{"40000", ".g\u200cit"}), "hasDotgit"},
		"HFS ignorable first":    {treeOf(line{"40000", "\ufeff.git"}), "hasDotgit"},
		"backslash":              {treeOf(line{"100644", "a\\.git"}), "hasDotgit"},
		"backslash git~1":        {treeOf(line{"100644", "a\\git~1\\b"}), "hasDotgit"},
		".gitx":                  {treeOf(line{"100644", ".gitx"}), ""},
		".gitignore":             {treeOf(line{"100644", ".gitignore"}), ""},
		"git~2":                  {treeOf(line{"100644", "git~2"}), ""},
		"dot":                    {treeOf(line{"40000", "."}), "hasDot"},
		"dotdot":                 {treeOf(line{"40000", ".."}), "hasDotdot"},
		"dotdotdot":              {treeOf(line{"40000", "..."}), ""},
		"slash":                  {treeOf(line{"100644", "a/b"}), "fullPathname"},
		"empty name":             {treeOf(line{"100644", ""}), "emptyName"},
		"twice":                  {treeOf(line{"100644", "a"}, line{"100644", "a"}), "duplicateEntries"},
		"file and folder":        {treeOf(line{"100644", "a"}, line{"40000", "a"}), "duplicateEntries"},
		"file and folder apart":  {treeOf(line{"100644", "a"}, line{"100644", "a-b"}, line{"100644", "a.b"}, line{"40000", "a"}), "duplicateEntries"},
		"symlink and folder":     {treeOf(line{"120000", "a"}, line{"100644", "a-"}, line{"40000", "a"}), "duplicateEntries"},
		"prefixes, no duplicate": {treeOf(line{"100644", "a"}, line{"100644", "a-"}, line{"40000", "a-b"}, line{"40000", "ab"}), ""},
		"unsorted":               {treeOf(line{"100644", "b"}, line{"100644", "a"}), "treeNotSorted"},
		"folder before file":     {treeOf(line{"40000", "a"}, line{"100644", "a.b"}), "treeNotSorted"},
		"folder sorts as a/":     {treeOf(line{"100644", "a.b"}, line{"40000", "a"}, line{"100644", "a0"}), ""},
		"gitmodules link":        {treeOf(line{"120000", ".gitmodules"}), "gitmodulesSymlink"},
		"GITMOD~1 link":          {treeOf(line{"120000", "GITMOD~1"}), "gitmodulesSymlink"},
		"gi7eba~1 link":          {treeOf(line{"120000", "gi7eba~1"}), "gitmodulesSymlink"},
		"gitmod~5 link":          {treeOf(line{"120000", "gitmod~5"}), ""},
		"null hash":              {bytes.ReplaceAll(treeOf(line{"100644", "a"}), someHash[:], make([]byte, 20)), "nullSha1"},
		"zero-padded":            {treeOf(line{"040000", "a"}), ""},
		"group-writable":         {treeOf(line{"100664", "a"}), ""},
		"cut":                    {treeOf(line{"100644", "a"})[:20], "badTree"},
		"no mode":                {treeOf(line{"", "a"}), "badTree"},
		"digit 8":                {treeOf(line{"100844", "a"}), "badTree"},
		"a fifo":                 {treeOf(line{"10644", "a"}), "badFilemode"},
		"a huge mode":            {treeOf(line{"7777777", "a"}), "badFilemode"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(plumbing.TreeObject, someHash, c.data, Callbacks{})
			if c.rule == "" {
				require.NoError(t, err)
			} else {
				var e *Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, c.rule, e.Rule)
				require.Contains(t, e.Error(), someHash.String())
			}
			if strings.Contains(name, "cut") || strings.Contains(name, "mode") || strings.Contains(name, "digit") || name == "empty name" {
				return // git refuses to write these, or has another name for it
			}
			said := verdict(t, repo, "tree", c.data)
			if c.rule != "" {
				require.Contains(t, said, c.rule)
			} else if name != "zero-padded" {
				require.NotContains(t, said, " in tree ")
			}
		})
	}
}

func TestCommitsAndTagsAgreeWithGit(t *testing.T) {
	repo := t.TempDir()
	require.NoError(t, exec.Command("git", "init", "-q", repo).Run())
	const (
		tree   = "tree 1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f\n"
		parent = "parent 1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f\n"
		who    = "author A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n"
		object = "object 1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f\n"
	)
	for name, c := range map[string]struct {
		typ, data, rule string
	}{
		"good":              {"commit", tree + parent + parent + who + "\nhi\n", ""},
		"no message":        {"commit", tree + who, ""},
		"no tree":           {"commit", who + "\nhi\n", "missingTree"},
		"short tree":        {"commit", "tree 1f1f\n" + who + "\nhi\n", "badTreeSha1"},
		"upper case":        {"commit", "tree " + strings.Repeat("1F", 20) + "\n" + who + "\n", "badTreeSha1"},
		"bad parent":        {"commit", tree + "parent xx\n" + who + "\nhi\n", "badParentSha1"},
		"no author":         {"commit", tree + "committer A <a@b> 1 +0000\n\nhi\n", "missingAuthor"},
		"no committer":      {"commit", tree + "author A <a@b> 1 +0000\n\nhi\n", "missingCommitter"},
		"NUL in header":     {"commit", tree + "author A\x00 <a@b> 1 +0000\n\nhi\n", "nulInHeader"},
		"cut header":        {"commit", tree + "author A <a@b> 1", "unterminatedHeader"},
		"empty":             {"commit", "", "unterminatedHeader"},
		"no time zone":      {"commit", tree + "author A <a@b> 1\ncommitter A <a@b> 1\n\nhi\n", ""},
		"no e-mail":         {"commit", tree + "author A\ncommitter A\n\nhi\n", ""},
		"two authors":       {"commit", tree + "author A <a@b> 1 +0000\n" + who + "\nhi\n", ""},
		"tag":               {"tag", object + "type commit\ntag v1\ntagger A <a@b> 1 +0000\n\nhi\n", ""},
		"tag, no tagger":    {"tag", object + "type commit\ntag v1\n\nhi\n", ""},
		"tag of nothing":    {"tag", "type commit\ntag v1\n\nhi\n", "missingObject"},
		"tag, bad object":   {"tag", "object 12\ntype commit\ntag v1\n\nhi\n", "badObjectSha1"},
		"tag, no type":      {"tag", object + "tag v1\n\nhi\n", "missingTypeEntry"},
		"tag, strange type": {"tag", object + "type ofs-delta\ntag v1\n\nhi\n", "badType"},
		"tag, no name":      {"tag", object + "type commit\n\nhi\n", "missingTagEntry"},
	} {
		t.Run(name, func(t *testing.T) {
			typ, err := plumbing.ParseObjectType(c.typ)
			require.NoError(t, err)
			err = Check(typ, someHash, []byte(c.data), Callbacks{})
			if c.rule == "" {
				require.NoError(t, err)
				return
			}
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.rule, e.Rule)
			if c.data != "" && name != "upper case" { // git accepts upper-case digits
				require.NotEmpty(t, verdict(t, repo, c.typ, []byte(c.data)), "git finds something too")
			}
		})
	}
}

func TestLinks(t *testing.T) {
	got := map[string]int{}
	on := Callbacks{Link: func(h plumbing.Hash, typ plumbing.ObjectType) { got[typ.String()]++ }, Modules: func(plumbing.Hash) { got["modules"]++ }}
	require.NoError(t, Check(plumbing.TreeObject, someHash, treeOf(line{"100644", ".gitmodules"}, line{"40000", "c"}, line{"120000", "d"}, line{"160000", "e"}), on))
	require.Equal(t, map[string]int{"blob": 2, "tree": 1, "modules": 1}, got)
	require.NoError(t, Check(plumbing.BlobObject, someHash, nil, on))
}

func TestModules(t *testing.T) {
	for text, rule := range map[string]string{
		"[submodule \"a\"]\n\tpath = a\n\turl = https://example.org/a\n": "",
		"[submodule \"../a\"]\n\tpath = a\n":                             "gitmodulesName",
		"[submodule \"a/../b\"]\n\tpath = a\n":                           "gitmodulesName",
		"[submodule \"a\\\\..\\\\b\"]\n\tpath = a\n":                     "gitmodulesName",
		"[submodule \"a..b\"]\n\tpath = a\n":                             "",
		"[submodule \"a\"]\n\turl = --upload-pack=x\n":                   "gitmodulesUrl",
		"[submodule \"a\"]\n\tURL = -x\n":                                "gitmodulesUrl",
		"[submodule \"a\"]\n\turl = \"https://a\\nb\"\n":                 "gitmodulesUrl",
		"[submodule \"a\"]\n\turl = https://a/%0ahost=b\n":               "gitmodulesUrl",
		"[submodule \"a\"]\n\turl = ../%0A\n":                            "gitmodulesUrl",
		"[submodule \"a\"]\n\turl = ../.././..//evil/x\n":                "gitmodulesUrl",
		"[submodule \"a\"]\n\turl = ../:x\n":                             "gitmodulesUrl",
		"[submodule \"a\"]\n\tpath = -x\n":                               "gitmodulesPath",
		"[submodule \"a\"]\n\tupdate = !rm\n":                            "gitmodulesUpdate",
		"[submodule":                                                     "",
		"[core]\n\turl = -x\n":                                           "",
	} {
		err := Modules(someHash, int64(len(text)), []byte(text))
		if rule == "" {
			require.NoError(t, err, text)
			continue
		}
		var e *Error
		require.ErrorAs(t, err, &e, text)
		require.Equal(t, rule, e.Rule)
	}
	require.ErrorContains(t, Modules(someHash, 1<<30, nil), "gitmodulesLarge")
}

func FuzzTree(f *testing.F) {
	f.Add(treeOf(line{"100644", "a"}, line{"40000", "b"}))
	f.Add(treeOf(line{"100644", ".g\u200cit"}))
	f.Add([]byte("40000 a\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		n := 0
		err := Check(plumbing.TreeObject, someHash, data, Callbacks{Link: func(plumbing.Hash, plumbing.ObjectType) { n++ }})
		if err != nil {
			require.IsType(t, &Error{}, err)
			return
		}
		names := map[string]bool{}
		for e, rest, ok := object.NextEntry(data); ok; e, rest, ok = object.NextEntry(rest) {
			name := string(e.Name)
			require.False(t, names[name], "twice")
			names[name] = true
			require.NotContains(t, []string{"", ".", "..", ".git"}, strings.ToLower(name))
			require.False(t, strings.ContainsAny(name, "/\x00"))
			require.False(t, IsDotGit(e.Name))
			if !e.IsGitlink() {
				n--
			}
		}
		require.Zero(t, n)
	})
}

func FuzzCommitAndTag(f *testing.F) {
	f.Add([]byte("tree 1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f\nauthor a\ncommitter b\n\nx"), true)
	f.Add([]byte("object 1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f\ntype blob\ntag x\n\n"), false)
	f.Fuzz(func(t *testing.T, data []byte, isCommit bool) {
		typ := plumbing.TagObject
		if isCommit {
			typ = plumbing.CommitObject
		}
		if err := Check(typ, someHash, data, Callbacks{}); err != nil {
			require.IsType(t, &Error{}, err)
		}
	})
}

func TestMain(m *testing.M) {
	_ = os.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	_ = os.Setenv("GIT_CONFIG_SYSTEM", "/dev/null")
	os.Exit(m.Run())
}
