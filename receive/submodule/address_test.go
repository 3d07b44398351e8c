package submodule_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/receive/submodule"
)

func TestParseAddress(t *testing.T) {
	for _, c := range []struct {
		url, shown, host string
		kind             submodule.Kind
	}{
		{"https://example.org/a/b.git", "https://example.org/a/b.git", "example.org:443", submodule.HTTP},
		{"http://example.org:8080/b", "http://example.org:8080/b", "example.org:8080", submodule.HTTP},
		{"HTTPS://Example.org/b", "https://example.org/b", "example.org:443", submodule.HTTP},
		{"https://marie:hunter2@example.org/b", "https://…@example.org/b", "example.org:443", submodule.HTTP},
		{"https://ghp_0123456789@example.org/b", "https://…@example.org/b", "example.org:443", submodule.HTTP},
		{"https://example.org/b?private_token=abcdefgh", "https://example.org/b?…", "example.org:443", submodule.HTTP},
		{"ssh://git@example.org:2222/a/b.git", "ssh://git@example.org:2222/a/b.git", "example.org:2222", submodule.SSH},
		{"ssh://git:secret@example.org/a", "ssh://git@example.org/a", "example.org:22", submodule.SSH},
		{"git+ssh://example.org/a", "ssh://example.org/a", "example.org:22", submodule.SSH},
		{"git@example.org:a/b.git", "git@example.org:a/b.git", "example.org:22", submodule.SSH},
		{"example.org:a", "example.org:a", "example.org:22", submodule.SSH},
		{"[example.org]:a", "example.org:a", "example.org:22", submodule.SSH},
		{"[::1]:a/b", "[::1]:a/b", "[::1]:22", submodule.SSH},
		{"ssh://[::1]:22/a", "ssh://[::1]:22/a", "[::1]:22", submodule.SSH},
		{"git://example.org/a", "git://example.org/a", "example.org:9418", submodule.Git},
		{"../lib.git", "../lib.git", "", submodule.Relative},
		{"./lib", "./lib", "", submodule.Relative},
	} {
		a, err := submodule.ParseAddress(c.url)
		require.NoError(t, err, c.url)
		require.Equal(t, c.kind, a.Kind, c.url)
		require.Equal(t, c.shown, a.String(), c.url)
		if c.host != "" {
			require.Equal(t, c.host, a.HostPort(), c.url)
		}
	}
}

// TestHostileAddresses has the URLs that made git run programs, read the server's own files, or ask another host than it seemed.
func TestHostileAddresses(t *testing.T) {
	for url, why := range map[string]string{
		"":                                     "empty",
		"-u./payload":                          "begins with '-'",
		"--upload-pack=touch /tmp/x":           "begins with '-'",
		"file:///etc":                          "local directories",
		"FILE:///etc":                          "local directories",
		"/srv/projects/other/git":              "local directories",
		"srv/other":                            "local directories",
		"ext::sh -c touch% /tmp/x":             "git-remote-ext",
		"fd::17":                               "git-remote-fd",
		"ssh://-oProxyCommand=touch /x":        "cannot be read",
		"ssh://-oProxyCommand=x/y":             "begins with '-'",
		"ssh://-oProxyCommand=x@host/y":        "begins with '-'",
		"-oProxyCommand=x:y":                   "begins with '-'",
		"git@-oProxyCommand=x:y":               "begins with '-'",
		"host:-x":                              "begins with '-'",
		"https://example.org\n/x":              "control characters",
		"https://example.org/%0a/x":            "control characters",
		"https://a%0ab@example.org/x":          "control characters",
		"https:///path":                        "no host",
		"https://example.org":                  "no host or path",
		"ftp://example.org/x":                  "unsupported scheme",
		"gopher://example.org/x":               "unsupported scheme",
		"https://example.org:port/x":           "cannot be read",
		"https://example.org:99999/x":          "no valid port",
		"https://" + strings.Repeat("a", 3000): "bytes",
		":x":                                   "local directories",
		"@:x":                                  "part that is empty",
		"[:]:0":                                "part that is empty",
	} {
		_, err := submodule.ParseAddress(url)
		require.Error(t, err, url)
		require.Equal(t, fault.Refused, fault.KindOf(err), url)
		require.ErrorContains(t, err, why, url)
		require.NotEmpty(t, fault.HintOf(err), url)
	}
	_, err := submodule.ParseAddress("https://marie:hunter2@example.org:port/x")
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2")
}

