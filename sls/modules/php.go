package modules

import (
	"strings"

	"corpus-git/internal/py"
)

// addPHP adds makina-states' registry of PHP: names, paths and limits. What it has for its own formulas (configs) is
// omitted. Source: makina-states, mc_states/modules/mc_php.py; the release of PHP and the names of packages are
// those of the distribution, where makina-states fixes 7.0.
func addPHP(s table) {
	s.add("mc_php.settings", "**", func(c *call) (any, error) { return c.phpSettings(), nil })
	s.add("mc_php.get_fpm_socket_name", "project", func(c *call) (any, error) {
		name, _ := c.phpSettings().GetStr("fpm_socket_name")
		return strings.ReplaceAll(c.str("project", ""), ".", "-") + "." + py.Str(name), nil
	})
}

// phpReleases returns the releases of PHP that distributions have, oldest first.
// Source: packages.debian.org and packages.ubuntu.com, source package php-defaults.
func phpReleases() []struct{ os, release, php string } {
	return []struct{ os, release, php string }{
		{"Debian", "8", "5.6"}, {"Debian", "9", "7.0"}, {"Debian", "10", "7.3"}, {"Debian", "11", "7.4"}, {"Debian", "12", "8.2"},
		{"Debian", "13", "8.4"}, {"Ubuntu", "16.04", "7.0"}, {"Ubuntu", "18.04", "7.2"}, {"Ubuntu", "20.04", "7.4"},
		{"Ubuntu", "22.04", "8.1"}, {"Ubuntu", "24.04", "8.3"},
	}
}

// phpRelease returns the release that a distribution has; or that of the newest known one if the machine's is
// unknown.
func phpRelease(os, release string) string {
	out := "8.4"
	for _, r := range phpReleases() {
		if r.os == os && (release == r.release || strings.HasPrefix(release, r.release+".")) {
			return r.php
		}
	}
	return out
}

func (c *call) phpSettings() *py.Dict {
	d := phpDefaults()
	env, ok := c.Cfg.GetStr("env_class")
	if !ok {
		env, _ = c.Cfg.GetStr("default_env")
	}
	if env == "prod" {
		d.Update(phpProduction())
	}
	d.SetStr("php_ver", phpRelease(c.grain("os", ""), c.grain("osrelease", "")))
	if c.grain("os", "") == "Ubuntu" {
		d.SetStr("s_all", "-s ALL")
	}
	if c.grain("os_family", "") == "Debian" {
		d.SetStr("packages", phpPackages())
	}
	c.registry("makina-states.services.php", d)
	// What follows from the release, which the pillar may have chosen.
	v, _ := d.GetStr("php_ver")
	ver := py.Str(v)
	old := strings.HasPrefix(ver, "5")
	derived := py.NewDict("php_ppa_ver", ver, "use_ppa", false, "coinstallable_php", !old, "php7_onward", !old, "php56_onward", true,
		"service", "php"+ver+"-fpm", "etcdir", "/etc/php/"+ver, "confdir", "/etc/php/"+ver+"/mods-available", "logdir", "/var/log/phpfpm",
		"fpm_sockets_dir", "/var/lib/apache2/fastcgi", "disabled_fpm_services", phpOthers(ver))
	if old {
		derived.Update(py.NewDict("service", "php5-fpm", "etcdir", "/etc/php5", "confdir", "/etc/php5/mods-available", "logdir", "/var/log/php"))
	}
	d.Update(derived)
	c.registry("makina-states.services.php", d)
	return d
}

// phpOthers returns the services of other releases, which run in parallel if they are installed.
func phpOthers(ver string) *py.List {
	out := py.NewList("php-fpm")
	for _, v := range []string{"5", "5.6", "7.0", "7.1", "7.2", "7.3", "7.4", "8.0", "8.1", "8.2", "8.3", "8.4"} {
		if v != ver {
			out.Append("php" + v + "-fpm")
		}
	}
	return out
}

// phpPackages returns the packages by their contents.
func phpPackages() *py.Dict {
	d := py.NewDict("main", "php", "mod_fcgid", "libapache2-mod-fcgid", "mod_fastcgi", "libapache2-mod-fastcgi", "mod_php", "libapache2-mod-php",
		"mod_php_filter", "libapache2-mod-php", "php5_cgi", "php-cgi", "php_fpm", "php-fpm", "apc", "php-apcu", "imagemagick", "php-imagick",
		"postgresql", "php-pgsql", "sqlite", "php-sqlite3")
	for _, n := range []string{"cli", "cas", "memcache", "memcached", "mysql", "pear", "soap", "dev", "snmp", "xmlrpc", "json", "xdebug", "curl",
		"gd", "ldap", "mcrypt", "mbstring", "redis", "gmp", "sqlite3"} {
		d.SetStr(n, "php-"+n)
	}
	return d
}

