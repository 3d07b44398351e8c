package state

import (
	"os"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
)

// fileSerialize implements file.serialize for yaml and json. Source: Salt documentation, file state, serialize.
func fileSerialize(c *Call) Return {
	data, ok := c.val("dataset")
	if key := c.str("dataset_pillar", ""); key != "" {
		if ok {
			return Failf("Only one of 'dataset' and 'dataset_pillar' is permitted")
		}
		if data, ok = py.Traverse(c.Pillar, key, ":"); !ok {
			return Failf("Pillar %s does not exist", key)
		}
	}
	if !ok {
		return Failf("Neither 'dataset' nor 'dataset_pillar' was defined")
	}
	format := strings.TrimSuffix(c.str("serializer", c.str("formatter", "yaml")), "ser")
	opts := py.NewDict()
	opts.Update(c.dict("serializer_opts"))
	name := c.expand(c.Name)
	if c.boolean("merge_if_exists", false) && isFile(name) {
		merged, fail := mergeExisting(name, format, data)
		if fail != "" {
			return Failf("%s", fail)
		}
		data = merged
	}
	var text string
	var err error
	switch format {
	case "yaml":
		text, err = saltyaml.Dump(data, saltyaml.DumpOptions{Flow: saltyaml.BlockStyle, ASCII: !boolOf(opts, "allow_unicode", true)})
	case "json":
		o := py.JSONOptions{Pretty: true, Indent: "  ", SortKeys: boolOf(opts, "sort_keys", true), Unicode: !boolOf(opts, "ensure_ascii", false)}
		if v, has := opts.GetStr("indent"); has {
			if n, isInt := v.(int64); isInt && n >= 0 && n < 64 {
				o.Indent = strings.Repeat(" ", int(n))
			}
		}
		text, err = py.ToJSON(data, o)
	case "plist", "python", "configparser", "toml", "ini":
		return Failf("The %s serializer is not supported by the built-in runner", format)
	default:
		return Failf("The %s serializer could not be found. It either does not exist or its prerequisites are not installed.", format)
	}
	if err != nil {
		return Failf("Failed to serialize the data: %s", py.TypeName(data))
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	sub := *c
	sub.Args = c.Args.Copy()
	for _, k := range []string{"dataset", "dataset_pillar", "serializer", "formatter"} {
		sub.Args.Delete(k)
	}
	sub.Args.SetStr("contents", text)
	ret := guard(fileManaged)(&sub)
	if ret.Result == None {
		ret.Comment = "Dataset will be serialized and stored into " + name
	}
	return ret
}

func boolOf(d *py.Dict, key string, def bool) bool {
	if v, ok := d.GetStr(key); ok {
		return py.Truth(v)
	}
	return def
}

func mergeExisting(name, format string, data any) (any, string) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, why(err)
	}
	var old any
	switch format {
	case "json":
		old, err = py.FromJSON(string(b))
	case "yaml":
		var doc *saltyaml.Doc
		if doc, err = saltyaml.Parse("", b, saltyaml.Options{Private: true}); err == nil {
			old = doc.Value
		}
	default:
		return nil, "merge_if_exists is not supported for the " + format + " serializer"
	}
	if err != nil {
		return nil, "Failed to deserialize existing data"
	}
	if old == nil {
		return data, ""
	}
	od, ok1 := old.(*py.Dict)
	nd, ok2 := data.(*py.Dict)
	if !ok1 || !ok2 {
		return data, ""
	}
	mergeInto(od, nd)
	return od, ""
}

func mergeInto(dst, src *py.Dict) {
	for _, e := range src.Items() {
		if old, ok := dst.Get(e.Key); ok {
			od, ok1 := old.(*py.Dict)
			nd, ok2 := e.Value.(*py.Dict)
			if ok1 && ok2 {
				mergeInto(od, nd)
				continue
			}
		}
		_ = dst.Set(e.Key, e.Value)
	}
}
