package modules

import (
	"errors"
	"fmt"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
)

// addSlsutil adds the functions of the module slsutil that process data.
func addSlsutil(s table) {
	s.add("slsutil.merge", "obj_a obj_b strategy? renderer? merge_lists?", func(c *call) (any, error) {
		a, ok1 := py.DeepCopy(c.val("obj_a")).(*py.Dict)
		b, ok2 := c.val("obj_b").(*py.Dict)
		if !ok1 || !ok2 {
			return nil, py.Errorf(py.TypeError, "slsutil.merge() needs two dicts")
		}
		Merge(a, py.DeepCopy(b).(*py.Dict), c.boolean("merge_lists", false))
		return a, nil
	})
	s.add("slsutil.update", "dest upd recursive_update? merge_lists?", func(c *call) (any, error) {
		a, ok1 := c.val("dest").(*py.Dict)
		b, ok2 := c.val("upd").(*py.Dict)
		if !ok1 || !ok2 {
			return nil, py.Errorf(py.TypeError, "slsutil.update() needs two dicts")
		}
		Merge(a, b, c.boolean("merge_lists", false))
		return a, nil
	})
	s.add("slsutil.merge_all", "lst strategy? renderer? merge_lists?", func(c *call) (any, error) {
		out := py.NewDict()
		l, ok := c.val("lst").(*py.List)
		if !ok {
			return nil, py.Errorf(py.TypeError, "slsutil.merge_all() needs a list")
		}
		for _, v := range l.Items() {
			if d, ok := v.(*py.Dict); ok {
				Merge(out, py.DeepCopy(d).(*py.Dict), c.boolean("merge_lists", false))
			}
		}
		return out, nil
	})
	s.add("slsutil.serialize", "serializer obj **", func(c *call) (any, error) {
		switch f := c.str("serializer", ""); f {
		case "json":
			return py.ToJSON(c.val("obj"), py.JSONOptions{Unicode: true})
		case "yaml":
			return dumpYAML(c.val("obj"), false)
		default:
			return nil, fmt.Errorf("slsutil.serialize: the serializer %s is not supported", f)
		}
	})
	s.add("slsutil.deserialize", "serializer stream_or_string **", func(c *call) (any, error) {
		switch f := c.str("serializer", ""); f {
		case "json":
			return py.FromJSON(c.str("stream_or_string", ""))
		case "yaml":
			return loadYAML(c.str("stream_or_string", ""))
		default:
			return nil, fmt.Errorf("slsutil.deserialize: the serializer %s is not supported", f)
		}
	})
	s.add("slsutil.boolstr", "value true? false?", func(c *call) (any, error) {
		if c.boolean("value", false) {
			return c.str("true", "true"), nil
		}
		return c.str("false", "false"), nil
	})
}

// addSlsutilFiles adds the functions of the module slsutil about the file roots.
func addSlsutilFiles(s table) {
	s.add("slsutil.file_exists", "path saltenv?", func(c *call) (any, error) {
		_, err := c.Roots.Find(c.str("path", ""))
		return err == nil, nil
	})
	s.add("slsutil.dir_exists", "path saltenv?", func(c *call) (any, error) {
		_, err := c.Roots.FindDir(c.str("path", ""))
		return err == nil, nil
	})
	s.add("slsutil.path_exists", "path saltenv?", func(c *call) (any, error) {
		_, err := c.Roots.Find(c.str("path", ""))
		_, err2 := c.Roots.FindDir(c.str("path", ""))
		return err == nil || err2 == nil, nil
	})
	s.add("slsutil.findup", "startpath filenames saltenv?", findup)
}

func findup(c *call) (any, error) {
	dir := strings.Trim(c.str("startpath", ""), "/")
	var names []string
	if l, ok := c.val("filenames").(*py.List); ok {
		for _, v := range l.Items() {
			names = append(names, py.Str(v))
		}
	} else {
		names = []string{c.str("filenames", "")}
	}
	for {
		for _, n := range names {
			p := strings.TrimPrefix(dir+"/"+n, "/")
			if _, err := c.Roots.Find(p); err == nil {
				return p, nil
			}
		}
		if dir == "" || dir == "." {
			return nil, errors.New("slsutil.findup: file not found in the path")
		}
		dir = strings.Trim(pyDirname(dir), "/")
	}
}

// loadYAML reads YAML from a template's own data; errors contain none of it.
func loadYAML(text string) (any, error) {
	doc, err := saltyaml.Parse("", []byte(text), saltyaml.Options{Private: true})
	if err != nil {
		var f *fault.Error
		if errors.As(err, &f) && f.Err != nil {
			return nil, fmt.Errorf("line %d of the YAML: %w", f.At.Line, f.Err)
		}
		return nil, err
	}
	return doc.Value, nil
}

// dumpYAML writes YAML as Salt's serializer does.
func dumpYAML(v any, flow bool) (any, error) {
	style := saltyaml.BlockStyle
	if flow {
		style = saltyaml.FlowStyle
	}
	return saltyaml.Dump(v, saltyaml.DumpOptions{Flow: style})
}
