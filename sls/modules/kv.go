package modules

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"corpus-git/internal/py"
)

// services is the prefix of the registry's services among the keys: services/SERVICE/INSTANCE.
const services = "services/"

// nodes is the prefix of the facts of nodes, nodes/NODE/facts/FACT. The value of this key, which is none that can be set, says why they are not there.
const nodes = "nodes/"

// hidden returns why a key, or keys with a prefix, may be absent although they are set; "" if they are not.
func hidden(all map[string]string, key string) string {
	if strings.HasPrefix(key, nodes) || strings.HasPrefix(nodes, key) {
		return all[nodes]
	}
	return ""
}

// keys returns the keys that the project sees.
func (c *call) keys() (map[string]string, error) {
	if c.KV == nil {
		return nil, nil
	}
	return c.KV(c.ctx)
}

// foreign refuses a key, or a prefix of keys, that steps of the project never see, however it is set.
func (c *call) foreign(key string) error {
	v, _ := c.Cfg.GetStr("name")
	name, ok := v.(string)
	if !ok {
		return nil
	}
	own := "projects/" + name + "/"
	for _, prefix := range []string{own, "shared/", services, nodes} {
		if strings.HasPrefix(key, prefix) || strings.HasPrefix(prefix, key) {
			return nil
		}
	}
	return fmt.Errorf("%s is no key that steps of %s can read: these are below %s , shared/ and services/ , and the facts of its nodes", key, name, own)
}

// addKV adds the functions of keys and services. A key that does not exist yet may be created before the step
// runs.
func addKV(s table) {
	s.add("kv.get", "key default?", func(c *call) (any, error) {
		all, err := c.keys()
		if err != nil {
			return nil, err
		}
		key := c.str("key", "")
		if v, ok := all[key]; ok && key != nodes {
			return v, nil
		}
		if why := hidden(all, key); why != "" {
			return nil, errors.New(why)
		}
		if err := c.foreign(key); err != nil {
			return nil, err
		}
		switch {
		case c.given("default"):
			return c.val("default"), nil
		case c.Static:
			return nil, &DeferError{Function: "kv.get of a key that is not set yet"}
		}
		return nil, fmt.Errorf("no key %s: set it with  corpus-git kv set %s VALUE , or give kv.get a default", key, key)
	})
	s.add("kv.list", "prefix?", func(c *call) (any, error) {
		all, err := c.keys()
		if why := hidden(all, c.str("prefix", "")); err == nil && why != "" {
			return nil, errors.New(why + "; give kv.list a prefix")
		}
		if err == nil {
			err = c.foreign(c.str("prefix", ""))
		}
		out := py.NewDict()
		for _, k := range slices.Sorted(maps.Keys(all)) {
			if strings.HasPrefix(k, c.str("prefix", "")) {
				out.SetStr(k, all[k])
			}
		}
		return out, err
	})
	s.add("registry.get", "service", func(c *call) (any, error) {
		all, err := c.keys()
		if err != nil {
			return nil, err
		}
		prefix := services + c.str("service", "") + "/"
		var out []any
		for _, k := range slices.Sorted(maps.Keys(all)) {
			instance, ok := strings.CutPrefix(k, prefix)
			if !ok {
				continue
			}
			v, err := py.FromJSON(all[k])
			d, is := v.(*py.Dict)
			if err != nil || !is {
				return nil, fmt.Errorf("the value of %s is not a JSON object", k)
			}
			d.SetStr("instance", instance)
			out = append(out, d)
		}
		return py.NewList(out...), nil
	})
}
