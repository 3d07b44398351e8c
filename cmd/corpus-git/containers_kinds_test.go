//go:build containers

package main

import (
	"strings"
	"testing"
)

// kindsPackages are those of Debian that the projects below ask for, and a server.
const kindsPackages = "systemd,systemd-sysv,dbus,openssh-client,iproute2,git,curl,ca-certificates,procps,cron,logrotate,nginx,openssl," +
	"default-jdk-headless,nodejs,postgresql,postgresql-client,libpq-dev npm"

// A project of Java as those of the original, Solr's among them: Debian's Java, a watcher of circus that runs in data/, and a site of nginx with an upstream.
func TestContainerMakinaJava(t *testing.T) {
	m := bootWith(t, kindsPackages)
	m.begin("search", `mkdir src; cat > src/Search.java <<'FILE'
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.file.*;
public class Search {
    public static void main(String[] args) throws Exception {
        String core = Files.readString(Path.of("core.properties")).trim();
        HttpServer s = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 0);
        s.createContext("/", x -> {
            byte[] out = (core + " of Java " + Runtime.version().feature() + "\n").getBytes();
            x.sendResponseHeaders(200, out.length);
            x.getResponseBody().write(out);
            x.close();
        });
        s.start();
    }
}
FILE
mkdir .salt/files/core; echo 'core {{ core }}' > .salt/files/core/core.properties
cat > .salt/PILLAR.sample <<'FILE'
makina-projects.projectname:
  data:
    domain: search.localhost
    port: 8983
    root: '{data_root}/search/root'
    start_cmd: 'java -Xmx64m -cp lib Search {0}'
    start_args: ['{port}']
FILE
cat > .salt/000_prerequisites.sls <<'FILE'
{% set cfg = opts['ms_project'] %}
{% set data = cfg.data %}
include:
  - makina-states.localsettings.jdk
{{cfg.name}}-dirs:
  file.directory:
    - names: ['{{data.root}}', '{{data.root}}/lib']
    - makedirs: true
    - user: {{cfg.user}}
  cmd.run:
    - name: javac -d {{data.root}}/lib src/Search.java
    - cwd: {{cfg.project_root}}
    - user: {{cfg.user}}
    - use_vt: true
    - require:
      - mc_proxy: makina-states-jdk_last
    - watch:
      - file: {{cfg.name}}-dirs
FILE
cat > .salt/100_conf.sls <<'FILE'
{% set cfg = opts['ms_project'] %}
core-conf:
  file.recurse:
    - source: salt://makina-projects/{{cfg.name}}/files/core
    - name: {{cfg.data.root}}
    - template: jinja
    - user: {{cfg.user}}
    - group: {{cfg.group}}
    - dir_mode: 0770
    - file_mode: 0660
    - include_empty: true
    - defaults:
        core: sample
FILE
cat > .salt/300_run.sls <<'FILE'
{% import "makina-states/services/monitoring/circus/macros.jinja" as circus  with context %}
{% import "makina-states/services/http/nginx/init.sls" as nginx %}
{% set cfg = opts['ms_project'] %}
{% set data = cfg.data %}
include:
  - makina-states.services.monitoring.circus
  - makina-states.services.http.nginx
echo restart:
  cmd.run:
    - watch_in:
      - mc_proxy: nginx-pre-restart-hook
      - mc_proxy: circus-pre-restart
{% set circus_data = {'cmd': data.start_cmd.format(*data.start_args), 'uid': cfg.user, 'gid': cfg.group, 'copy_env': True, 'working_dir': data.root,
   'warmup_delay': "30", 'max_age': 24*60*60} %}
{{ circus.circusAddWatcher(cfg.name, **circus_data) }}
{{ nginx.virtualhost(domain=data.domain, doc_root=data.root, cfg=cfg, ssl_cert='', vhost_basename="search-"+cfg.name,
      vh_top_source='salt://makina-projects/' + cfg.name + '/files/upstream', vh_content_source='salt://makina-projects/' + cfg.name + '/files/site') }}
FILE
printf 'upstream search { server 127.0.0.1:8983; }\n' > .salt/files/upstream
printf 'location / { proxy_pass http://search; }\n' > .salt/files/site
`)
	const works = `curl -sS --fail -H 'Host: search.localhost' http://127.0.0.1/ | grep -x 'core sample of Java 17'`
	m.soon(works)
	m.run(`systemctl is-active circus-search && ps -C java -o user= | grep -x search-user && nginx -t`)

	// What does not compile fails the push before anything is restarted.
	m.fail(`cd search; sed -i 's/String core/Sting core/' src/Search.java; git commit -qam Two; git push prod master`)
	m.soon(works)
}

