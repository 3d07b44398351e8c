package makina_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/compile"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/host"
	"corpus-git/sls/makina"
	"corpus-git/sls/modules"
	"corpus-git/sls/render"
)

func input(name string, files fstest.MapFS) *sls.Input {
	return &sls.Input{SLS: name, Roots: fileroot.Roots{{FS: files}, makina.Root()}, Host: host.New(execx.OS{}), Mode: sls.Static,
		Pillar: py.NewDict(), Grains: py.NewDict("os", "Debian", "os_family", "Debian", "osrelease", "12", "oscodename", "bookworm", "cpuarch", "x86_64"),
		Cfg: py.NewDict("name", "app", "env_class", "prod", "data", py.NewDict()), Opts: py.NewDict("id", "m"), Passwords: passwords{}}
}

// passwords keeps them in memory.
type passwords map[string]string

func (p passwords) Get(key string) (string, bool, error)   { v, ok := p[key]; return v, ok, nil }
func (p passwords) Put(key, secret string) (string, error) { p[key] = secret; return secret, nil }

// TestEveryFileCompiles: each file can be included alone.
func TestEveryFileCompiles(t *testing.T) {
	n := 0
	require.NoError(t, fs.WalkDir(makina.Root().FS, ".", func(p string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		if name, ok := strings.CutSuffix(p, ".sls"); ok {
			n++
			name = strings.ReplaceAll(strings.TrimSuffix(name, "/init"), "/", ".")
			prog, err := compile.SLS(t.Context(), input(name, nil), nil)
			require.NoError(t, err, name)
			require.Nil(t, prog.Deferred, name)
		}
		return nil
	}))
	require.Greater(t, n, 20)
}

// TestMacros: a site, a watcher, configuration files and a release of Node.js, as projects of the original call them; the states are in
// the order of the hooks.
func TestMacros(t *testing.T) {
	const recipe = `
{% set cfg = opts['ms_project'] %}
{% import "makina-states/services/http/nginx/init.sls" as nginx with context %}
{% import "makina-states/services/monitoring/circus/macros.jinja" as circus with context %}
{% import "makina-states/_macros/h.jinja" as h with context %}
{% import "makina-states/localsettings/nodejs/prefix/prerequisites.sls" as node with context %}
include:
  - makina-states.services.http.nginx
  - makina-states.services.monitoring.circus
  - makina-states.localsettings.nodejs
{{ nginx.virtualhost(domain='www.example.org', doc_root='/srv/www', server_aliases=['example.org'], vhost_basename='corpus-app', force_restart=True, cfg='app',
                     vh_content_source='salt://app/content.conf') }}
{{ circus.circusAddWatcher('app-web', 'bin/web -b 127.0.0.1:80', uid='app', gid='app', working_dir='/srv/app', copy_env=True, max_age=3600, environment={'A': 'x "y" %z'}) }}
{{ h.deliver_config_files({'/a.conf': {'target': '/etc/app/a.conf', 'source': 'salt://app/a.conf', 'mode': '640'}}, prefix='app-', project='app') }}
{{ node.install('20.11.1') }}
reboot:
  cmd.run:
    - name: echo
    - watch_in:
      - mc_proxy: circus-pre-conf
      - mc_proxy: nginx-pre-conf-hook
`
	in := input("app", fstest.MapFS{
		"app.sls":          {Data: []byte(recipe), Mode: 0o644},
		"app/content.conf": {Data: []byte("location / {}\n"), Mode: 0o644}, "app/a.conf": {Data: []byte("a\n"), Mode: 0o644},
	})
	in.Opts.SetStr("ms_project", in.Cfg)
	prog, err := compile.SLS(t.Context(), in, nil)
	require.NoError(t, err)
	at := map[string]int{}
	for _, s := range prog.States() {
		at[s.Function+" "+s.ID] = s.Num
	}
	order := []string{
		"pkg.installed nginx-packages", "file.managed makina-nginx-virtualhost-www_example_org", "cmd.run nginx-configuration-check",
		"cmd.wait nginx-hard-restart", "service.running nginx-service",
	}
	for i, id := range order {
		require.NotZero(t, at[id], id)
		if i > 0 {
			require.Greater(t, at[id], at[order[i-1]], "%s comes after %s", id, order[i-1])
		}
	}
	order = []string{"cmd.run reboot", "file.managed circus-add-watcher-app-web", "cmd.wait circus-units-reload", "service.running circus-watcher-app-web"}
	for i, id := range order {
		require.NotZero(t, at[id], id)
		if i > 0 {
			require.Greater(t, at[id], at[order[i-1]], "%s comes after %s", id, order[i-1])
		}
	}
	for _, id := range []string{
		"file.managed app-/a.conf", "archive.extracted npm-version-20_11_1manual", "file.symlink makina-nginx-virtualhost-corpus-app-status",
		"cmd.run makina-nginx-virtualhost-www_example_org-certificate",
	} {
		require.NotZero(t, at[id], "%s of %v", id, at)
	}
}

