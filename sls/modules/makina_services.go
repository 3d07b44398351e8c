package modules

import (
	"path"
	"strings"

	"corpus-git/internal/py"
)

// addMakinaServices adds the registries of services other than sites: databases, queues and their backups. Names and paths are those of the distribution;
// the set of keys is from makina-states, mc_states/modules/mc_*.py of the same name.
func addMakinaServices(s table) {
	s.add("mc_php.fpmpool_settings", "domain doc_root **", fpmPool)
	s.add("mc_apache.vhost_settings", "domain doc_root **", apacheVhost)
	s.add("mc_pgsql.settings", "**", func(c *call) (any, error) { return c.pgsqlSettings(), nil })
	s.add("mc_mysql.settings", "**", func(c *call) (any, error) {
		return c.registry("makina-states.services.db.mysql", py.NewDict("root_passwd", "", "packages", py.NewList("mariadb-server", "mariadb-client"),
			"service", "mariadb", "port", int64(3306), "sockPath", "/run/mysqld/mysqld.sock", "etcdir", "/etc/mysql/mariadb.conf.d", "datadir", "/var/lib/mysql",
			"bind_address", "127.0.0.1", "character_set", "utf8mb4", "collate", "utf8mb4_unicode_ci")), nil
	})
	s.add("mc_mongodb.settings", "**", func(c *call) (any, error) {
		return c.registry("makina-states.services.db.mongodb", py.NewDict("packages", py.NewList("mongodb-org"), "service", "mongod", "admin", "admin",
			"password", "", "mongod", py.NewDict("bind_ip", "127.0.0.1", "port", int64(27017)))), nil
	})
	s.add("mc_dbsmartbackup.settings", "**", func(c *call) (any, error) {
		return c.registry("makina-states.services.backup.dbsmartbackup", py.NewDict("types", py.NewList("mongod", "slapd", "mysql", "postgresql", "elasticsearch", "redis"),
			"url", "https://github.com/kiorky/db_smart_backup.git", "rev", "master", "location", "/srv/apps/db_smart_backup", "cron_activated", true, "cron_hour", "1",
			"cron_minute", "1", "backup_path_prefix", "/srv/backups", "dbnames", "all", "dbexclude", "", "keep_lasts", "24", "keep_days", "14", "keep_weeks", "8",
			"keep_monthes", "12", "keep_logs", "60", "owner", "root", "group", "root", "mysql_password", "")), nil
	})
	s.add("mc_java.settings", "**", func(c *call) (any, error) {
		return c.registry("makina-states.localsettings.jdk", py.NewDict("default_jdk_ver", int64(17))), nil
	})
	s.add("mc_logrotate.settings", "**", func(c *call) (any, error) {
		return c.registry("makina-states.localsettings.rotate", py.NewDict("days", "365")), nil
	})
	s.add("mc_rvm.settings", "**", func(c *call) (any, error) {
		return c.registry("makina-states.localsettings.rvm", py.NewDict("user", "root", "group", "rvm")), nil
	})
	s.add("mc_services_managers.get_service_enabled_state", "function? **", func(c *call) (any, error) {
		return strings.Contains(c.str("function", "service.running"), "running"), nil
	})
	s.put("mc_rabbitmq.settings", "**", false, rabbitmqSettings)
	s.put("mc_slapd.settings", "**", false, slapdSettings)
	s.put("mc_redis.settings", "**", false, redisSettings)
	s.put("mc_redis.change_password", "pw?", false, func(c *call) (any, error) {
		return storedPassword(c.withPassword("redis_server", c.args["pw"], true))
	})
}

// withPassword returns the call with the arguments of storedPassword.
func (c *call) withPassword(key string, value any, force bool) *call {
	out := *c
	out.args = map[string]any{"key": key, "force": force}
	if value != nil && py.Truth(value) {
		out.args["value"] = value
	}
	return &out
}