// A project of Node.js as those of the original: npm, a program of supervisord behind a site of nginx, and a job of cron.
func TestContainerMakinaNode(t *testing.T) {
	m := bootWith(t, kindsPackages)
	m.begin("tiles", `cat > server.js <<'FILE'
const color = require('color');
require('http').createServer((q, r) => r.end(color.name + ' tiles, ' + process.env.GREETING + '\n')).listen(+process.argv[2], '127.0.0.1');
FILE
mkdir -p vendor/color; echo '{"name": "color", "version": "1.0.0"}' > vendor/color/package.json; echo "exports.name = 'blue'" > vendor/color/index.js
echo '{"name": "tiles", "version": "1.0.0", "private": true, "dependencies": {"color": "file:vendor/color"}}' > package.json
cat > .salt/PILLAR.sample <<'FILE'
makina-projects.projectname:
  data:
    domain: tiles.localhost
    port: 3000
FILE
cat > .salt/000_prereqs.sls <<'FILE'
{% set cfg = opts.ms_project %}
include:
  - makina-states.localsettings.nodejs
  - makina-states.services.base.cron
npminstall-{{cfg.name}}:
  cmd.run:
    - name: npm install --offline --no-audit --no-fund
    - cwd: {{cfg.project_root}}
    - user: {{cfg.user}}
    - env: {HOME: '{{cfg.data_root}}'}
    - use_vt: true
    - watch:
      - mc_proxy: nodejs-post-system-install
/etc/cron.d/{{cfg.name}}:
  file.managed:
    - mode: 644
    - contents: "* * * * * {{cfg.user}} date > {{cfg.data_root}}/job"
    - watch:
      - mc_proxy: cron-preconf
    - watch_in:
      - mc_proxy: cron-postconf
FILE
cat > .salt/700_reverse.sls <<'FILE'
{% set cfg = opts.ms_project %}
{% set data = cfg.data %}
{% import "makina-states/services/monitoring/supervisor/macros.jinja" as supervisor with context %}
{% import "makina-states/services/http/nginx/init.sls" as nginx with context %}
include:
  - makina-states.services.monitoring.supervisor
  - makina-states.services.http.nginx
{{ supervisor.supervisorAddProgram(cfg.name + '-ui', 'node server.js {0}'.format(data.port), directory=cfg.project_root, user=cfg.user, startsecs='2', stopsignal='INT',
     conf_priority='11', environment={'GREETING': 'hello "you" 100%'}) }}
{{ nginx.virtualhost(domain=data.domain, doc_root=cfg.project_root, vhost_basename='corpus-' + cfg.name, ssl_cert='', cfg=cfg.name,
     vh_content_source='salt://makina-projects/' + cfg.name + '/files/site.conf') }}
FILE
cat > .salt/files/site.conf <<'FILE'
{% set cfg = salt['mc_project.get_configuration'](salt['mc_utils.json_load'](data).cfg) %}
location / { proxy_pass http://127.0.0.1:{{ cfg.data.port }}; }
FILE
`)
	const works = `curl -sS --fail -H 'Host: tiles.localhost' http://127.0.0.1/ | grep -xF 'blue tiles, hello "you" 100%'`
	m.soon(works)
	m.run(`systemctl is-active supervisor-tiles-ui cron && systemctl is-enabled supervisor-tiles-ui && ps -C node -o user= | grep -x tiles-user && test -e /etc/cron.d/tiles`)

	// A program that does not stay up for its startsecs fails the push, and the old one runs again.
	said := m.fail(`cd tiles; echo 'process.exit(1)' >> server.js; git commit -qam Two; git push prod master`)
	if !strings.Contains(said, "did not stay up for 2 s") {
		t.Errorf("said:\n%s", said)
	}
	m.soon(works)
	m.run(`cd tiles; git reset -q --hard HEAD^; sed -i "s/ tiles, / green tiles, /" server.js; git commit -qam Three; git push prod master`)
	m.soon(`curl -sS --fail -H 'Host: tiles.localhost' http://127.0.0.1/ | grep '^blue green'`)
}

