package config_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/project/config"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

func load(t testing.TB, in config.Sources) *config.Config {
	t.Helper()
	if in.DefaultRoot == "" {
		in.DefaultRoot = "/srv"
	}
	c, err := config.Load(in)
	require.NoError(t, err)
	return c
}

func TestDefaults(t *testing.T) {
	c := load(t, config.Sources{})
	require.Equal(t, ":2222", c.Listen)
	require.Equal(t, "", c.HTTP)
	require.Equal(t, "/srv", c.Root)
	require.Equal(t, "/srv/.corpus-git", c.StateDir)
	require.Equal(t, "auto", c.Runner)
	require.Equal(t, 3, c.KeepArchives)
	require.Equal(t, 5*time.Hour, c.Deadline)
	require.Equal(t, config.Size(4<<30), c.Limits.MaxPackBytes)
	require.False(t, c.CreateOnPush)
	require.Equal(t, "default", c.Origin("listen").String())
	require.Equal(t, config.Origin{}, c.Origin("nope"))
}

func TestPrecedence(t *testing.T) {
	file := `
listen: 127.0.0.1:1
http_listen: 127.0.0.1:8080
deadline: 2h
keep_archives: 5
create_on_push: yes
file_roots: [/a, /b]
limits:
  max_pack_bytes: 1GiB
  max_commands: 7
log:
notify:
  url: https://u:s3cret@hook/x
`
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	fs.String("root", "/x", "the caller's own")
	config.AddFlags(fs)
	require.NoError(t, fs.Parse([]string{"--listen=:3", "--limits-max-commands", "9", "--store-other-branches", "--root", "/r"}))
	c := load(t, config.Sources{File: "c.yaml", Text: []byte(file),
		Env:   []string{"CORPUS_GIT_LISTEN=:2", "CORPUS_GIT_DEADLINE=3h", "CORPUS_GIT_FILE_ROOTS=/c, /d", "PATH=/bin", "CORPUS_GIT_CONFIG=c.yaml", "CORPUS_GIT_LISTN=:4"},
		Flags: config.GivenFlags(fs)})
	require.Equal(t, ":3", c.Listen)
	require.Equal(t, "--listen", c.Origin("listen").String())
	require.Equal(t, 3*time.Hour, c.Deadline)
	require.Equal(t, "CORPUS_GIT_DEADLINE", c.Origin("deadline").String())
	require.Equal(t, 5, c.KeepArchives)
	require.Equal(t, "c.yaml:5", c.Origin("keep_archives").String())
	require.True(t, c.CreateOnPush)
	require.True(t, c.StoreOtherBranches)
	require.Equal(t, []string{"/c", "/d"}, c.FileRoots)
	require.Equal(t, config.Size(1<<30), c.Limits.MaxPackBytes)
	require.Equal(t, 9, c.Limits.MaxCommands)
	require.Equal(t, "/r", c.Root)
	require.Equal(t, "/r/.corpus-git", c.StateDir)
	require.Equal(t, project.Secret("https://u:s3cret@hook/x"), c.Notify.URL)
	require.Equal(t, []string{"unknown variable CORPUS_GIT_LISTN; did you mean CORPUS_GIT_LISTEN?"}, c.Warnings)

	out := c.Print()
	require.NotContains(t, out, "s3cret")
	require.Contains(t, out, "# url: [secret]")
	require.Regexp(t, `(?m)^listen: :3 +# --listen$`, out)
	require.Regexp(t, `(?m)^  max_pack_bytes: 1GiB +# c.yaml:9$`, out)
	require.Regexp(t, `(?m)^deadline: 3h +# CORPUS_GIT_DEADLINE$`, out)

	again := load(t, config.Sources{File: "printed", Text: []byte(out)})
	diff := c.Diff(again)
	require.Len(t, diff, 1, "all but the secret is read back: %v", diff)
	require.Equal(t, config.Change{Key: "notify.url", Old: "[secret]", New: ""}, diff[0])
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ in, msg, hint string }{
		{"lisen: ':1'\n", `c.yaml:1:1: read the configuration: there is no key "lisen"`, "did you mean listen?"},
		{"a: 1\n", `there is no key "a"`, "--print-config"},
		{"\nlimits:\n  max_comands: 1\n", `c.yaml:3:3: read the configuration: there is no key "limits.max_comands"`, "did you mean limits.max_commands?"},
		{"max_commands: 1\n", `there is no key "max_commands"`, "did you mean limits.max_commands?"},
		{"limits: 1\n", "limits: must be a mapping", ""},
		{"- a\n", "must be a mapping", ""},
		{"1: a\n", "a key must be text", ""},
		{"listen: 22:22\n", "listen: must be text", "quote"},
		{"listen: nowhere\n", "listen: must be host:port", ""},
		{"listen: 'a:99999'\n", "listen: must be host:port", ""},
		{"http_url: deploy.example.org\n", "http_url: must be http://HOST or https://HOST", ""},
		{"http_url: https://deploy.example.org/corpus\n", "http_url: must be http://HOST or https://HOST", ""},
		{"http_url: https://me:secret@deploy.example.org\n", "http_url: must be http://HOST or https://HOST", ""},
		{"http_trusted_proxies: [10.0.0.1, proxy.example.org]\n", "http_trusted_proxies: item 2 must be an IP address or a network", ""},
		{"http_trusted_proxies: 10.0.0.0/33\n", "http_trusted_proxies: item 1 must be an IP address or a network", ""},
		{"http_trusted_proxies: ['::ffff:10.0.0.0/104']\n", "http_trusted_proxies: item 1 must be an IP address or a network", ""},
		{"http_listen: :443\nacme: {hosts: [deploy.example.org, 10.0.0.1]}\n", "acme.hosts: item 2 must be a full host name", ""},
		{"http_listen: :443\nacme: {hosts: ['*.example.org']}\n", "acme.hosts: item 1 must be a full host name", ""},
		{"http_listen: :443\nacme: {hosts: localhost}\n", "acme.hosts: item 1 must be a full host name", ""},
		{"acme: {hosts: deploy.example.org}\n", "c.yaml:1: acme.hosts: requires http_listen", "http_listen: :443"},
		{"http_listen: :443\nhttp_tls_cert: a\nacme: {hosts: deploy.example.org}\n", "conflicts with http_tls_cert", "remove"},
		{"acme: {ca: 'http://ca.example.org'}\n", "acme.ca: must be https://", ""},
		{"http_url: https://:8443\n", "http_url: must be http://HOST or https://HOST", ""},
		{"listen: [a]\n", "listen: must be text, not a list", ""},
		{"listen: {a: b}\n", "listen: must be text, not a mapping", ""},
		{"deadline: 5\n", "deadline: must be duration", ""},
		{"deadline: soon\n", "deadline: must be a duration such as", ""},
		{"deadline: 10ms\n", "deadline: must be at least 1s", ""},
		{"keep_archives: 0\n", "keep_archives: must be at least 1", ""},
		{"keep_archives: many\n", "keep_archives: must be a whole number", ""},
		{"keep_archives: 1.5\n", "keep_archives: must be a whole number", ""},
		{"runner: salt\n", "runner: must be one of: auto, builtin, salt-call", ""},
		{"create_on_push: 2\n", "create_on_push: must be true or false", ""},
		{"create_on_push: maybe\n", "create_on_push: must be true or false", ""},
		{"limits: {max_pack_bytes: lots}\n", "must be a size such as", ""},
		{"limits: {max_pack_bytes: -1}\n", "must be a size such as", ""},
		{"limits: {max_pack_bytes: true}\n", "must be size", ""},
		{"file_roots: [1]\n", "must be a list of texts", ""},
		{"file_roots: [rel]\n", "file_roots: item 1 must be an absolute path", ""},
		{"notify: {url: [s3cret]}\n", "notify.url: must be text, secret, not a list", ""},
		{"notify: {url: 's3cret\n", "c.yaml:2", ""},
		{"listen: :1\nlisten: :2\n", "c.yaml:2:1: read the configuration: found conflicting ID", ""},
	} {
		_, err := config.Load(config.Sources{DefaultRoot: "/srv", File: "c.yaml", Text: []byte(c.in)})
		require.ErrorContains(t, err, c.msg, c.in)
		require.Contains(t, fault.HintOf(err), c.hint, c.in)
		require.Equal(t, fault.Usage, fault.KindOf(err), c.in)
		require.NotContains(t, err.Error(), "s3cret")
	}
	_, err := config.Load(config.Sources{DefaultRoot: "/srv", Env: []string{"CORPUS_GIT_KEEP_ARCHIVES=x"}})
	require.ErrorContains(t, err, "CORPUS_GIT_KEEP_ARCHIVES: keep_archives: must be a whole number")
	_, err = config.Load(config.Sources{DefaultRoot: "/srv", Flags: map[string]string{"deadline": "x"}})
	require.ErrorContains(t, err, "--deadline: deadline: must be a duration")
	_, err = config.Load(config.Sources{})
	require.ErrorContains(t, err, "root: must not be empty")
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.AddFlags(fs)
	require.Error(t, fs.Parse([]string{"--deadline", "x"}))
}

