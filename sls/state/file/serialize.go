package file

import (
	"errors"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
	"corpus-git/internal/vfs"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/file/formats"
)

// fileSerialize implements file.serialize for yaml, json, configparser, toml and msgpack. Source: Salt documentation, file state, serialize.
func fileSerialize(c *core.Call) core.Return {
	data, ok := c.Value("dataset")
	if key := c.Str("dataset_pillar", ""); key != "" {
		if ok {
			return core.Failf("Only one of 'dataset' and 'dataset_pillar' is permitted")
		}
		if data, ok = py.Traverse(c.Pillar, key, ":"); !ok {
			return core.Failf("Pillar %s does not exist", key)
		}
	}
	if !ok {
		return core.Failf("Neither 'dataset' nor 'dataset_pillar' was defined")
	}
	if c.Bool("serializer", false) && c.Bool("formatter", false) {
		return core.Failf("Only one of serializer and formatter are allowed")
	}
	format := strings.ToLower(c.Str("serializer", c.Str("formatter", "yaml")))
	opts := options(c, "serializer_opts")
	name := c.ExpandUser(c.Name)
	if !c.Bool("create", true) && !core.IsFile(name) {
		return core.OKf("File %s is not present and is not set for creation", name)
	}
	var changed *py.Dict // of two mappings, what differs
	if c.Bool("merge_if_exists", false) && core.IsFile(name) {
		old, fail := deserialize(c, name, format)
		if fail != "" {
			return core.Failf("%s", fail)
		}
		merged := merge(old, data)
		if old != nil && py.Equal(old, merged) {
			return core.OKf("The file %s is in the correct state", name)
		}
		od, ok1 := old.(*py.Dict)
		nd, ok2 := merged.(*py.Dict)
		if ok1 && ok2 {
			changed = dictDiff(od, nd)
		}
		data = merged
	}
	text, err := serialized(c, format, data, opts)
	if errors.Is(err, errNoSerializer) {
		return core.Failf("The %s serializer could not be found. It either does not exist or its prerequisites are not installed.", format)
	}
	if err != nil {
		return core.Failf("%s", err)
	}
	sub := *c
	sub.Args = c.Args.Copy()
	for _, k := range []string{"dataset", "dataset_pillar", "serializer", "formatter", "serializer_opts", "deserializer_opts"} {
		sub.Args.Delete(k)
	}
	sub.Args.SetStr("contents", "")
	sub.Verbatim = []byte(text)
	ret := core.Guard(fileManaged)(&sub)
	switch ret.Result {
	case core.None:
		ret.Comment = "Dataset will be serialized and stored into " + name
	case core.False: // Salt does not catch the error of an encoding here
		ret.Comment = strings.TrimPrefix(ret.Comment, "Unable to manage file: ")
	case core.True:
	}
	if changed != nil && ret.Result != core.False {
		ret.Set("diff", changed)
	}
	return ret
}

var errNoSerializer = errors.New("no such serializer")