func rabbitmqSettings(c *call) (any, error) {
	d := c.registry("makina-states.services.db.rabbitmq", py.NewDict("admin", "admin", "rabbitmq", py.NewDict("admin", "admin", "password", "",
		"plugins", py.NewList("rabbitmq_management"))))
	v, _ := d.GetStr("rabbitmq")
	server, ok := v.(*py.Dict)
	if !ok {
		return nil, py.Errorf(py.TypeError, "makina-states.services.db.rabbitmq: rabbitmq must be a mapping")
	}
	if have, _ := server.GetStr("password"); have == nil || !py.Truth(have) {
		pw, err := storedPassword(c.withPassword("rabbitmq_server", nil, false))
		if err != nil {
			return nil, err
		}
		server.SetStr("password", pw)
	}
	pw, _ := server.GetStr("password")
	d.SetStr("password", pw)
	return d, nil
}

// slapdSettings returns the passwords of the two administrators, the pillar's or stored ones, and syncrepl as one line if it names a provider.
func slapdSettings(c *call) (any, error) {
	d := c.registry("makina-states.services.dns.slapd", py.NewDict("mode", "master", "pkgs", py.NewList("slapd", "ldap-utils", "ca-certificates"),
		"service_name", "slapd", "user", "openldap", "group", "openldap", "slapd_directory", "/etc/ldap/slapd.d", "SLAPD_CONF", "/etc/ldap/slapd.d",
		"SLAPD_SERVICES", "ldap:/// ldapi:///", "dn", "dc=sample,dc=com", "organization", "", "root_dn", "", "root_pw", "", "config_dn", "cn=config",
		"config_cn", "config", "config_rootdn", "cn=admin,cn=config", "config_pw", "", "loglevel", "sync", "acls", py.NewList(), "schemas", py.NewList(),
		"cert_domain", c.grain("id", ""), "s_syncrepl", "", "syncrepl", py.NewDict("rid", "001", "provider", "", "type", "refreshAndPersist", "retry", "5 5 5 +",
			"scope", "sub", "starttls", "yes", "timeout", int64(3), "interval", "00:00:04:00")))
	dn, _ := d.GetStr("dn")
	if root, _ := d.GetStr("root_dn"); root == nil || !py.Truth(root) {
		d.SetStr("root_dn", "cn=admin,"+py.Str(dn))
	}
	for _, name := range []string{"root_pw", "config_pw"} {
		if have, _ := d.GetStr(name); have != nil && py.Truth(have) {
			continue
		}
		pw, err := storedPassword(c.withPassword("slapd_"+name, nil, false))
		if err != nil {
			return nil, err
		}
		d.SetStr(name, pw)
	}
	v, _ := d.GetStr("syncrepl")
	from, ok := v.(*py.Dict)
	if !ok {
		return nil, py.Errorf(py.TypeError, "makina-states.services.dns.slapd: syncrepl must be a mapping")
	}
	if base, _ := from.GetStr("searchbase"); base == nil {
		from.SetStr("searchbase", dn)
	}
	var line []string
	for _, e := range from.Items() {
		line = append(line, py.Str(e.Key)+`="`+py.Str(e.Value)+`"`)
	}
	d.SetStr("s_syncrepl", strings.Join(line, " "))
	return d, nil
}

// redisSettings returns a password for the server: the pillar's, none if the pillar sets false, otherwise a stored one.
func redisSettings(c *call) (any, error) {
	d := c.registry("makina-states.services.db.redis", py.NewDict("service", "redis-server", "password", "",
		"redis", py.NewDict("bind", "127.0.0.1", "port", int64(6379), "requirepass", "", "masterauth", "")))
	have, _ := d.GetStr("password")
	if have != false && (have == nil || !py.Truth(have)) {
		pw, err := storedPassword(c.withPassword("redis_server", nil, false))
		if err != nil {
			return nil, err
		}
		d.SetStr("password", pw)
		have = pw
	}
	if server, _ := d.GetStr("redis"); have != false {
		if server, ok := server.(*py.Dict); ok {
			server.SetStr("requirepass", have)
			server.SetStr("masterauth", have)
		}
	}
	return d, nil
}

