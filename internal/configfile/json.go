package configfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"

	"corpus-git/internal/py"
)

// member is an entry of an object: either raw, or an object. Numbers keep their digits.
type member struct {
	key string
	raw json.RawMessage
	obj *object
}

type object struct{ members []member }

func (o *object) find(key string) int {
	for i := range o.members {
		if o.members[i].key == key {
			return i
		}
	}
	return -1
}

func (o *object) set(m member) {
	if i := o.find(m.key); i >= 0 {
		o.members[i] = m
		return
	}
	o.members = append(o.members, m)
}

// readObject reads an object of a decoder, after its {.
func readObject(dec *json.Decoder) (*object, error) {
	out := &object{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: t.(string)} // the decoder accepts nothing else here
		if err := dec.Decode(&m.raw); err != nil {
			return nil, err
		}
		if m.obj, err = objectOf(m.raw); err != nil {
			return nil, err
		}
		out.set(m)
	}
	_, err := dec.Token()
	return out, err
}

// objectOf reads a value if it is an object, otherwise nil.
func objectOf(raw []byte) (*object, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, err
	}
	return readObject(dec)
}

func (o *object) write(b *bytes.Buffer) {
	b.WriteByte('{')
	for i, m := range o.members {
		if i > 0 {
			b.WriteByte(',')
		}
		key, _ := py.ToJSON(m.key, py.JSONOptions{Unicode: true}) // a text always has a form
		b.WriteString(key + ":")
		if m.obj != nil {
			m.obj.write(b)
		} else {
			b.Write(m.raw)
		}
	}
	b.WriteByte('}')
}

func (o *object) remove(path []string) bool {
	i := o.find(path[0])
	switch {
	case i < 0:
		return false
	case len(path) > 1:
		return o.members[i].obj != nil && o.members[i].obj.remove(path[1:])
	}
	o.members = append(o.members[:i:i], o.members[i+1:]...)
	return true
}

// merge merges the values over the object, and reports whether any differed.
func (o *object) merge(keys []string, values *py.Dict) (changed bool, err error) {
	for _, e := range values.Items() {
		key, err := textKey(keys, e.Key)
		if err != nil {
			return false, err
		}
		at := append(keys[:len(keys):len(keys)], key)
		i := o.find(key)
		if d, ok := e.Value.(*py.Dict); ok {
			m := member{key: key, obj: &object{}}
			if i >= 0 && o.members[i].obj != nil {
				m.obj = o.members[i].obj
			} else {
				changed = true
			}
			below, err := m.obj.merge(at, d)
			if err != nil {
				return false, err
			}
			changed = changed || below
			o.set(m)
			continue
		}
		if err := checkJSON(at, e.Value); err != nil {
			return false, err
		}
		text, err := py.ToJSON(e.Value, py.JSONOptions{Unicode: true})
		if err != nil {
			return false, wrong(at, "has no form in JSON: %s", err)
		}
		if i >= 0 && o.members[i].obj == nil && sameJSON(o.members[i].raw, text) {
			continue
		}
		o.set(member{key: key, raw: json.RawMessage(text)})
		changed = true
	}
	return changed, nil
}

// sameJSON compares two values that are no objects, whatever their spaces; 1, 1.0 and true are different.
func sameJSON(a []byte, b string) bool {
	canonical := func(s string) string {
		v, err := py.FromJSON(s)
		if err != nil {
			return s
		}
		text, err := py.ToJSON(v, py.JSONOptions{Unicode: true, SortKeys: true})
		if err != nil {
			return s
		}
		return text
	}
	return canonical(string(a)) == canonical(b)
}

// checkJSON refuses what JSON cannot express anywhere in a value.
func checkJSON(keys []string, value any) error {
	switch v := value.(type) {
	case nil, string, bool:
		return nil
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return wrong(keys, "JSON has no %s", py.Str(v))
		}
		return nil
	case *py.List:
		for i, x := range v.Items() {
			if err := checkJSON(append(keys[:len(keys):len(keys)], fmt.Sprint(i)), x); err != nil {
				return err
			}
		}
		return nil
	case *py.Dict:
		for _, e := range v.Items() {
			key, err := textKey(keys, e.Key)
			if err == nil {
				err = checkJSON(append(keys[:len(keys):len(keys)], key), e.Value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if py.IsInt(value) {
		return nil
	}
	return wrong(keys, "has no form in JSON: %s", py.TypeName(value))
}

// firstIndent finds how a file is indented.
var firstIndent = regexp.MustCompile(`^\s*\{\r?\n([ \t]+)"`)

// editJSON is Edit.
func editJSON(old []byte, values *py.Dict, remove [][]string) ([]byte, error) {
	o, changed, indent := &object{}, old == nil, "  "
	if len(bytes.TrimSpace(old)) > 0 {
		if !json.Valid(old) {
			return nil, errors.New("the existing file is not valid JSON")
		}
		var err error
		if o, err = objectOf(old); err != nil {
			return nil, fmt.Errorf("the existing file cannot be read: %w", err)
		}
		if o == nil {
			return nil, errors.New("the existing file is not a JSON object")
		}
		if m := firstIndent.FindSubmatch(old); m != nil {
			indent = string(m[1])
		}
	}
	for _, path := range remove {
		changed = o.remove(path) || changed
	}
	differs, err := o.merge(nil, values)
	if err != nil {
		return nil, err
	}
	if !changed && !differs {
		return old, nil
	}
	var b, out bytes.Buffer
	o.write(&b)
	if err := json.Indent(&out, b.Bytes(), "", indent); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}
