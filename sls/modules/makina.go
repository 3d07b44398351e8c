package modules

import (
	"math/big"
	"strconv"
	"strings"

	"corpus-git/internal/py"
)

// addMakina adds the registries of makina-states that projects read and that mean something without it: the names that
// depend only on the machine. A missing key is undefined, so that a template which reads it fails and
// names it.
func addMakina(s table) {
	s.add("mc_pkgs.settings", "**", func(c *call) (any, error) {
		return c.registry("makina-states.localsettings.pkgs", c.pkgSettings()), nil
	})
	s.add("mc_apache.settings", "**", func(c *call) (any, error) {
		return c.registry("makina-states.services.http.apache", c.apacheSettings()), nil
	})
	addPHP(s)
	addMakinaHTTP(s)
	addMakinaSupervisor(s)
	addMakinaServices(s)
	addMakinaSSL(s)
	addMakinaUtils(s)
	is := func(name string, test func(v any) bool) {
		s.add("mc_utils."+name, "value", func(c *call) (any, error) { return test(c.val("value")), nil })
	}
	// Source: makina-states, mc_states/modules/mc_utils.py; as in Python a boolean is a number, too.
	is("is_a_str", func(v any) bool { _, ok := v.(string); return ok })
	is("is_a_bool", func(v any) bool { _, ok := v.(bool); return ok })
	is("is_a_int", isInt)
	is("is_a_float", func(v any) bool { _, ok := v.(float64); return ok })
	is("is_a_number", func(v any) bool { _, ok := v.(float64); return ok || isInt(v) })
	is("is_a_list", func(v any) bool { _, ok := v.(*py.List); return ok })
	is("is_a_tuple", func(v any) bool { _, ok := v.(py.Tuple); return ok })
	is("is_a_dict", func(v any) bool { _, ok := v.(*py.Dict); return ok })
	is("is_a_set", func(v any) bool { return py.TypeName(v) == "set" })
}

func isInt(v any) bool {
	switch v.(type) {
	case bool, int64, *big.Int:
		return true
	}
	return py.IsInt(v)
}

func (c *call) grain(name, def string) string {
	if v, ok := c.Grains.GetStr(name); ok && py.Truth(v) {
		return py.Str(v)
	}
	return def
}

// registry overrides a registry with values from the pillar: its mapping of that name, and its keys "name.key".
// Source: makina-states, mc_utils.defaults.
func (c *call) registry(name string, d *py.Dict) *py.Dict {
	if m, ok := c.Pillar.GetStr(name); ok {
		if m, ok := m.(*py.Dict); ok {
			Merge(d, py.DeepCopy(m).(*py.Dict), false)
		}
	}
	for _, e := range c.Pillar.Items() {
		key, ok := strings.CutPrefix(py.Str(e.Key), name+".")
		if !ok {
			continue
		}
		have, _ := d.GetStr(key)
		a, isDict := have.(*py.Dict)
		b, also := e.Value.(*py.Dict)
		if isDict && also {
			Merge(a, py.DeepCopy(b).(*py.Dict), false)
		} else {
			d.SetStr(key, py.DeepCopy(e.Value))
		}
	}
	return d
}

// pkgSettings returns the names of distributions. makina-states fixes a release for the system that the machine is not.
// Source: makina-states, mc_states/modules/mc_pkgs.py.
func (c *call) pkgSettings() *py.Dict {
	debian, ubuntu := "wheezy", "bionic"
	code := c.grain("lsb_distrib_codename", c.grain("oscodename", ""))
	dist := code
	if dist == "" {
		dist = ubuntu
	}
	ddist, udist, lts := debian, ubuntu, debian
	switch c.grain("os", "") {
	case "Ubuntu":
		lts, udist = ubuntu, dist
		for _, r := range []struct {
			from float64
			name string
		}{{20.04, "focal"}, {18.04, "bionic"}, {16.04, "xenial"}, {14.04, "trusty"}, {12.04, "precise"}} {
			if release, err := strconv.ParseFloat(c.grain("osrelease", ""), 64); err == nil && release >= r.from {
				lts, ubuntu = r.name, r.name
				break
			}
		}
	case "Debian":
		if code != "" {
			ddist = code
		}
	}
	return py.NewDict("installmode", "installed", "keyserver", "pgp.mit.edu", "dist", dist, "ddist", ddist, "udist", udist,
		"ppa_dist", udist, "lts_dist", lts, "debian_stable", debian, "ubuntu_lts", ubuntu, "ubuntu_last", "yakkety",
		"ubuntu_old_lts", "trusty", "dcomps", "main contrib non-free", "ucomps", "main restricted universe multiverse")
}

// apacheSettings returns the names and paths of Apache by family of systems.
// Source: makina-states, mc_states/modules/mc_apache.py.
func (c *call) apacheSettings() *py.Dict {
	if c.grain("os_family", "") == "RedHat" {
		return py.NewDict("httpd_user", "www-data", "packages", py.NewList("httpd"), "server", "httpd", "service", "httpd",
			"mod_wsgi", "mod_wsgi", "basedir", "/etc/httpd", "vhostdir", "/etc/httpd/conf.d", "confdir", "/etc/httpd/conf.d",
			"logdir", "/var/log/httpd", "wwwdir", "/var/www")
	}
	return py.NewDict("httpd_user", "www-data", "packages", py.NewList("apache2"), "server", "apache2", "service", "apache2",
		"mod_wsgi", "libapache2-mod-wsgi", "basedir", "/etc/apache2", "vhostdir", "/etc/apache2/sites-available",
		"ivhostdir", "/etc/apache2/includes", "evhostdir", "/etc/apache2/sites-enabled", "confdir", "/etc/apache2/conf.d",
		"logdir", "/var/log/apache2", "wwwdir", "/srv", "ssl_dir", "/etc/ssl/apache")
}
