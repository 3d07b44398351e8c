package modules

import (
	"strconv"
	"strings"

	"corpus-git/internal/py"
)

// addMakinaHTTP adds the registries and helpers of sites: nginx, and the processes behind it.
func addMakinaHTTP(s table) {
	s.add("mc_nginx.settings", "**", func(c *call) (any, error) { return c.nginxSettings(), nil })
	s.add("mc_nginx.vhost_settings", "domain doc_root **", nginxVhost)
	s.add("mc_circus.settings", "**", func(c *call) (any, error) {
		return c.registry("makina-states.services.monitoring.circus", py.NewDict("location", "/etc/systemd/system", "logdir", "/var/log/circus")), nil
	})
	s.add("mc_circus.watcher", "name cmd **", circusWatcher)
	s.add("mc_nodejs.settings", "**", func(c *call) (any, error) {
		return c.registry("makina-states.localsettings.nodejs", py.NewDict("location", "/srv/apps/node", "mirror", "https://nodejs.org/dist", "packages", py.NewList("nodejs", "npm"))), nil
	})
	s.add("mc_www.settings", "**", func(c *call) (any, error) {
		return c.registry("makina-states.services.http.www", py.NewDict("doc_root", "/var/www/html", "socket_directory", "/run/php", "serveradmin_mail", "webmaster@localhost")), nil
	})
}

// nginxSettings returns the names and paths of nginx in Debian.
// Source: makina-states, mc_states/modules/mc_nginx.py, for which keys there are.
func (c *call) nginxSettings() *py.Dict {
	const files = "salt://makina-states/files/etc/nginx/"
	return c.registry("makina-states.services.http.nginx", py.NewDict(
		"basedir", "/etc/nginx", "service", "nginx", "package", "nginx", "packages", py.NewList("nginx", "openssl"), "user", "www-data",
		"logdir", "/var/log/nginx", "doc_root", "/var/www/html", "ssl_dir", "/etc/ssl/nginx", "remove_default_site", true,
		"http_port", "80", "ssl_port", "443", "ssl_protocols", "TLSv1.2 TLSv1.3", "ssl_ciphers", "", "ssl_redirect", false,
		"ssl_cacert_first", false, "ssl_session_cache", "shared:SSL:10m", "ssl_session_timeout", "10m", "loglevel", "crit",
		"default_activation", true, "vhost_wrapper_template", files+"vhost.conf", "vhost_top_template", files+"top.conf",
		"vhost_content_template", files+"content.conf",
	))
}

// nginxVhost returns the settings of a site: those of nginx, the defaults of a site, overridden by the caller's arguments. An empty ssl_cert
// means no TLS; without one a self-signed certificate is made.
// Source: makina-states, mc_states/modules/mc_nginx.py, vhost_settings.
func nginxVhost(c *call) (any, error) {
	domain, root := c.str("domain", ""), c.val("doc_root")
	given := py.DeepCopy(c.kw).(*py.Dict)
	if extra, ok := given.Pop("extra"); ok {
		if m, ok := extra.(*py.Dict); ok {
			given.Update(m)
		}
	}
	d := c.nginxSettings()
	base, _ := d.GetStr("basedir")
	text := func(key, def string) string {
		if v, ok := given.GetStr(key); ok && v != nil && py.Truth(v) {
			return py.Str(v)
		}
		return def
	}
	of := func(key string) any { v, _ := d.GetStr(key); return v }
	name := text("vhost_basename", domain)
	common := text("ssl_common_name", domain)
	dir, tls := py.Str(of("ssl_dir")), true
	if cert, ok := given.GetStr("ssl_cert"); ok && cert != nil && !py.Truth(cert) {
		tls = false
	}
	d.Update(py.NewDict(
		"small_name", strings.NewReplacer(".", "_", "-", "_", "*", "star").Replace(domain), "vhost_basename", name,
		"vhost_available_file", py.Str(base)+"/sites-available/"+name+".conf",
		"vhost_content_file", py.Str(base)+"/includes/"+name+".content.conf",
		"vhost_top_file", py.Str(base)+"/includes/"+name+".top.conf",
		"with_include_sls_statement", false, "includes", py.NewList(), "redirect_aliases", true, "force_reload", true, "force_restart", false,
		"domain", domain, "server_name", domain, "doc_root", root, "http2", false, "active", of("default_activation"), "default_server", false,
		"server_aliases", nil, "vh_top_source", of("vhost_top_template"), "vh_template_source", of("vhost_wrapper_template"),
		"vh_content_source", of("vhost_content_template"), "ssl", tls, "ssl_common_name", common, "ssl_cert", "", "ssl_key", "", "ssl_bundle", "",
		"ssl_cacert", "", "ssl_bundle_path", dir+"/"+common+"_ssl_bundle.pem", "ssl_key_path", dir+"/"+common+"_ssl_key.pem",
		"ssl_cert_path", dir+"/"+common+"_ssl_cert.pem", "ssl_cacert_path", dir+"/"+common+"_ssl_cacert.pem",
	))
	d.Update(given)
	if cert, _ := d.GetStr("ssl_cert"); cert != nil && py.Truth(cert) {
		if b, _ := d.GetStr("ssl_bundle"); b == nil || !py.Truth(b) {
			parts := []string{"ssl_cert", "ssl_cacert"}
			if first, _ := d.GetStr("ssl_cacert_first"); first != nil && py.Truth(first) {
				parts = []string{"ssl_cacert", "ssl_cert"}
			}
			var bundle strings.Builder
			for _, k := range parts {
				if v, _ := d.GetStr(k); v != nil && py.Truth(v) {
					bundle.WriteString(strings.TrimRight(py.Str(v), "\n") + "\n")
				}
			}
			d.SetStr("ssl_bundle", bundle.String())
		}
		if key, _ := d.GetStr("ssl_key"); key == nil || !py.Truth(key) {
			return nil, py.Errorf(py.ValueError, "the site %s has ssl_cert and no ssl_key", domain)
		}
	}
	// Templates of projects read data.extra and data.data, too.
	plain := py.DeepCopy(d).(*py.Dict)
	d.SetStr("extra", plain)
	d.SetStr("data", py.DeepCopy(plain))
	return d, nil
}