// pgsqlReleases returns the releases of PostgreSQL that distributions have.
// Source: packages.debian.org and packages.ubuntu.com, source package postgresql-common.
func pgsqlReleases() map[string]string {
	return map[string]string{"Debian 10": "11", "Debian 11": "13", "Debian 12": "15", "Debian 13": "17", "Ubuntu 20.04": "12", "Ubuntu 22.04": "14", "Ubuntu 24.04": "16"}
}

func (c *call) pgsqlSettings() *py.Dict {
	release, ok := pgsqlReleases()[c.grain("os", "")+" "+c.grain("osrelease", "")]
	if !ok {
		release = "17"
	}
	d := c.registry("makina-states.services.db.postgresql", py.NewDict("user", "postgres", "version", release, "defaultPgVersion", release, "encoding", "UTF8",
		"postgis_db", "postgis", "pgDbs", py.NewDict(), "postgresqlUsers", py.NewDict(), "xenial_onward", true))
	if _, ok := d.GetStr("versions"); !ok {
		v, _ := d.GetStr("defaultPgVersion")
		d.SetStr("versions", py.NewList(py.Str(v)))
	}
	return d
}

// fpmPool returns the settings of a pool of PHP-FPM: those of PHP, folders next to the document root, overridden by the caller's arguments. Source:
// makina-states, mc_php.fpmpool_settings, for the keys and for which of them add to the defaults.
func fpmPool(c *call) (any, error) {
	domain, root := c.str("domain", ""), c.str("doc_root", "")
	d := c.phpSettings()
	given := py.DeepCopy(c.kw).(*py.Dict)
	text := func(key, def string) string {
		v, ok := given.GetStr(key)
		if !ok || v == nil || py.Str(v) == "" {
			given.SetStr(key, def)
			return def
		}
		return py.Str(v)
	}
	project := text("project_root", path.Dir(root))
	pool := text("pool_name", strings.ReplaceAll(domain, ".", "_"))
	if strings.ContainsAny(pool, "/[]\n") {
		return nil, py.Errorf(py.ValueError, "the name of the pool %q has a slash, a bracket or a line break", pool)
	}
	private, logs, tmp := text("private_dir", project+"/private"), text("log_dir", project+"/log"), text("tmp_dir", project+"/tmp")
	sessions := text("sessions_dir", tmp+"/sessions")
	name, _ := d.GetStr("fpm_socket_name")
	socket := text("socket_name", strings.ReplaceAll(pool, ".", "-")+"."+py.Str(name))
	if !strings.HasPrefix(socket, "/") {
		socket = path.Join("/run/php", socket)
	}
	socket = text("listen", socket)
	text("session_cookie_domain", domain)
	text("pool_template_source", "salt://makina-states/files/etc/php/pool.conf")
	chroot, _ := given.GetStr("chroot")
	given.Update(py.NewDict("domain", domain, "doc_root", root, "docroot", root, "pool_root", project,
		"chroot", chroot != nil && py.Truth(chroot) && strings.HasPrefix(root, project+"/"), "socket_folder", "/run/php"))
	if strings.HasPrefix(socket, "/") {
		given.SetStr("socket_folder", path.Dir(socket))
	}
	given.SetStr("open_basedir", searchPath(given, "open_basedir", root, "/tmp", tmp, private, logs, sessions))
	given.SetStr("include_path", searchPath(given, "include_path", ".", "..", root, path.Join(root, "include"), "/usr/share/php"))
	user, _ := c.apacheSettings().GetStr("httpd_user")
	d.SetStr("httpd_user", user)
	Merge(d, given, false)
	return d, nil
}

