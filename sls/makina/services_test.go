package makina_test

import (
	"crypto/tls"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/sls/compile"
	"corpus-git/sls/modules"
)

// compiled are the states of a recipe, by function and ID, in the order they run in.
func compiled(t *testing.T, recipe string) (at map[string]int, args map[string]*py.Dict) {
	t.Helper()
	in := input("app", fstest.MapFS{"app.sls": {Data: []byte(recipe), Mode: 0o644}})
	in.Opts.SetStr("ms_project", in.Cfg)
	prog, err := compile.SLS(t.Context(), in, nil)
	require.NoError(t, err)
	at, args = map[string]int{}, map[string]*py.Dict{}
	for _, s := range prog.States() {
		at[s.Function+" "+s.ID] = s.Num
	}
	for _, n := range prog.Nodes {
		args[n.Chunk.ID] = n.Chunk.Args
	}
	return at, args
}

func ordered(t *testing.T, at map[string]int, ids ...string) {
	t.Helper()
	for i, id := range ids {
		require.NotZero(t, at[id], "%s of %v", id, at)
		if i > 0 {
			require.Greater(t, at[id], at[ids[i-1]], "%s comes after %s", id, ids[i-1])
		}
	}
}

// TestPostgreSQL: the order of what is made, and a password that is in no command, no environment, and cannot end its literal.
func TestPostgreSQL(t *testing.T) {
	at, args := compiled(t, `
{% import "makina-states/services/db/postgresql/init.sls" as pgsql with context %}
include:
  - makina-states.services.db.postgresql
{{ pgsql.install_pg_ext('hstore', 'shop') }}
{{ pgsql.postgresql_user('o"brien', password="  it's; DROP TABLE x --", db='shop', createdb=False) }}
{{ pgsql.postgresql_db('shop') }}
`)
	ordered(t, at, "pkg.installed postgresql-pkgs", "service.running postgresql-service", "cmd.run 15-shop_owners-makina-postgresql-group",
		"cmd.run 15-shop-makina-postgresql-database", "cmd.run 15-shop-hstore-makina-postgresql", `cmd.run 15-o"brien-makina-services-postgresql-user`)
	user := args[`15-o"brien-makina-services-postgresql-user`]
	sql, _ := user.GetStr("stdin")
	require.Contains(t, py.Str(sql), "  it's; DROP TABLE x --\nSET log_statement TO 'none';\n")
	require.Contains(t, py.Str(sql), `ALTER ROLE :"role" PASSWORD '  it''s; DROP TABLE x --';`)
	require.Contains(t, py.Str(sql), `ALTER ROLE :"role" NOCREATEDB;`)
	for _, key := range []string{"name", "env"} {
		v, _ := user.GetStr(key)
		require.NotContains(t, py.Repr(v), "DROP")
	}
}

// TestPHP: a pool is in the configuration that is checked before PHP-FPM is restarted.
func TestPHP(t *testing.T) {
	at, _ := compiled(t, `
{% import "makina-states/services/php/init.sls" as php with context %}
{% import "makina-states/services/http/apache/init.sls" as apache with context %}
include:
  - makina-states.services.php.phpfpm_with_apache
{{ php.fpm_pool('www.example.org', '/srv/www', pool_name='app') }}
{{ php.toggle_ext('redis') }}
{{ apache.virtualhost('www.example.org', '/srv/www', ssl_cert='', server_aliases='example.org') }}
restart:
  cmd.run:
    - name: echo
    - watch_in:
      - mc_proxy: makina-apache-php-pre-restart
`)
	ordered(t, at, "pkg.installed makina-php-pkgs", "file.managed makina-php-pool-app", "cmd.run restart", "cmd.run makina-php-configuration-check",
		"service.running makina-php-service")
	ordered(t, at, "pkg.installed makina-apache-pkgs", "file.managed www_example_org-makina-apache-virtualhost", "cmd.run makina-apache-configuration-check",
		"service.running makina-apache-service")
	ordered(t, at, "cmd.run restart", "service.running makina-apache-service")
}

func TestPoolOfPHP(t *testing.T) {
	for _, c := range []struct {
		args     string
		contains []string
		without  string
	}{
		{"'www.example.org', '/srv/app/www'", []string{"[www_example_org]\n", "listen = /run/php/www_example_org.fpm.sock\n", "listen.group = www-data\n", "slowlog = /srv/app/log/slow.log\n",
			"php_admin_value[open_basedir] = /srv/app/www:/tmp:/srv/app/tmp:/srv/app/private:/srv/app/log:/srv/app/tmp/sessions\n", "php_value[session.save_handler] = files\n"}, "chroot"},
		{"'a.org', '/srv/www', socket_name='/srv/x.sock', open_basedir=['/srv/lib', '/tmp'], include_path='', memory_limit='99M', fpm_user='app'",
			[]string{"user = app\n", "listen = /srv/x.sock\n", "/srv/tmp/sessions:/srv/lib\n", "php_value[memory_limit] = 99M\n"}, "include_path"},
		{"'a.org', '/srv/www', open_basedir=[], chroot=True", []string{"chroot = /srv\n"}, "open_basedir"},
	} {
		got := rendered(t, "makina-states/files/etc/php/pool.conf", "data", "salt['mc_utils.json_dump'](salt['mc_php.fpmpool_settings']("+c.args+"))")
		for _, want := range c.contains {
			require.Contains(t, got, want)
		}
		require.NotContains(t, got, c.without)
	}
}

