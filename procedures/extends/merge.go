package extends

import (
	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
	"corpus-git/project"
)

// Merge merges a PILLAR.sample over those of the recipes below it: mappings merge, everything else replaces, and lists with an edit tag are
// combined with the list of the recipes below, whatever section (makina-projects.*) they are in; !remove without a value removes the key there. Values are
// shared with src. Errors are fault.Failed with the position.
func Merge(below, src *py.Dict, edits map[*py.List]saltyaml.Edit) error {
	if err := removeKeys(below, src, edits); err != nil {
		return err
	}
	for _, e := range src.Items() {
		old, _ := below.Get(e.Key)
		under := old
		if len(edits) > 0 && project.IsSampleSection(e.Key) {
			all, err := project.SampleSection(below)
			if err != nil {
				return err
			}
			under = all
		}
		value, err := mergeValue(old, under, e.Value, edits)
		if err != nil {
			return err
		}
		if err := below.Set(e.Key, value); err != nil {
			return fault.New(fault.Internal, "merge", "%w", err)
		}
	}
	return nil
}

// removeKeys removes the keys whose values are !remove, from src and from the recipes below.
func removeKeys(below, src *py.Dict, edits map[*py.List]saltyaml.Edit) error {
	left := map[*py.List]saltyaml.Edit{}
	for list, e := range edits {
		if e.Key {
			left[list] = e
		}
	}
	if len(left) == 0 {
		return nil
	}
	var walk func(from *py.Dict, under []*py.Dict)
	walk = func(from *py.Dict, under []*py.Dict) {
		for _, e := range from.Items() {
			if list, ok := e.Value.(*py.List); ok && edits[list].Key {
				delete(left, list)
				from.Delete(e.Key)
				for _, d := range under {
					d.Delete(e.Key)
				}
				continue
			}
			d, ok := e.Value.(*py.Dict)
			if !ok {
				continue
			}
			var next []*py.Dict
			for _, u := range under {
				if v, _ := u.Get(e.Key); v != nil {
					if sub, ok := v.(*py.Dict); ok {
						next = append(next, sub)
					}
				}
			}
			walk(d, next)
		}
	}
	for _, e := range src.Items() {
		section, ok := e.Value.(*py.Dict)
		if !ok {
			continue
		}
		var under []*py.Dict
		for _, b := range below.Items() {
			d, ok := b.Value.(*py.Dict)
			if ok && (py.Equal(b.Key, e.Key) || project.IsSampleSection(b.Key) && project.IsSampleSection(e.Key)) {
				under = append(under, d)
			}
		}
		walk(section, under)
	}
	for _, e := range left {
		return fault.New(fault.Failed, "", "%s without a value removes a key, and must be the value of one below a section", e.Tag).WithPos(e.At)
	}
	return nil
}

// mergeValue merges a value; edits are applied to under.
func mergeValue(old, under, value any, edits map[*py.List]saltyaml.Edit) (any, error) {
	switch v := value.(type) {
	case *py.Dict:
		d, ok := old.(*py.Dict)
		if !ok {
			d = py.NewDict()
		}
		u, _ := under.(*py.Dict)
		for _, e := range v.Items() {
			had, _ := d.Get(e.Key)
			var below any
			if u != nil {
				below, _ = u.Get(e.Key)
			}
			next, err := mergeValue(had, below, e.Value, edits)
			if err == nil {
				err = d.Set(e.Key, next)
			}
			if err != nil {
				return nil, err
			}
		}
		return d, nil
	case *py.List:
		if edit, ok := edits[v]; ok {
			return edited(under, v, edit)
		}
	}
	return value, nil
}

// edited applies an edit to a list; a missing list below counts as empty.
func edited(old any, v *py.List, edit saltyaml.Edit) (*py.List, error) {
	if edit.Tag == saltyaml.Replace {
		return v, nil
	}
	list, ok := old.(*py.List)
	if old != nil && !ok {
		return nil, fault.New(fault.Failed, "", "%s: what the recipes below have there is not a list but %s", edit.Tag, py.TypeName(old)).WithPos(edit.At).
			WithHint("remove the tag to replace it")
	}
	if !ok {
		list = py.NewList()
	}
	has := func(in *py.List, item any) bool {
		for _, x := range in.Items() {
			if py.Equal(x, item) {
				return true
			}
		}
		return false
	}
	out := py.NewList()
	for _, item := range list.Items() {
		if edit.Tag == saltyaml.Append || !has(v, item) {
			out.Append(item)
		}
	}
	if edit.Tag == saltyaml.Append {
		for _, item := range v.Items() {
			if !has(out, item) {
				out.Append(item)
			}
		}
	}
	return out, nil
}