// phpProduction returns what environments other than dev change.
func phpProduction() *py.Dict {
	return py.NewDict("fpm_pm_max_requests", int64(1000), "fpm_pm_max_children", int64(50), "fpm_pm_start_servers", int64(10),
		"fpm_pm_min_spare_servers", int64(10), "fpm_pm_max_spare_servers", int64(10), "modules_opcache_memory_consumption", int64(64),
		"modules_opcache_enable_file_override", int64(0), "modules_opcache_validate_timestamps", int64(1),
		"modules_opcache_revalidate_freq", int64(900), "modules_apc_shm_size", "64M", "modules_apc_stat", false,
		"modules_apc_stat_ctime", false, "modules_apc_filters", "", "modules_xdebug_install", false, "modules_xdebug_enabled", false)
}

func phpDefaults() *py.Dict {
	return py.NewDict(
		"s_all", "", "rotate", "365", "fpm_pools", py.NewDict("localhost", py.NewDict("doc_root", "/var/www/default")),
		"timezone", "Europe/Paris", "open_basedir", nil, "include_path", nil, "open_basedir_additions", "", "file_uploads", int64(1),
		"upload_max_filesize", "25000000M", "max_input_vars", int64(500), "max_input_time", int64(300), "html_errors", int64(0),
		"define_syslog_variables", int64(1), "display_errors", int64(0), "display_startup_errors", int64(0), "log_errors", int64(1),
		"error_reporting", int64(6143), "memory_limit", "256M", "max_execution_time", int64(120), "session_auto_start", int64(1),
		"allow_url_fopen", int64(0), "session_gc_maxlifetime", int64(3600), "session_gc_probability", int64(1),
		"session_gc_divisor", int64(100), "custom_sessions_enabled", false, "session_save_handler", "redis",
		"session_save_path", "tcp://127.0.0.1:6379?weight=2&timeout=2.5, tcp://10.0.0.1:6379?weight=2", "fpm_chroot", false,
		"fpm_use_socket", true, "fpm_socket_name", "fpm.sock", "fpm_listen_backlog", int64(128),
		"fpm_listen_allowed_clients", "127.0.0.1", "fpm_user", "www-data", "fpm_group", "www-data", "fpm_listen_mod", "0660",
		"fpm_statuspath", "/fpmstatus", "fpm_ping", "/ping", "fpm_pong", "pong", "fpm_pool_nice_priority", int64(-19),
		"fpm_request_terminate_timeout", "300s", "fpm_request_slowlog_timeout", "5s", "fpm_pm_max_requests", int64(500),
		"fpm_pm_max_children", int64(10), "fpm_pm_start_servers", int64(3), "fpm_pm_min_spare_servers", int64(3),
		"fpm_pm_max_spare_servers", int64(8), "fpm_clear_env", false, "opcache_install", int64(1), "opcache_enabled", int64(1),
		"opcache_enable_cli", int64(1), "opcache_memory_consumption", int64(64), "opcache_interned_strings_buffer", int64(8),
		"opcache_max_accelerated_files", int64(2000), "opcache_max_wasted_percentage", int64(5),
		"opcache_validate_timestamps", int64(1), "opcache_revalidate_freq", int64(2), "opcache_revalidate_path", int64(0),
		"opcache_use_cwd", int64(1), "opcache_save_comments", int64(1), "opcache_load_comments", int64(1),
		"opcache_fast_shutdown", int64(0), "opcache_enable_file_override", int64(1), "opcache_optimization_level", "0xffffffff",
		"opcache_blacklist_filename", "", "opcache_max_file_size", int64(0), "opcache_force_restart_timeout", int64(180),
		"opcache_error_log", "", "opcache_log_verbosity_level", int64(1), "apc_install", false, "apc_enabled", int64(0),
		"apc_enable_cli", int64(0), "apc_shm_segments", int64(1), "apc_shm_size", "32M", "apc_mmap_file_mask", "/apc.shm.XXXXXX",
		"apc_rfc1867", int64(1), "apc_include_once_override", int64(1), "apc_canonicalize", int64(1), "apc_stat", int64(1),
		"apc_stat_ctime", int64(1), "apc_num_files_hint", int64(1000), "apc_user_entries_hint", int64(1000), "apc_ttl", int64(300),
		"apc_user_ttl", int64(300), "apc_gc_ttl", int64(0), "apc_filters", "-config.php-.ini", "apc_max_file_size", "5M",
		"apc_write_lock", int64(1), "apc_file_update_protection", "2", "apc_lazy_functions", "", "apc_lazy_classes", "",
		"xdebug_install", true, "xdebug_enabled", true, "xdebug_collect_params", int64(0), "xdebug_profiler_enable", int64(0),
		"xdebug_profiler_enable_trigger", false, "xdebug_remote_enable", int64(0), "xdebug_remote_host", "localhost",
		"xdebug_profiler_output_name", "/cachegrind.out.%p",
	)
}
