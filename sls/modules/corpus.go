package modules

import (
	"crypto/rand"
	"errors"
	"math/big"
	"strings"

	"corpus-git/internal/crypt3"
	"corpus-git/internal/py"
)

// addCorpus adds what makina-states provides to projects.
func addCorpus(s table) {
	cfg := func(c *call) (any, error) { return c.project() }
	s.add("mc_project.get_configuration", "name * **", cfg)
	s.add("mc_project_2.get_configuration", "name * **", cfg)
	for _, m := range []string{"mc_project", "mc_project_2"} {
		s.add(m+".get_configuration_item", "project item? **", configurationItem)
	}
	s.add("mc_locations.settings", "**", func(c *call) (any, error) { return c.locations(), nil })
	s.add("mc_salt.settings", "**", func(c *call) (any, error) { return c.saltSettings(), nil })
	// Source: makina-states, mc_states/modules/mc_usergroup.py, get_default_groups.
	s.add("mc_usergroup.settings", "**", func(c *call) (any, error) {
		get := func(key, def string) any {
			if v, ok := c.Pillar.GetStr("makina-states.localsettings.filesystem." + key); ok {
				return v
			}
			return def
		}
		return py.NewDict("group", get("group", "editor"), "groupId", get("group_id", "65753")), nil
	})
	dump := func(c *call) (any, error) {
		return jsonDump(c.val("data"), c.boolean("pretty", false))
	}
	load := func(c *call) (any, error) {
		return py.FromJSON(strings.ReplaceAll(c.str("data", ""), jsonNewline, "\n"))
	}
	for _, m := range []string{"mc_utils", "mc_dumper"} {
		s.add(m+".json_dump", "data pretty? * **", dump)
		s.add(m+".json_load", "data * **", load)
		s.add(m+".yaml_load", "data * **", func(c *call) (any, error) { return loadYAML(c.str("data", "")) })
		s.add(m+".yaml_dump", "data flow? nonewline? * **", func(c *call) (any, error) { return dumpYAML(c.val("data"), c.boolean("flow", false)) })
	}
	s.add("mc_utils.dictupdate", "dict1 dict2", func(c *call) (any, error) {
		a, ok1 := c.val("dict1").(*py.Dict)
		b, ok2 := c.val("dict2").(*py.Dict)
		if !ok1 || !ok2 {
			return nil, py.Errorf(py.TypeError, "mc_utils.dictupdate needs two dicts")
		}
		Merge(a, b, false)
		return a, nil
	})
	s.add("mc_utils.uniquify", "seq", func(c *call) (any, error) {
		out := py.NewList()
		l, ok := c.val("seq").(*py.List)
		if !ok {
			return nil, py.Errorf(py.TypeError, "mc_utils.uniquify needs a list")
		}
		for _, v := range l.Items() {
			dup := false
			for _, w := range out.Items() {
				dup = dup || py.Equal(v, w)
			}
			if !dup {
				out.Append(v)
			}
		}
		return out, nil
	})
	s.add("mc_utils.get", "key default? * **", func(c *call) (any, error) { return c.config(), nil })
	s.add("mc_utils.magicstring", "thestr", func(c *call) (any, error) { return c.str("thestr", ""), nil })
	s.add("mc_utils.yencode", "string", func(c *call) (any, error) { return c.str("string", ""), nil })
	s.add("mc_utils.unix_crypt", "passwd", func(c *call) (any, error) {
		hash, ok := crypt3.Hash(c.str("passwd", ""), "$6$SALTsalt")
		if !ok {
			return nil, nil
		}
		return hash, nil
	})
	s.put("mc_utils.generate_stored_password", "key length? force? value?", false, storedPassword)
	s.live("mc_utils.generate_password", "length?", func(c *call) (any, error) { return c.password() })
}

// jsonNewline stands for a line feed in what mc_utils.json_dump writes, so that it fits on one line of YAML.
const jsonNewline = " ---ANTLISLASH_N--- "

func jsonDump(v any, pretty bool) (any, error) {
	if pretty {
		return py.ToJSON(v, py.JSONOptions{Pretty: true, Indent: "    "})
	}
	s, err := py.ToJSON(v, py.JSONOptions{})
	if err != nil {
		return nil, err
	}
	return strings.ReplaceAll(s, "\n", jsonNewline), nil
}

// project returns the configuration of the project itself, as a reference: what a template changes in it stays changed. The
// configuration of another project is not known here.
func (c *call) project() (any, error) {
	name, _ := c.Cfg.GetStr("name")
	if c.Cfg == nil || py.Str(name) != c.str("name", "") {
		return nil, py.Errorf(py.RuntimeError, "%s: the configuration of another project cannot be read", c.name)
	}
	return c.Cfg, nil
}