func TestSiteOfApache(t *testing.T) {
	got := rendered(t, "makina-states/files/etc/apache2/vhost.conf", "data",
		`salt['mc_utils.json_dump'](salt['mc_apache.vhost_settings']('www.example.org', '/srv/www', server_aliases=['a.org', 'b.org'], vhost_basename='app'))`)
	for _, want := range []string{"IncludeOptional /etc/apache2/includes/100-app-top.conf\n", "    ServerName a.org\n    ServerAlias b.org\n    Redirect permanent / http://www.example.org/\n",
		"    DocumentRoot /srv/www\n", "    Include /etc/apache2/includes/100-app.conf\n", "<VirtualHost *:443>\n", "    SSLCertificateFile /etc/ssl/apache/www.example.org_ssl_bundle.pem\n"} {
		require.Contains(t, got, want)
	}
}

// TestSlapd: the suffix is that of the installation, what is configured is so before the service restarts, and no password is in a command or in clear text.
func TestSlapd(t *testing.T) {
	at, args := compiled(t, `
include: [makina-states.services.dns.slapd]
restart:
  cmd.run:
    - name: echo
    - watch_in:
      - mc_proxy: slapd-pre-restart
`)
	ordered(t, at, "cmd.run slapd-domain", "pkg.installed slapd-packages", "service.running slapd-started", "cmd.run slapd-suffix", "file.managed slapd-settings",
		"cmd.run slapd-settings-apply", "cmd.run slapd-configuration-check", "service.running slapd-service")
	ordered(t, at, "cmd.run restart", "service.running slapd-service")
	answers, _ := args["slapd-domain"].GetStr("stdin")
	require.Equal(t, "slapd slapd/domain string sample.com\nslapd shared/organization string sample\n", answers)
	ldif, _ := args["slapd-settings"].GetStr("contents")
	require.Regexp(t, `(?m)^replace: olcRootDN\nolcRootDN: cn=admin,dc=sample,dc=com\n-\nreplace: olcRootPW\nolcRootPW: \{CRYPT\}\$6\$`, ldif)
	require.NotContains(t, py.Str(ldif), "olcSyncrepl")
}

// TestSecrets: what is generated stays the same until it is changed, and a stored key fits its certificate.
func TestSecrets(t *testing.T) {
	s := modules.New(&modules.Env{Pillar: py.NewDict(), Grains: py.NewDict(), Cfg: py.NewDict(), Opts: py.NewDict(), Passwords: passwords{}})
	get := func(fn string, path ...string) string {
		v, err := s.Call(t.Context(), fn, nil, py.NewDict())
		require.NoError(t, err)
		for _, key := range path {
			v, _ = v.(*py.Dict).GetStr(key)
		}
		return py.Str(v)
	}
	first := get("mc_redis.settings", "password")
	require.Len(t, first, 16)
	require.Equal(t, first, get("mc_redis.settings", "redis", "requirepass"))
	changed := get("mc_redis.change_password")
	require.NotEqual(t, first, changed)
	require.Equal(t, changed, get("mc_redis.settings", "password"))
	require.Equal(t, get("mc_rabbitmq.settings", "rabbitmq", "password"), get("mc_rabbitmq.settings", "password"))

	pair := func() (string, string) {
		v, err := s.Call(t.Context(), "mc_ssl.ssl_certs", []any{"a.org"}, py.NewDict())
		require.NoError(t, err)
		p := v.(*py.List).At(0).(py.Tuple)
		return py.Str(p[0]), py.Str(p[1])
	}
	cert, key := pair()
	again, _ := pair()
	require.Equal(t, cert, again)
	_, err := tls.X509KeyPair([]byte(cert), []byte(key))
	require.NoError(t, err)
}

func TestFormatResolve(t *testing.T) {
	s := modules.New(&modules.Env{Pillar: py.NewDict(), Grains: py.NewDict(), Cfg: py.NewDict(), Opts: py.NewDict()})
	v, err := s.Call(t.Context(), "mc_utils.format_resolve", []any{py.NewList("{a}/x", "{none} {", int64(1), py.NewDict("k", "{b}{b}")),
		py.NewDict("a", "{b}", "b", "c", "d", py.NewDict())}, py.NewDict())
	require.NoError(t, err)
	require.Equal(t, `['c/x', '{none} {', 1, {'k': 'cc'}]`, py.Repr(v))
}

