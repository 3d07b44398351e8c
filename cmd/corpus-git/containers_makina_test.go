//go:build containers

package main

import "testing"

// makinaPackages are those of Debian that the projects below ask for, and a server.
const makinaPackages = "systemd,systemd-sysv,dbus,openssh-client,iproute2,git,curl,ca-certificates,procps,cron,logrotate,nginx-light," +
	"python3-venv,python3-flask,python3-gunicorn,php8.2-fpm,nodejs,openssl,postgresql,postgresql-contrib,libpq-dev"

// begin makes a project of files, as they were written for makina-states, and pushes it.
func (m *machine) begin(name, files string) {
	m.t.Helper()
	m.run(`corpus-git project create ` + name + `
corpus-git access grant ` + name + ` dev deploy
mkdir -p ` + name + `/.salt/files; cd ` + name + `
` + files + `
git init -q
git add -A
git commit -qm One
git remote add prod ssh://deploy@127.0.0.1:2222/` + name + `/project.git
git push prod master`)
}

// A project of PHP as those of the original: a site of nginx, and a pool of PHP-FPM with its socket in the project.
func TestContainerMakinaPHP(t *testing.T) {
	m := bootWith(t, makinaPackages)
	m.begin("blog", `mkdir www; echo '<?php echo "pool of ", get_current_user(), " by ", php_sapi_name(), ini_get("memory_limit"), "\n";' > www/index.php
cat > .salt/PILLAR.sample <<'FILE'
makina-projects.projectname:
  data:
    domain: blog.localhost
    www_dir: '{project_root}/www'
    fpm_sock: '/run/php/{name}.sock'
    fpm_pool:
      pool_name: '{name}'
      socket_name: '{fpm_sock}'
      fpm_user: '{user}'
      fpm_group: www-data
      memory_limit: 99M
      project_root: '{data_root}'
      open_basedir: ['{www_dir}']
FILE
cat > .salt/100_www.sls <<'FILE'
{% set cfg = opts.ms_project %}
{% set data = cfg.data %}
{% import "makina-states/services/http/nginx/init.sls" as nginx with context %}
{% import "makina-states/services/php/init.sls" as php with context %}
include:
  - makina-states.services.php.phpfpm_with_nginx
restart-all:
  cmd.run:
    - name: echo a deployment
    - watch_in:
      - mc_proxy: nginx-pre-restart-hook
      - mc_proxy: makina-php-pre-restart
{{ nginx.virtualhost(data.domain, data.www_dir, vhost_basename=cfg.name, ssl_cert='', vh_content_source='salt://makina-projects/' + cfg.name + '/files/site.conf', cfg=cfg.name) }}
{{ php.fpm_pool(data.domain, data.www_dir, cfg=cfg, **data.fpm_pool) }}
FILE
cat > .salt/files/site.conf <<'FILE'
{% set cfg = salt['mc_project.get_configuration'](salt['mc_utils.json_load'](data).cfg) %}
location / {
    include fastcgi_params;
    fastcgi_param SCRIPT_FILENAME $document_root/index.php;
    fastcgi_pass unix:{{ cfg.data.fpm_sock }};
}
FILE
`)
	m.soon(`curl -sS --fail -H 'Host: blog.localhost' http://127.0.0.1/ | grep 'pool of .* by fpm-fcgi99M'`)
	m.run(`php-fpm8.2 -t && nginx -t && systemctl is-active php8.2-fpm && ps -C php-fpm8.2 -o user= | grep -q blog-user`)

	// A pool that PHP-FPM refuses fails the push before the service is restarted, and visitors go on reading.
	m.fail(`cd blog; sed -i "s/memory_limit: 99M/fpm_pm_max_children: none/" .salt/PILLAR.sample; git commit -qam Two; git push prod master`)
	m.soon(`curl -sS --fail -H 'Host: blog.localhost' http://127.0.0.1/ | grep 'fpm-fcgi99M'`)
}