// TestJoin has the cases of git's own test of relative URLs (t0060), where they are ours.
func TestJoin(t *testing.T) {
	for _, c := range []struct{ base, rel, want string }{
		{"https://example.org/foo/bar", "../subrepo", "https://example.org/foo/subrepo"},
		{"https://example.org/foo/bar/", "../subrepo", "https://example.org/foo/subrepo"},
		{"https://example.org/foo/bar", "../../subrepo", "https://example.org/subrepo"},
		{"https://example.org/foo/bar", "./subrepo", "https://example.org/foo/bar/subrepo"},
		{"https://example.org/foo/bar", "../sub/a/b/c/", "https://example.org/foo/sub/a/b/c"},
		{"https://u:pass@example.org/foo", "../sub", "https://…@example.org/sub"},
		{"ssh://hostname:22/repo", "../subrepo", "ssh://hostname:22/subrepo"},
		{"user@host:repo", "../subrepo", "user@host:subrepo"},
		{"user@host:path/to/repo", "../subrepo", "user@host:path/to/subrepo"},
		{"helper:foo/bar", "../sub/repo", "helper:foo/sub/repo"},
		{"https://example.org/foo", "../../sub", "!leads above"},
		{"https://example.org/foo", "../a/../../b", "!not a plain path"},
		{"https://example.org/foo", "..", "!names no repository"},
	} {
		b, err := submodule.ParseAddress(c.base)
		require.NoError(t, err, c.base)
		rel, err := submodule.ParseAddress(c.rel)
		require.NoError(t, err, c.rel)
		to, err := b.Join(rel)
		if why, bad := strings.CutPrefix(c.want, "!"); bad {
			require.ErrorContains(t, err, why, "%s + %s", c.base, c.rel)
			continue
		}
		require.NoError(t, err, "%s + %s", c.base, c.rel)
		require.Equal(t, c.want, to.String(), "%s + %s", c.base, c.rel)
	}
	to, err := submodule.LocalAddress("/app/project.git").Join(mustParse(t, "../../lib/project.git"))
	require.NoError(t, err)
	require.Equal(t, "/lib/project.git", to.Path())
}

func mustParse(t *testing.T, url string) submodule.Address {
	a, err := submodule.ParseAddress(url)
	require.NoError(t, err)
	return a
}

func TestSecrets(t *testing.T) {
	require.ElementsMatch(t, []string{"hunter2"}, mustParse(t, "https://marie:hunter2@example.org/x").Secrets())
	require.ElementsMatch(t, []string{"ghp_0123456789"}, mustParse(t, "https://ghp_0123456789@example.org/x").Secrets())
	require.ElementsMatch(t, []string{"private_token=abcdefghij", "abcdefghij"}, mustParse(t, "https://example.org/x?private_token=abcdefghij").Secrets())
	require.Empty(t, mustParse(t, "git@example.org:x").Secrets())
}

func TestParse(t *testing.T) {
	got, err := submodule.Parse([]byte(`# comment
[submodule "lib"]
	path = vendor/lib
	url = ../lib.git
[submodule "no path"]
	url = ../x
[submodule "no url"]
	path = y
[submodule "out"]
	path = ../../etc
	url = ../x
[submodule "abs"]
	path = /etc
	url = ../x
[submodule "git"]
	path = a/.git/hooks
	url = ../x
[submodule "none"]
	path = none
	url = "https://example.org/none"
	update = none
[submodule "again"]
	path = vendor/lib
	url = ../other.git
[core]
	path = z
`))
	require.NoError(t, err)
	require.Equal(t, []submodule.Module{
		{Name: "again", Path: "vendor/lib", URL: "../other.git"},
		{Name: "none", Path: "none", URL: "https://example.org/none", None: true},
	}, got)
	_, err = submodule.Parse([]byte("[submodule \"x\"\n"))
	require.Equal(t, fault.Refused, fault.KindOf(err))
	_, err = submodule.Parse(make([]byte, 2<<20))
	require.ErrorContains(t, err, "exceed the limit")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("[submodule \"lib\"]\n\tpath = vendor/lib\n\turl = ../lib.git\n"))
	f.Add([]byte("[submodule \"a\\\"b\"]\n\tpath = \"x # y\"\n\turl = https://u:p@h/x?y=z ; c\n"))
	f.Add([]byte("[submodule]\nurl\n[submodule \"\"]\npath=.git\nurl=ext::x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := submodule.Parse(data)
		if err != nil {
			return
		}
		for _, m := range list {
			if m.Name == "" || m.Path == "" || m.URL == "" || strings.HasPrefix(m.Path, "/") || strings.Contains("/"+m.Path+"/", "/../") || strings.Contains("/"+strings.ToLower(m.Path)+"/", "/.git/") {
				t.Fatalf("%+v", m)
			}
			address(t, m.URL)
		}
	})
}

func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{"https://u:p@example.org:1/x?y=z", "git@h:p", "[::1]:x", "../../x", "ssh://h/~u/x", "ext::x", "file:///x", "-x"} {
		f.Add(s)
	}
	f.Fuzz(address)
}

// address holds for every URL: what is accepted names a host and a path, shows no secret, and leads relative URLs to the same host.
func address(t *testing.T, url string) {
	a, err := submodule.ParseAddress(url)
	if err != nil {
		if fault.KindOf(err) != fault.Refused {
			t.Fatalf("%q: %v", url, err)
		}
		return
	}
	if a.Kind == submodule.Relative {
		base, _ := submodule.ParseAddress("https://example.org/a/b/c")
		if to, err := base.Join(a); err == nil && (to.Host() != "example.org" || strings.Contains("/"+to.Path()+"/", "/../")) {
			t.Fatalf("%q leads to %q", url, to)
		}
		return
	}
	if a.Host() == "" || strings.HasPrefix(a.Host(), "-") || a.Path() == "" {
		t.Fatalf("%q: host %q, path %q", url, a.Host(), a.Path())
	}
	for _, s := range a.Secrets() {
		if len(s) > 7 && strings.Contains(a.String(), s) && !strings.Contains(a.Host()+a.Path(), s) {
			t.Fatalf("%q shows %q", a.String(), s)
		}
	}
}