// TestSupervisor: programs of supervisord are units of systemd, which are restarted after systemd has read them, and looked at after their startsecs.
func TestSupervisor(t *testing.T) {
	at, args := compiled(t, `
{% import "makina-states/services/monitoring/supervisor/macros.jinja" as supervisor with context %}
include:
  - makina-states.services.monitoring.supervisor
  - makina-states.services.base.cron
{{ supervisor.supervisorAddProgram('app-web', 'bin/web -b 127.0.0.1:80', user='app', startsecs=2, conf_priority='11') }}
{{ supervisor.supervisorAddProgram('app-job', command='bin/job', autostart=False) }}
build:
  cmd.run:
    - name: echo
    - watch_in:
      - mc_proxy: supervisor-pre-conf
      - mc_proxy: cron-prerestart
`)
	ordered(t, at, "cmd.run build", "file.managed supervisor-add-program-app-web", "cmd.wait supervisor-units-reload", "service.running supervisor-program-app-web",
		"cmd.run supervisor-started-program-app-web", "mc_proxy.hook supervisor-post-end")
	ordered(t, at, "pkg.installed cron-pkgs", "service.running makina-cron-service")
	ordered(t, at, "cmd.run build", "service.running makina-cron-service")
	require.NotContains(t, at, "service.running supervisor-program-app-job")
	check, _ := args["supervisor-started-program-app-web"].GetStr("name")
	require.Contains(t, py.Str(check), "sleep 2\nfor unit in supervisor-app-web; do\n")
}

func TestUnitOfAProgram(t *testing.T) {
	const file = "makina-states/files/etc/systemd/program.service"
	require.Equal(t, `# Written by corpus-git for the program web; what is changed here is lost.
[Unit]
Description=web
After=network.target

[Service]
ExecStart=/bin/sh -c "exec 'bin/web' 'web' '100%%' '$$PORT' 'a b' 'it'\\''s' 'x\"y'"
WorkingDirectory=/srv/web
User=app
UMask=022
KillSignal=SIGINT
TimeoutStopSec=10
KillMode=mixed
Environment="A=1, 2"
Environment="B=50%%"
Restart=always
RestartSec=1

[Install]
WantedBy=multi-user.target
`, rendered(t, file, "program", `salt['mc_supervisor.program']('web', 'bin/web %(program_name)s 100%% $PORT "a b" it\\\'s \'x"y\'', directory='/srv/%(program_name)s',
  user='app', stopsignal='INT', environment='A="1, 2",B=50%%', stdout_logfile='/var/log/web.log', stdout_logfile_maxbytes='1MB')`))
	got := rendered(t, file, "program", `salt['mc_supervisor.program']('q', 'bin/q %(process_num)d', numprocs=2, autorestart='unexpected', exitcodes='0,2', stopasgroup=True, environment={'A': 'x "y" %z'})`)
	for _, line := range []string{`ExecStart=/bin/sh -c "exec 'bin/q' '%i'"` + "\n", "SuccessExitStatus=0 2\n", "Restart=on-failure\n", `Environment="A=x \"y\" %%z"` + "\n"} {
		require.Contains(t, got, line)
	}
	require.NotContains(t, got, "KillMode")
}

// TestProgramsThatAreNoUnits: what a unit cannot have is an error, and never a unit that does something else.
func TestProgramsThatAreNoUnits(t *testing.T) {
	s := modules.New(&modules.Env{Pillar: py.NewDict(), Grains: py.NewDict(), Cfg: py.NewDict(), Opts: py.NewDict()})
	for _, tt := range []struct {
		name, command string
		kw            *py.Dict
		says          string
	}{
		{"w", "bin/w", py.NewDict("comand", "x"), `nothing for supervisord's option "comand"`},
		{"w", "bin/w", py.NewDict("program_type", "eventlistener"), `w is a "eventlistener" of supervisord`},
		{"w", "", py.NewDict(), "no command"},
		{"w", "bin/w 'a", py.NewDict(), "no command, or one with a quotation that does not end"},
		{"w", "bin/w %(ENV_HOME)s", py.NewDict(), "begins no expression that is known here"},
		{"w", "bin/w", py.NewDict("user", "a\nExecStart=/bin/evil"), "has a line break"},
		{"w", "bin/w", py.NewDict("environment", "A='x"), "its environment is not written as"},
		{"w", "bin/w", py.NewDict("environment", "A"), "its environment is not written as"},
		{"w", "bin/w", py.NewDict("numprocs", "many"), "numprocs must be a number from 1 to 256"},
		{"a/b", "bin/w", py.NewDict(), "a program has no name, or one with"},
	} {
		_, err := s.Call(t.Context(), "mc_supervisor.program", []any{tt.name, tt.command}, tt.kw)
		require.ErrorContains(t, err, tt.says, "%s %v", tt.command, tt.kw)
	}
	v, err := s.Call(t.Context(), "mc_supervisor.program", []any{"w", "bin/w"}, py.NewDict("numprocs", int64(2), "numprocs_start", int64(1)))
	require.NoError(t, err)
	services, _ := v.(*py.Dict).GetStr("services")
	require.Equal(t, `['supervisor-w@1', 'supervisor-w@2']`, py.Repr(services))
}