// A project of Flask as those of the original: a watcher of circus behind a site of nginx, which talks to a database of PostgreSQL.
func TestContainerMakinaFlask(t *testing.T) {
	m := bootWith(t, makinaPackages)
	m.begin("shop", `cat > app.py <<'FILE'
import os, subprocess
from flask import Flask
app = Flask(__name__)
@app.route("/")
def home():
    name = subprocess.check_output(["psql", "-XtA", "-c", "select current_user || ' of ' || current_database()"], text=True)
    return name.strip() + " " + os.environ["GREETING"] + "\n"
FILE
cat > .salt/PILLAR.sample <<'FILE'
makina-projects.projectname:
  data:
    domain: shop.localhost
    port: 8123
    db: shop
    db_password: "it's ${a} \\ secret"
FILE
cat > .salt/000_prereqs.sls <<'FILE'
{% set cfg = opts.ms_project %}
{% set data = cfg.data %}
{% import "makina-states/services/db/postgresql/init.sls" as pgsql with context %}
include:
  - makina-states.services.db.postgresql
  - makina-states.services.db.postgresql.client
{{ pgsql.postgresql_db(data.db) }}
{{ pgsql.postgresql_user(data.db, password=data.db_password, db=data.db) }}
{{ pgsql.install_pg_exts(['hstore'], db=data.db) }}
FILE
cat > .salt/600_workers.sls <<'FILE'
{% set cfg = opts.ms_project %}
{% set data = cfg.data %}
{% import "makina-states/services/monitoring/circus/macros.jinja" as circus with context %}
{% import "makina-states/services/http/nginx/init.sls" as nginx with context %}
include:
  - makina-states.services.monitoring.circus
  - makina-states.services.http.nginx
{% set watcher = {'cmd': 'python3 -m gunicorn --bind 127.0.0.1:' ~ data.port ~ ' app:app', 'uid': cfg.user, 'gid': cfg.group, 'copy_env': True, 'working_dir': cfg.project_root,
   'environment': {'GREETING': 'hello "you" 100%', 'PGHOST': '127.0.0.1', 'PGUSER': data.db, 'PGDATABASE': data.db, 'PGPASSWORD': data.db_password}, 'warmup_delay': '10', 'max_age': 86400} %}
{{ circus.circusAddWatcher(cfg.name + '-web', **watcher) }}
{{ nginx.virtualhost(domain=data.domain, doc_root=cfg.project_root, vhost_basename='corpus-' + cfg.name, ssl_cert='', cfg=cfg.name,
    vh_content_source='salt://makina-projects/' + cfg.name + '/files/site.conf') }}
FILE
cat > .salt/files/site.conf <<'FILE'
{% set cfg = salt['mc_project.get_configuration'](salt['mc_utils.json_load'](data).cfg) %}
location / { proxy_pass http://127.0.0.1:{{ cfg.data.port }}; }
FILE
`)
	const works = `curl -sS --fail -H 'Host: shop.localhost' http://127.0.0.1/ | grep -F 'shop of shop hello "you" 100%'`
	m.soon(works)
	m.run(`systemctl is-active circus-shop-web && su postgres -c "psql -XtAc 'select extname from pg_extension' shop" | grep hstore`)
	m.run(`su postgres -c "psql -XtAc \"select pg_get_userbyid(datdba) || pg_encoding_to_char(encoding) from pg_database where datname = 'shop'\"" | grep -x shop_ownersUTF8`)

	// Once more: the roles and the database are as they were, and say so; another password is set.
	m.run(`cd shop; git commit -q --allow-empty -m Two; git push prod master 2>&1 | grep '000_prereqs .*25 states: 25 unchanged'`)
	m.soon(works)
	m.run(`cd shop; sed -i 's/db_password:.*/db_password: other/' .salt/PILLAR.sample; git commit -qam Three; git push prod master`)
	m.soon(works)
	m.run(`PGPASSWORD=other psql -XtA -h 127.0.0.1 -U shop shop -c 'create table t (a int)'; ! PGPASSWORD="it's \${a} \\ secret" psql -XtA -h 127.0.0.1 -U shop shop -c 'select 1'`)
}