// serialized returns the text of the file. The error's text is Salt's.
func serialized(c *core.Call, format string, data any, opts *py.Dict) (text string, err error) {
	switch format {
	case "configparser":
		var f formats.Ini
		if f, err = formats.NewIni(opts); err == nil {
			text, err = f.Write(data)
		}
		return text + "\n", err
	case "toml":
		text, err = formats.Toml(data)
		return text + "\n", err
	case "msgpack": // Salt adds no line to what is not text
		b, err := formats.Msgpack(nil, data)
		return string(b), err
	case "yaml":
		text, err = saltyaml.Dump(data, saltyaml.DumpOptions{Flow: saltyaml.BlockStyle, ASCII: !formats.Bool(opts, "allow_unicode", c.Bool("encoding", false))})
	case "json":
		o := py.JSONOptions{Pretty: true, Indent: "  ", SortKeys: formats.Bool(opts, "sort_keys", true), Unicode: !formats.Bool(opts, "ensure_ascii", false)}
		if v, has := opts.GetStr("indent"); has {
			if n, isInt := v.(int64); isInt && n >= 0 && n < 64 {
				o.Indent = strings.Repeat(" ", int(n))
			}
		}
		text, err = py.ToJSON(data, o)
	default:
		return "", errNoSerializer
	}
	if err != nil {
		return "", core.Errorf("Failed to serialize the data: %s", py.TypeName(data))
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text, nil
}

// options returns the options of a serializer. Salt accepts a list of them; for a mapping it logs a message and uses none.
func options(c *core.Call, name string) *py.Dict {
	out := py.NewDict()
	if v, _ := c.Value(name); v != nil {
		if l, ok := v.(*py.List); ok {
			for _, it := range l.Items() {
				if d, ok := it.(*py.Dict); !ok || d.Len() != 1 {
					return py.NewDict()
				}
			}
			out.Update(c.Dict(name))
		}
	}
	return out
}

// deserialize reads the contents of the file. The string is Salt's error message.
func deserialize(c *core.Call, name, format string) (any, string) {
	b, err := vfs.ReadFollowed(name, vfs.MaxRead)
	if err != nil {
		return nil, core.Cause(err)
	}
	opts := options(c, "deserializer_opts")
	refused := ""
	for _, e := range opts.Items() {
		key := py.Str(e.Key)
		switch {
		case format == "configparser" || format == "msgpack":
		case format == "yaml":
			refused = "load() got an unexpected keyword argument '" + key + "'"
		case key == "strict":
		case slices.Contains([]string{"cls", "object_hook", "parse_float", "parse_int", "parse_constant", "object_pairs_hook"}, key):
			if e.Value != nil { // a function, which no SLS file can name
				refused = "'" + py.TypeName(e.Value) + "' object is not callable"
			}
		default:
			refused = "JSONDecoder.__init__() got an unexpected keyword argument '" + key + "'"
		}
	}
	if refused != "" {
		return nil, "Failed to deserialize existing data: " + refused
	}
	var old any
	switch format {
	case "configparser":
		var f formats.Ini
		var d *py.Dict
		if f, err = formats.NewIni(opts); err == nil {
			d, err = f.Read(name, string(b))
		}
		old = d
	case "msgpack": // Salt opens the file as text
		err = core.Errorf("a bytes-like object is required, not '_io.TextIOWrapper'")
	case "json":
		old, err = py.LoadJSON(string(b), formats.Bool(opts, "strict", true))
	case "yaml":
		var doc *saltyaml.Doc
		if doc, err = saltyaml.Parse("", b, saltyaml.Options{Private: true}); err == nil {
			old = doc.Value
		}
	default:
		return nil, "merge_if_exists is not supported for the " + format + " serializer"
	}
	if err != nil {
		msg := err.Error()
		if e := (*py.Error)(nil); errors.As(err, &e) {
			msg = e.Msg
		}
		return nil, "Failed to deserialize existing data: " + msg
	}
	return old, ""
}

// merge returns the old data with the new data merged over it.
func merge(old, data any) any {
	od, ok1 := old.(*py.Dict)
	nd, ok2 := data.(*py.Dict)
	if !ok1 || !ok2 {
		return data
	}
	out := py.DeepCopy(od).(*py.Dict)
	mergeInto(out, nd)
	return out
}

// dictDiff returns the difference between two mappings. Source: Salt, salt/utils/dictdiffer.py, recursive_diff.
func dictDiff(old, new *py.Dict) *py.Dict {
	const null = "<_null_>"
	out := py.NewDict()
	for _, e := range new.Items() {
		was, ok := old.Get(e.Key)
		if !ok {
			_ = out.Set(e.Key, py.NewDict("new", e.Value, "old", null))
			continue
		}
		if py.Equal(was, e.Value) {
			continue
		}
		od, ok1 := was.(*py.Dict)
		nd, ok2 := e.Value.(*py.Dict)
		if !ok1 || !ok2 {
			_ = out.Set(e.Key, py.NewDict("new", e.Value, "old", was))
		} else if sub := dictDiff(od, nd); sub.Len() > 0 {
			_ = out.Set(e.Key, sub)
		}
	}
	for _, e := range old.Items() {
		if _, ok := new.Get(e.Key); !ok {
			_ = out.Set(e.Key, py.NewDict("new", null, "old", e.Value))
		}
	}
	return out
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