// circusWatcher returns a watcher of circus as a unit of systemd. Source: circus' documentation, "Configuration", watcher:NAME; systemd.exec(5),
// systemd.service(5) for the equivalents.
func circusWatcher(c *call) (any, error) {
	name, cmd := c.str("name", ""), strings.TrimSpace(c.str("cmd", ""))
	given := func(keys ...string) (string, bool) {
		for _, k := range keys {
			if v, ok := c.kw.GetStr(k); ok && v != nil && py.Str(v) != "" {
				return py.Str(v), true
			}
		}
		return "", false
	}
	if args, ok := c.kw.GetStr("args"); ok && args != nil {
		if l, ok := args.(*py.List); ok {
			for _, a := range l.Items() {
				cmd += " '" + strings.ReplaceAll(py.Str(a), "'", `'\''`) + "'"
			}
		} else {
			cmd += " " + py.Str(args)
		}
	}
	var options, environment []any
	option := func(directive string, keys ...string) {
		if v, ok := given(keys...); ok {
			options = append(options, py.NewList(directive, strings.ReplaceAll(v, "%", "%%")))
		}
	}
	option("User", "uid")
	option("Group", "gid")
	option("WorkingDirectory", "working_dir")
	option("TimeoutStopSec", "graceful_timeout")
	option("RuntimeMaxSec", "max_age")
	option("KillSignal", "stop_signal")
	for _, limit := range []string{"nofile", "nproc", "core", "as", "memlock", "stack", "data", "fsize", "cpu"} {
		option("Limit"+strings.ToUpper(limit), "rlimit_"+limit)
	}
	for _, key := range []string{"environment", "env"} {
		v, _ := c.kw.GetStr(key)
		m, ok := v.(*py.Dict)
		if !ok {
			continue
		}
		for _, e := range m.Items() {
			environment = append(environment, unitQuote(py.Str(e.Key)+"="+py.Str(e.Value), false))
		}
	}
	unit, services := "circus-"+name+".service", []any{"circus-" + name}
	if n, ok := given("numprocesses"); ok && n != "1" {
		count, err := strconv.Atoi(n)
		if err != nil || count < 1 || count > 256 {
			return nil, py.Errorf(py.ValueError, "numprocesses of the watcher %s must be a number from 1 to 256", name)
		}
		unit, services = "circus-"+name+"@.service", nil
		for i := range count {
			services = append(services, "circus-"+name+"@"+strconv.Itoa(i+1))
		}
	}
	for _, line := range append([]string{name, cmd}, texts(options, environment)...) {
		if strings.ContainsAny(line, "\n\r\x00") {
			return nil, py.Errorf(py.ValueError, "the watcher %s has a line break in its command, options or environment", name)
		}
	}
	return py.NewDict("name", name, "file", "/etc/systemd/system/"+unit, "services", py.ListOf(services),
		"exec", "/bin/sh -c "+unitQuote("exec "+cmd, true), "environment", py.ListOf(environment), "options", py.ListOf(options)), nil
}

func texts(options, environment []any) []string {
	var out []string
	for _, o := range options {
		out = append(out, py.Str(o.(*py.List).Items()[1]))
	}
	for _, e := range environment {
		out = append(out, py.Str(e))
	}
	return out
}

// unitQuote returns a word of a line of a unit; in commands a dollar sign is doubled. Source: systemd.syntax(7), systemd.service(5).
func unitQuote(s string, command bool) string {
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(s)
	if command {
		s = strings.ReplaceAll(s, "$", "$$")
	}
	return `"` + s + `"`
}
