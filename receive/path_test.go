package receive_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/receive"
)

func TestParsePath(t *testing.T) {
	for in, want := range map[string]string{
		"app": "app project", "/app": "app project", "app.git": "app project", "/app.git/": "app project",
		"app/project": "app project", "/app/project.git": "app project", "app/pillar.git": "app pillar", "/app/pillar": "app pillar",
		"/srv/projects/app/git/project.git": "app project", "/srv/projects/app/git/pillar.git": "app pillar", "/srv/projects/app/git/pillar": "app pillar",
	} {
		n, r, err := receive.ParsePath("/srv", in)
		require.NoError(t, err, in)
		require.Equal(t, want, string(n)+" "+string(r))
	}
	for _, bad := range []string{"", "/", "app//project.git", "../app", "app/../b", "app/x.git", "app/project.git/x", "App", "~/app", "a b", "app\x00", "app\n",
		"/srv/projects/app", "/srv/projects/app/git/x.git", "/srv/projects/../git/project.git", "/srv/projects//git/project.git", "./app", "app/.", strings.Repeat("a", 5000)} {
		_, _, err := receive.ParsePath("/srv", bad)
		require.Equal(t, fault.Usage, fault.KindOf(err), bad)
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestWords(t *testing.T) {
	for in, want := range map[string][]string{
		"":                              nil,
		"  ":                            nil,
		"git-receive-pack 'a/b.git'":    {"git-receive-pack", "a/b.git"},
		`git-upload-pack 'it'\''s'`:     {"git-upload-pack", "it's"},
		`x 'a'\!'b'`:                    {"x", "a!b"},
		`a "b c" d\ e ''`:               {"a", "b c", "d e", ""},
		`"a\"b\\c\d"`:                   {`a"b\c\d`},
		"a\tb":                          {"a", "b"},
		`'$HOME;|&'`:                    {"$HOME;|&"},
		"deployments myapp --json #not": {"deployments", "myapp", "--json", "#not"},
	} {
		got, err := receive.Words(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
	for _, bad := range []string{"'", `"`, `a\`, "a;b", "a|b", "a&b", "a>b", "a<b", "$x", "`x`", `"$x"`, "a\nb", "a\x00b", "'a\x00'", `"a`, "(a)"} {
		_, err := receive.Words(bad)
		require.Equal(t, fault.Usage, fault.KindOf(err), "%q", bad)
	}
}

// ssh://host//NAME/project.git has two slashes; git's own server treats it as the same.
func TestSlashesBeforeAName(t *testing.T) {
	for _, in := range []string{"//app/project.git", "///app", "//srv/projects/app/git/project.git"} {
		n, r, err := receive.ParsePath("/srv", in)
		require.NoError(t, err, in)
		require.Equal(t, project.Name("app"), n)
		require.Equal(t, project.Code, r)
	}
	_, _, err := receive.ParsePath("/srv", "//")
	require.Error(t, err)
}

func FuzzParsePath(f *testing.F) {
	for _, s := range []string{"app/project.git", "/srv/projects/app/git/pillar.git", "../x", "a//b", "app.git/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, r, err := receive.ParsePath("/srv", s)
		if err != nil {
			require.Equal(t, fault.Usage, fault.KindOf(err))
			return
		}
		_, err = project.ParseName(string(n))
		require.NoError(t, err)
		require.Contains(t, []project.Repo{project.Code, project.PillarRepo}, r)
		repos := &receive.Repositories{Root: layout.Root("/srv")}
		require.True(t, strings.HasPrefix(filepath.Clean(repos.Open(n, r).Dir()), "/srv/projects/"+string(n)+"/git/"))
		require.NotContains(t, s, "..")
	})
}

// gitQuote quotes as git's sq_quote_buf does.
func gitQuote(s string) string {
	r := strings.NewReplacer("'", `'\''`, "!", `'\!'`)
	return "'" + r.Replace(s) + "'"
}

func FuzzWords(f *testing.F) {
	for _, s := range []string{"a/b.git", "it's", "a!b", `x\y`, "a b\tc", "$(x)", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		words, err := receive.Words(s)
		if err != nil {
			require.Equal(t, fault.Usage, fault.KindOf(err))
		}
		for _, w := range words {
			require.NotContains(t, w, "\x00")
		}
		if strings.ContainsRune(s, 0) {
			return
		}
		words, err = receive.Words("git-receive-pack " + gitQuote(s))
		require.NoError(t, err)
		require.Equal(t, []string{"git-receive-pack", s}, words)
	})
}