// searchPath returns a list of folders as PHP reads it: the defaults and the given value of a key; a given empty value means no list at all.
func searchPath(given *py.Dict, key string, defaults ...string) string {
	v, ok := given.GetStr(key)
	if ok && (v == nil || !py.Truth(v)) {
		return ""
	}
	out, seen := defaults, map[string]bool{}
	if l, isList := v.(*py.List); isList {
		for _, p := range l.Items() {
			out = append(out, py.Str(p))
		}
	} else if ok {
		out = append(out, strings.Split(py.Str(v), ":")...)
	}
	var kept []string
	for _, p := range out {
		if p = strings.TrimSpace(p); p != "" && !seen[p] {
			kept, seen[p] = append(kept, p), true
		}
	}
	return strings.Join(kept, ":")
}

// apacheVhost returns the settings of a site of Apache. An empty ssl_cert means no TLS; without one a self-signed certificate is made.
// Source: makina-states, mc_apache.vhost_settings.
func apacheVhost(c *call) (any, error) {
	domain := c.str("domain", "")
	d := c.apacheSettings()
	const files = "salt://makina-states/files/etc/apache2/"
	given := py.DeepCopy(c.kw).(*py.Dict)
	if extra, ok := given.Pop("extra_jinja_apache_variables"); ok {
		if m, ok := extra.(*py.Dict); ok {
			given.Update(m)
		}
	}
	text := func(key, def string) string {
		if v, ok := given.GetStr(key); ok && v != nil && py.Truth(v) {
			return py.Str(v)
		}
		return def
	}
	at := func(key string) string { v, _ := d.GetStr(key); return py.Str(v) }
	base := text("vhost_basename", domain)
	file := "/" + text("number", "100") + "-" + base
	cert, hasCert := given.GetStr("ssl_cert")
	if v, ok := given.GetStr("vh_in_template_source"); ok {
		d.SetStr("vh_content_source", v)
	} else {
		d.SetStr("vh_content_source", files+"content.conf")
	}
	d.Update(py.NewDict("domain", domain, "doc_root", c.val("doc_root"), "number", "100", "serveradmin_mail", "webmaster@"+domain, "server_aliases", py.NewList(),
		"log_level", "warn", "interface", "*", "server_name", domain, "port", int64(80), "vhost_basename", base, "project", strings.ReplaceAll(base, ".", "_"),
		"ssl_interface", "*", "ssl_port", int64(443), "ssl_protocols", "all -SSLv3 -TLSv1 -TLSv1.1", "redirect_aliases", true, "allow_htaccess", false, "active", true,
		"vh_template_source", files+"vhost.conf", "vh_top_source", files+"top.conf", "ssl", !hasCert || cert == nil || py.Truth(cert),
		"ssl_cert", "", "ssl_key", "", "ssl_cacert", "", "ssl_bundle", "", "ssl_bundle_path", at("ssl_dir")+"/"+domain+"_ssl_bundle.pem",
		"ssl_key_path", at("ssl_dir")+"/"+domain+"_ssl_key.pem"))
	d.Update(given)
	d.Update(py.NewDict("ivhost", at("ivhostdir")+file, "ivhosttop", at("ivhostdir")+file+"-top", "evhost", at("evhostdir")+file, "avhost", at("vhostdir")+file))
	if aliases, _ := d.GetStr("server_aliases"); aliases != nil {
		if s, ok := aliases.(string); ok {
			var l []any
			for _, alias := range strings.Fields(s) {
				l = append(l, alias)
			}
			d.SetStr("server_aliases", py.ListOf(l))
		}
	}
	if cert != nil && py.Truth(cert) {
		if key, _ := d.GetStr("ssl_key"); key == nil || !py.Truth(key) {
			return nil, py.Errorf(py.ValueError, "the site %s has ssl_cert and no ssl_key", domain)
		}
		bundle := py.Str(cert)
		if chain, _ := d.GetStr("ssl_cacert"); chain != nil && py.Truth(chain) {
			bundle = strings.TrimRight(bundle, "\n") + "\n" + py.Str(chain)
		}
		d.SetStr("ssl_bundle", bundle)
	}
	return d, nil
}
