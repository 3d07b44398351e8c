package modules

import (
	"context"
	"crypto/md5"  // #nosec G501: the name of a function of makina-states
	"crypto/sha1" // #nosec G505: the same
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"strings"

	"corpus-git/internal/py"
)

// addMakinaUtils adds the small helpers of makina-states that templates call.
// Source: makina-states, mc_states/modules/mc_utils.py, mc_nodetypes.py, mc_macros.py.
func addMakinaUtils(s table) {
	s.add("mc_utils.odict", "instance?", func(c *call) (any, error) {
		class := py.NewFunc("OrderedDict", orderedDict)
		if !c.boolean("instance", true) {
			return class, nil
		}
		return class.Call(c.ctx, nil, py.NewDict())
	})
	s.add("mc_utils.deepcopy", "arg", func(c *call) (any, error) { return py.DeepCopy(c.val("arg")), nil })
	s.add("mc_utils.indent", "tstring spaces? char?", func(c *call) (any, error) {
		n, err := c.integer("spaces", 16)
		if err != nil {
			return nil, err
		}
		if n < 0 || n > 1000 {
			return nil, py.Errorf(py.ValueError, "the indentation must be between 0 and 1000")
		}
		return strings.ReplaceAll(c.str("tstring", ""), "\n", "\n"+strings.Repeat(c.str("char", " "), int(n))) + "\n", nil
	})
	s.add("mc_utils.hash", "string typ? func?", func(c *call) (any, error) {
		data := []byte(c.str("string", ""))
		switch typ := c.str("typ", "md5"); typ {
		case "md5":
			sum := md5.Sum(data) // #nosec G401
			return hex.EncodeToString(sum[:]), nil
		case "sha1":
			sum := sha1.Sum(data) // #nosec G401
			return hex.EncodeToString(sum[:]), nil
		case "sha256":
			sum := sha256.Sum256(data)
			return hex.EncodeToString(sum[:]), nil
		case "sha512":
			sum := sha512.Sum512(data)
			return hex.EncodeToString(sum[:]), nil
		default:
			return nil, py.Errorf(py.ValueError, "unknown hash %q: md5, sha1, sha256 or sha512", typ)
		}
	})
	s.add("mc_utils.format_resolve", "value original_dict? * **", func(c *call) (any, error) {
		values, ok := c.val("original_dict").(*py.Dict)
		if !ok {
			values, _ = c.val("value").(*py.Dict)
		}
		return formatResolve(c.val("value"), values, 0)
	})
	s.add("mc_utils.purge_memoize_cache", "* **", func(*call) (any, error) { return nil, nil })
	s.add("mc_macros.register", "kind name * **", func(*call) (any, error) { return "", nil })
	s.add("mc_nodetypes.is_devhost", "**", func(c *call) (any, error) {
		class, _ := c.Cfg.GetStr("env_class")
		return class == "dev", nil
	})
	s.add("mc_nodetypes.has_system_services_manager", "**", func(*call) (any, error) { return true, nil })
	for _, kind := range []string{"container", "docker", "lxc", "travis", "vagrantvm"} {
		s.add("mc_nodetypes.is_"+kind, "**", func(*call) (any, error) { return false, nil })
	}
}

// orderedDict implements collections.OrderedDict for templates: with a mapping, or with pairs.
func orderedDict(_ context.Context, args []any, kw *py.Dict) (any, error) {
	d := py.NewDict()
	d.KeepOrder()
	if len(args) > 1 {
		return nil, py.Errorf(py.TypeError, "expected at most 1 argument, got %d", len(args))
	}
	if len(args) == 1 {
		switch v := args[0].(type) {
		case *py.Dict:
			d.Update(v)
		case *py.List, py.Tuple:
			for _, pair := range items(v) {
				kv := items(pair)
				if len(kv) != 2 {
					return nil, py.Errorf(py.ValueError, "an ordered mapping is made of pairs")
				}
				if err := d.Set(kv[0], kv[1]); err != nil {
					return nil, err
				}
			}
		default:
			return nil, py.Errorf(py.TypeError, "'%s' object is not iterable", py.TypeName(v))
		}
	}
	d.Update(kw)
	return d, nil
}

func items(v any) []any {
	switch x := v.(type) {
	case *py.List:
		return x.Items()
	case py.Tuple:
		return x
	}
	return nil
}

// formatResolve replaces {key} in the strings of a value with the text of that key of values, until no known key is left.
// Source: makina-states, mc_utils.format_resolve; 100 rounds are its limit.
func formatResolve(v any, values *py.Dict, depth int) (any, error) {
	if depth > 100 {
		return nil, py.Errorf(py.ValueError, "mc_utils.format_resolve: the value is nested too deeply")
	}
	switch x := v.(type) {
	case string:
		for range 100 {
			before := x
			x = resolveKeys(x, values)
			if x == before || len(x) > 1<<20 {
				break
			}
		}
		return x, nil
	case *py.List:
		out := py.NewList()
		for _, e := range x.Items() {
			r, err := formatResolve(e, values, depth+1)
			if err != nil {
				return nil, err
			}
			out.Append(r)
		}
		return out, nil
	case *py.Dict:
		out := py.NewDict()
		for _, e := range x.Items() {
			r, err := formatResolve(e.Value, values, depth+1)
			if err != nil {
				return nil, err
			}
			if err := out.Set(e.Key, r); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// resolveKeys replaces each known {key} once; mappings and lists are kept.
func resolveKeys(s string, values *py.Dict) string {
	if values == nil {
		return s
	}
	var out strings.Builder
	for {
		i := strings.IndexByte(s, '{')
		if i < 0 {
			break
		}
		n := strings.IndexByte(s[i:], '}')
		if n < 0 {
			break
		}
		value, ok := values.GetStr(s[i+1 : i+n])
		switch value.(type) {
		case *py.Dict, *py.List:
			ok = false
		}
		if !ok {
			out.WriteString(s[:i+1])
			s = s[i+1:]
			continue
		}
		out.WriteString(s[:i] + py.Str(value))
		s = s[i+n+1:]
	}
	return out.String() + s
}