func TestEmptyFile(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "listen:\nlimits:\n"} {
		require.Equal(t, ":2222", load(t, config.Sources{File: "c", Text: []byte(text)}).Listen)
	}
}

func TestDiff(t *testing.T) {
	a := load(t, config.Sources{})
	b := load(t, config.Sources{Flags: map[string]string{"listen": ":1", "deadline": "1h", "admin-keys": "k", "notify-url": "https://s3cret"}})
	require.Empty(t, a.Diff(a))
	require.Equal(t, []config.Change{
		{Key: "listen", Old: ":2222", New: ":1", Restart: true}, {Key: "admin_keys", Old: "", New: "k"},
		{Key: "deadline", Old: "5h", New: "1h", Restart: true}, {Key: "notify.url", Old: "", New: "[secret]"},
	}, a.Diff(b))
}

func TestSizes(t *testing.T) {
	for in, want := range map[string]config.Size{"0": 0, "1": 1, "4096": 4096, "1KiB": 1024, "1k": 1024, "1K": 1024, "2GiB": 2 << 30, "2G": 2 << 30, "2GB": 2e9, "1.5M": 3 << 19, " 3 MiB ": 3 << 20, "5B": 5, "1TiB": 1 << 40} {
		got, err := config.ParseSize(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
		back, err := config.ParseSize(got.String())
		require.NoError(t, err)
		require.Equal(t, got, back)
	}
	for _, in := range []string{"", "x", "-1", "1XB", "1e400", "9999999TiB", "0x10", "Inf", "NaN", "1_0", "GiB"} {
		_, err := config.ParseSize(in)
		require.Error(t, err, in)
	}
}

// TestDocumentation compares docs/configuration.md with the struct.
func TestDocumentation(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "configuration.md")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(page), 0o755))
		require.NoError(t, os.WriteFile(page, []byte(config.Markdown()), 0o644))
	}
	got, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, config.Markdown(), string(got), "run go test ./project/config -update")
	require.Contains(t, string(got), "CORPUS_GIT_LIMITS_MAX_PACK_BYTES")
	require.NotContains(t, strings.ReplaceAll(string(got), "| |", ""), "<br>`` ")
}

// FuzzLoad checks that no file causes a panic, and that a valid one, printed, can be loaded again.
func FuzzLoad(f *testing.F) {
	f.Add("listen: ':1'\nlimits: {max_commands: 2}\nfile_roots: [/a]\n")
	f.Add("notify: {url: x}\nlog: {level: debug}\nadmin_keys: 'ssh-ed25519 AAAA x'\n")
	f.Add("deadline: 1h30m\nlimits: {max_pack_bytes: 1.5G}\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := config.Load(config.Sources{DefaultRoot: "/srv", File: "f", Text: []byte(text)})
		if err != nil {
			return
		}
		again, err := config.Load(config.Sources{DefaultRoot: "/srv", File: "again", Text: []byte(c.Print())})
		if err != nil {
			t.Fatalf("%v\n%s", err, c.Print())
		}
		for _, d := range c.Diff(again) {
			if d.Key != "notify.url" {
				t.Fatalf("%+v", d)
			}
		}
	})
}