// configurationItem returns one key of cfg, otherwise of its data, None if neither has it; without a key all of cfg.
// Source: makina-states, mc_states/modules/mc_project_2.py, get_configuration_item.
func configurationItem(c *call) (any, error) {
	c.args["name"] = c.args["project"]
	v, err := c.project()
	if err != nil {
		return nil, err
	}
	cfg := v.(*py.Dict)
	if !c.given("item") {
		return py.NewDict("item", cfg, "cfg", cfg, "key", "cfg"), nil
	}
	key := c.val("item")
	item, ok, err := cfg.Lookup(key)
	if data, _ := cfg.GetStr("data"); err == nil && !ok {
		if d, isDict := data.(*py.Dict); isDict {
			item, _, err = d.Lookup(key)
		}
	}
	if err != nil {
		return nil, err
	}
	return py.NewDict("item", item, "cfg", cfg, "key", key), nil
}

// saltSettings returns the paths of Salt that projects read, by the names of both releases of makina-states.
func (c *call) saltSettings() *py.Dict {
	at, out := c.locations(), py.NewDict()
	for _, key := range []string{"prefix", "msr", "salt_root", "pillar_root", "projects_dir"} {
		v, _ := at.GetStr(key)
		out.SetStr(key, v)
	}
	v, _ := at.GetStr("salt_root")
	msr, _ := at.GetStr("msr")
	out.SetStr("saltRoot", v)
	out.SetStr("c", py.NewDict("o", py.NewDict("saltRoot", v, "msr", msr)))
	return out
}

// locations returns makina-states' paths, as far as they mean something without it.
// Source: makina-states, mc_states/modules/mc_locations.py.
func (c *call) locations() *py.Dict {
	d := py.NewDict(
		"root_dir", "/", "bin_dir", "/usr/bin", "conf_dir", "/etc", "docker_root", "", "home_dir", "/home",
		"initd_dir", "/etc/init.d", "root_home_dir", "/root", "rvm_prefix", "/usr/local", "rvm_path", "/usr/local/rvm",
		"rvm", "/usr/local/rvm/bin/rvm", "sbin_dir", "/usr/sbin", "share_dir", "/usr/share", "srv_dir", "/srv",
		"sysadmins_home_dir", "/home", "tmp_dir", "/tmp", "upstart_dir", "/etc/init", "users_home_dir", "/home/users",
		"usr_dir", "/usr", "var_dir", "/var", "var_lib_dir", "/var/lib", "var_log_dir", "/var/log", "var_run_dir", "/var/run",
		"var_spool_dir", "/var/spool", "var_tmp_dir", "/var/tmp", "lxc_root", "", "prefix", "/srv", "msr", "/srv/makina-states",
		"ms", "/srv/makina-states", "pillar_root", "/srv/pillar", "vms_docker_root", "/srv/docker", "apps_dir", "/srv/apps",
		"projects_dir", "/srv/projects", "remote_projects_dir", "/srv/remote_projects", "salt_root", "/srv/salt",
		"makina_states", "/srv/salt/makina-states", "resetperms", "/srv/makina-states/_scripts/reset-perms.py",
		"venv", "/srv/makina-states/venv", "venv_path", "/srv/makina-states/venv",
		"cops", "/srv/corpusops/corpusops.bootstrap",
	)
	d.Update(c.Locations)
	return d
}

// storedPassword generates a secret once per key. The storage decides when a new one becomes durable.
func storedPassword(c *call) (any, error) {
	if c.Passwords == nil {
		return nil, errors.New(c.name + ": there is no place to keep passwords")
	}
	key := c.str("key", "")
	if v, ok := c.args["value"]; ok && v != nil {
		return c.Passwords.Put(key, py.Str(v))
	}
	if !c.boolean("force", false) {
		old, ok, err := c.Passwords.Get(key)
		if err != nil {
			return nil, err
		}
		if ok && old != "" {
			return old, nil
		}
	}
	pw, err := c.password()
	if err != nil {
		return nil, err
	}
	return c.Passwords.Put(key, pw)
}

func (c *call) password() (string, error) {
	n, err := c.integer("length", 16)
	if err != nil {
		return "", err
	}
	if n < 1 || n > 1024 {
		return "", py.Errorf(py.ValueError, "the length of a password must be between 1 and 1024")
	}
	return randomString(int(n), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
}

func randomString(n int, letters string) (string, error) {
	out := make([]byte, n)
	for i := range out {
		k, err := rand.Int(rand.Reader, big.NewInt(int64(len(letters))))
		if err != nil {
			return "", err
		}
		out[i] = letters[k.Int64()]
	}
	return string(out), nil
}