// A static site as those of the original, copied to where nginx reads it, with a part for people with a password; and a project that only has PostgreSQL's
// client, and writes what a database says to its own site.
func TestContainerMakinaStatic(t *testing.T) {
	m := bootWith(t, kindsPackages)
	m.begin("www", `mkdir www; echo 'site one' > www/index.html; echo hidden > www/private.html
cat > .salt/PILLAR.sample <<'FILE'
makina-projects.projectname:
  data:
    domain: www.localhost
    doc_root: '{data_root}/www'
    htaccess: '/etc/nginx/{name}.htpasswd'
    http_users: [{root: 'a secret'}]
FILE
cat > .salt/000_prereqs.sls <<'FILE'
{% set cfg = opts.ms_project %}
{% set data = cfg.data %}
{{cfg.name}}-www-data:
  user.present:
    - name: www-data
    - optional_groups: [{{cfg.group}}]
    - remove_groups: false
    - system: true
{{cfg.name}}-dirs:
  file.directory:
    - makedirs: true
    - user: {{cfg.user}}
    - group: {{cfg.group}}
    - names: ['{{data.doc_root}}']
    - watch:
      - user: {{cfg.name}}-www-data
{{cfg.name}}-sync-docroot:
  cmd.run:
    - name: cp -r {{cfg.project_root}}/www/. {{data.doc_root}}/
    - use_vt: true
    - watch:
      - file: {{cfg.name}}-dirs
FILE
cat > .salt/700_nginx.sls <<'FILE'
{% import "makina-states/services/http/nginx/init.sls" as nginx %}
{% set cfg = opts.ms_project %}
{% set data = cfg.data %}
include:
  - makina-states.services.http.nginx
{{ nginx.virtualhost(domain=data.domain, doc_root=data.doc_root, force_restart=True, server_aliases=['static.localhost'], vhost_basename='corpus-'+cfg.name, ssl_cert='',
                     vh_content_source='salt://makina-projects/' + cfg.name + '/files/site.conf', cfg=cfg) }}
{{cfg.name}}-htaccess:
  file.managed:
    - name: {{data.htaccess}}
    - source: ''
    - user: www-data
    - group: www-data
    - mode: 770
    - watch_in:
      - mc_proxy: nginx-post-conf-hook
{% for row in data.http_users %}
{% for user, passwd in row.items() %}
{{cfg.name}}-{{user}}-htaccess:
  webutil.user_exists:
    - name: {{user}}
    - password: {{passwd}}
    - htpasswd_file: {{data.htaccess}}
    - options: m
    - force: true
    - watch:
      - file: {{cfg.name}}-htaccess
    - watch_in:
      - mc_proxy: nginx-post-conf-hook
{% endfor %}
{% endfor %}
FILE
cat > .salt/files/site.conf <<'FILE'
{% set cfg = salt['mc_utils.json_load'](data).cfg %}
location / { index index.html; }
location = /private.html { auth_basic "private"; auth_basic_user_file {{ cfg.data.htaccess }}; }
FILE
`)
	const works = `curl -sS --fail -L --resolve static.localhost:80:127.0.0.1 --resolve www.localhost:80:127.0.0.1 http://static.localhost/ | grep -x 'site one'`
	m.soon(works)
	m.run(`nginx -t && ! curl -sS --fail -H 'Host: www.localhost' http://127.0.0.1/private.html && curl -sS --fail -u 'root:a secret' -H 'Host: www.localhost' http://127.0.0.1/private.html | grep hidden`)
	m.fail(`cd www; echo 'tri_files no;' >> .salt/files/site.conf; git commit -qam Two; git push prod master`)
	m.soon(works)
	m.run(`nginx -t; cd www; git reset -q --hard HEAD^; echo 'site three' > www/index.html; git commit -qam Three; git push prod master`)
	m.soon(`curl -sS --fail -H 'Host: www.localhost' http://127.0.0.1/ | grep -x 'site three'`)

	m.run(`su postgres -c "psql -Xqc \"create role report login password 'it is open'\" && createdb -O report report"
PGPASSWORD='it is open' psql -Xqh 127.0.0.1 -U report report -c "create table sales (n int); insert into sales values (3), (4)"`)
	m.begin("report", `cat > .salt/PILLAR.sample <<'FILE'
makina-projects.projectname:
  data:
    domain: report.localhost
    doc_root: '{data_root}/www'
    db: {PGHOST: 127.0.0.1, PGUSER: report, PGDATABASE: report, PGPASSWORD: it is open}
    query: select 'sold ' || sum(n) from sales
FILE
cat > .salt/000_prereqs.sls <<'FILE'
{% set cfg = opts.ms_project %}
{% set data = cfg.data %}
include:
  - makina-states.services.db.postgresql.client
report-www-data:
  user.present:
    - name: www-data
    - optional_groups: [{{cfg.group}}]
    - remove_groups: false
    - system: true
report-dirs:
  file.directory:
    - names: ['{{data.doc_root}}']
    - user: {{cfg.user}}
    - group: {{cfg.group}}
report-page:
  cmd.run:
    - name: psql -XtA -v ON_ERROR_STOP=1 -o {{data.doc_root}}/index.html -c "{{data.query}}"
    - user: {{cfg.user}}
    - env: {{ data.db | json }}
    - require:
      - mc_proxy: makina-postgresql-postpkg
      - file: report-dirs
FILE
cat > .salt/700_nginx.sls <<'FILE'
{% import "makina-states/services/http/nginx/init.sls" as nginx with context %}
{% set cfg = opts.ms_project %}
include:
  - makina-states.services.http.nginx
{{ nginx.virtualhost(domain=cfg.data.domain, doc_root=cfg.data.doc_root, force_restart=True, vhost_basename='corpus-' + cfg.name, ssl_cert='', cfg=cfg,
                     vh_content_source='salt://makina-projects/' + cfg.name + '/files/site.conf') }}
FILE
echo 'location / { index index.html; }' > .salt/files/site.conf
`)
	m.soon(`curl -sS --fail -H 'Host: report.localhost' http://127.0.0.1/ | grep -x 'sold 7'`)
	said := m.fail(`cd report; sed -i 's/from sales/from seals/' .salt/PILLAR.sample; git commit -qam Two; git push prod master`)
	if !strings.Contains(said, `relation "seals" does not exist`) || strings.Contains(said, "it is open") {
		t.Errorf("said:\n%s", said)
	}
	m.soon(`curl -sS --fail -H 'Host: report.localhost' http://127.0.0.1/ | grep -x 'sold 7'`)
}