// rendered is a template of the tree with a variable.
func rendered(t *testing.T, file, name, expression string) string {
	in := input("app", nil)
	r := render.New(&modules.Env{Host: in.Host, Roots: in.Roots, Cfg: in.Cfg, Pillar: in.Pillar, Grains: in.Grains, Opts: in.Opts})
	src, err := fs.ReadFile(makina.Root().FS, file)
	require.NoError(t, err)
	out, err := r.Text(t.Context(), file, "{%- set "+name+" = "+expression+" -%}\n"+string(src), render.Vars(file, ""))
	require.NoError(t, err)
	return out
}

func TestUnitOfAWatcher(t *testing.T) {
	got := rendered(t, "makina-states/files/etc/systemd/watcher.service", "watcher",
		`salt['mc_circus.watcher']('web', "bin/web $PORT 100% \"a b\"", args=["it's"], uid='app', working_dir='/srv/app', stop_signal='INT', rlimit_nofile=4096, environment={'A': 'x "y" %z'})`)
	require.Equal(t, `# Written by corpus-git for the watcher web; what is changed here is lost.
[Unit]
Description=web
After=network.target

[Service]
ExecStart=/bin/sh -c "exec bin/web $$PORT 100%% \"a b\" 'it'\\''s'"
User=app
WorkingDirectory=/srv/app
KillSignal=INT
LimitNOFILE=4096
Environment="A=x \"y\" %%z"
Restart=always
RestartSec=1

[Install]
WantedBy=multi-user.target
`, got)
}

func TestSiteOfNginx(t *testing.T) {
	const file = "makina-states/files/etc/nginx/vhost.conf"
	got := rendered(t, file, "data", `salt['mc_utils.json_dump'](salt['mc_nginx.vhost_settings']('www.example.org', '/srv/www', server_aliases=['example.org'], ssl_cert=''))`)
	require.Contains(t, got, "    listen 80;\n    listen [::]:80;\n    server_name example.org;\n    return 301 $scheme://www.example.org$request_uri;\n}\n")
	require.Contains(t, got, "    root /srv/www;\n")
	require.Contains(t, got, "    include /etc/nginx/includes/www.example.org.content.conf;\n}\n")
	require.NotContains(t, got, "ssl")
	got = rendered(t, file, "data", `salt['mc_utils.json_dump'](salt['mc_nginx.vhost_settings']('a.org', '/srv/www', ssl_redirect=True, default_server=True))`)
	require.Contains(t, got, "    listen 80 default_server;\n")
	require.Contains(t, got, "    return 301 https://$host$request_uri;\n}\n")
	require.Contains(t, got, "    listen 443 ssl default_server;\n")
	require.Contains(t, got, "    ssl_certificate /etc/ssl/nginx/a.org_ssl_bundle.pem;\n    ssl_certificate_key /etc/ssl/nginx/a.org_ssl_key.pem;\n")
}

// TestWhatCannotBeWritten: values that would be other lines of a unit, or a site without its key, are errors.
func TestWhatCannotBeWritten(t *testing.T) {
	s := modules.New(&modules.Env{Pillar: py.NewDict(), Grains: py.NewDict(), Cfg: py.NewDict(), Opts: py.NewDict()})
	for _, kw := range []*py.Dict{
		py.NewDict("uid", "a\nExecStart=/bin/evil"), py.NewDict("environment", py.NewDict("A", "x\ny")), py.NewDict("args", py.NewList("a\nb")),
		py.NewDict("numprocesses", "many"),
	} {
		_, err := s.Call(t.Context(), "mc_circus.watcher", []any{"web", "bin/web"}, kw)
		require.ErrorContains(t, err, "the watcher web")
	}
	_, err := s.Call(t.Context(), "mc_nginx.vhost_settings", []any{"a.org", "/srv"}, py.NewDict("ssl_cert", "secret-cert"))
	require.ErrorContains(t, err, "a.org has ssl_cert and no ssl_key")
	require.NotContains(t, err.Error(), "secret-cert")
}
