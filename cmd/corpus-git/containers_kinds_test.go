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
