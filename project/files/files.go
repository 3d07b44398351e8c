package files

import (
	"encoding/base64"
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"

	"corpus-git/internal/configfile"
	"corpus-git/internal/nearest"
	"corpus-git/internal/py"
	"corpus-git/project/permission"
)

// Key is the key of cfg.
const Key = "files"

// Verbatim returns the keys of a file in which {key} is not replaced.
func Verbatim() []string { return []string{"content", "template", "base64"} }

// File is a file that deployments write.
type File struct {
	// Path is absolute, or relative to the project's tree; Declared is how the configuration has it.
	Path, Declared string
	// One of Content, Base64, Template and Format is set, or Absent.
	Content, Base64, Template *string
	Format                    configfile.Format
	// Values are those of a file with a format. Existing merges them over the values that the file has. Remove are paths of keys that are left out.
	Values   *py.Dict
	Existing bool
	Remove   [][]string
	// From are the keys of cfg from which the values were merged, the weakest first.
	From   [][]string
	Absent bool
	// Mode is "" if it is not set, as User and Group.
	Mode, User, Group string
	// Secret: contents came from the pillar, so no difference is shown.
	Secret bool
}

// Kind describes what is in the file: text, base64, template, a format, or absent.
func (f File) Kind() string {
	switch {
	case f.Absent:
		return "absent"
	case f.Content != nil:
		return "content"
	case f.Base64 != nil:
		return "base64"
	case f.Template != nil:
		return "template"
	}
	return string(f.Format)
}

// Error is an error below the key of a file.
type Error struct {
	// Keys lead from the top of cfg to what is wrong.
	Keys []string
	Text string
	Hint string
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// dataOf returns the prefix of paths in the project's folder data.
func dataOf(live string) string { return path.Dir(live) + "/data/" }

// parsePath returns a path as files has it: below the folder live it is relative. says is why it is none.
func parsePath(p, live string) (out, says string) {
	out = path.Clean(p)
	if rel, ok := strings.CutPrefix(out, live+"/"); ok {
		out = rel
	}
	switch parts := strings.Split(out, "/"); {
	case p == "" || strings.ContainsAny(p, "\x00\n") || strings.HasSuffix(p, "/") || out == "/" || out == "." || out == live:
		return "", "is not the path of a file"
	case slices.Contains(strings.Split(p, "/"), ".."):
		return "", "must not contain .."
	case strings.HasPrefix(out, path.Dir(live)+"/") && !strings.HasPrefix(out, dataOf(live)):
		return "", "belongs to the server: of the project's folder only project and data are its own"
	case !path.IsAbs(out) && (parts[0] == ".git" || parts[0] == ".salt"):
		return "", parts[0] + " belongs to the commit"
	}
	return out, ""
}

var modeText = regexp.MustCompile(`^0?[0-7]{3,4}$`)

func known() []string {
	return []string{"content", "base64", "template", "format", "values", "from", "existing", "remove", "absent", "mode", "user", "group"}
}

// Read reports whether a file is written from the value at a path of cfg.
func Read(list []File, keys []string) bool {
	return slices.ContainsFunc(list, func(f File) bool {
		return slices.ContainsFunc(f.From, func(from []string) bool { return slices.Equal(keys, from[:min(len(from), len(keys))]) })
	})
}

// Parse reads the key, and returns the permissions with those of files in the project's tree, which live is. at returns the value at a path of cfg, nil if
// there is none, and whether any of it is secret.
func Parse(all *py.Dict, live string, perms []permission.Rule, at func(keys []string) (v any, secret bool)) (out []File, _ []permission.Rule, fail *Error) {
	perms = slices.Clone(perms)
	for _, e := range all.Items() {
		if e.Value == nil { // null in a later layer removes a file
			continue
		}
		p, isText := e.Key.(string)
		where, says := parsePath(p, live)
		spec, isDict := e.Value.(*py.Dict)
		switch {
		case !isText:
			says = "the path must be a text"
		case says == "" && !isDict:
			says = "must be a mapping"
		case slices.ContainsFunc(out, func(f File) bool { return f.Path == where }):
			says = "is the same file as another path here"
		}
		if says != "" {
			return nil, nil, &Error{Keys: []string{Key, py.Str(e.Key)}, Text: says}
		}
		f, fail := read(p, spec, at)
		if fail != nil {
			return nil, nil, fail
		}
		f.Declared, f.Path = p, where
		for _, key := range Verbatim() {
			_, secret := at([]string{Key, p, key})
			f.Secret = f.Secret || secret
		}
		if perms, fail = f.permissions(perms, live); fail != nil {
			return nil, nil, fail
		}
		out = append(out, *f)
	}
	return out, perms, nil
}

// permissions adds the rule by which fixperms keeps what the file says, unless there is a rule for its path.
func (f *File) permissions(rules []permission.Rule, live string) ([]permission.Rule, *Error) {
	p := "project/" + f.Path
	if rel, ok := strings.CutPrefix(f.Path, dataOf(live)); ok {
		p = "data/" + rel
	} else if path.IsAbs(f.Path) {
		return rules, nil
	}
	i, found := slices.BinarySearchFunc(rules, p, func(r permission.Rule, p string) int { return strings.Compare(r.Path, p) })
	if found || f.Mode+f.User+f.Group == "" {
		return rules, nil
	}
	r := permission.Rule{Path: p, User: f.User, Group: f.Group}
	if f.Mode != "" {
		if err := r.Set("files", f.Mode); err != nil {
			return nil, &Error{Keys: []string{Key, f.Declared, "mode"}, Text: err.Error()}
		}
	}
	return slices.Insert(rules, i, r), nil
}

// read reads one file.
func read(p string, spec *py.Dict, at func(keys []string) (v any, secret bool)) (*File, *Error) {
	f := &File{Path: p}
	var own *py.Dict
	var from []source
	for _, e := range spec.Items() {
		if e.Value == nil { // null in a later layer removes a key
			continue
		}
		key := py.Str(e.Key)
		var fail *Error
		switch d, isDict := e.Value.(*py.Dict); {
		case key == "from":
			from, fail = readFrom(e.Value, at)
		case key == "values" && isDict:
			own = d
		case key == "values":
			fail = &Error{Text: "must be a mapping"}
		default:
			fail = f.read(key, e.Value)
		}
		if fail != nil {
			fail.Keys = append([]string{Key, p, key}, fail.Keys...)
			return nil, fail
		}
	}
	wrong := func(text string) (*File, *Error) { return nil, &Error{Keys: []string{Key, p}, Text: text} }
	var kinds []string
	for k, is := range map[string]bool{"content": f.Content != nil, "base64": f.Base64 != nil, "template": f.Template != nil, "format": f.Format != "", "absent": f.Absent} {
		if is {
			kinds = append(kinds, k)
		}
	}
	slices.Sort(kinds)
	switch {
	case len(kinds) == 0:
		return wrong("must have one of content, base64, template, format and absent")
	case len(kinds) > 1:
		_, fail := wrong("has " + strings.Join(kinds, " and "))
		fail.Hint = "set the one of a lower layer to null"
		return nil, fail
	case f.Format == "" && (own != nil || from != nil || f.Existing || f.Remove != nil):
		return wrong("values, from, existing and remove need a format: " + strings.Join(configfile.Formats(), ", "))
	case f.Absent && f.Mode+f.User+f.Group != "":
		return wrong("an absent file has no mode, user or group")
	case f.Format == "":
		return f, nil
	}
	for _, s := range from {
		f.From = append(f.From, s.keys)
	}
	return f, f.check(own, from)
}

// source is a mapping of values, at a path of keys.
type source struct {
	values *py.Dict
	keys   []string
}

// read reads a key of the file.
func (f *File) read(key string, v any) *Error {
	text, isText := v.(string)
	is, isBool := v.(bool)
	fail := func(says string) *Error { return &Error{Text: says} }
	switch key {
	case "content", "base64", "template":
		if !isText {
			return fail("must be a text")
		}
		if _, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), "")); err != nil && key == "base64" {
			return fail("is not base64")
		}
		*map[string]**string{"content": &f.Content, "base64": &f.Base64, "template": &f.Template}[key] = &text
	case "format":
		if !isText || !slices.Contains(configfile.Formats(), text) {
			return fail("must be one of " + strings.Join(configfile.Formats(), ", "))
		}
		f.Format = configfile.Format(text)
	case "existing", "absent":
		if !isBool {
			return fail("must be true or false")
		}
		*map[string]*bool{"existing": &f.Existing, "absent": &f.Absent}[key] = is
	case "remove":
		return f.readRemove(v)
	case "mode":
		if !isText || !modeText.MatchString(text) {
			return fail("must be a text such as '0640'")
		}
		f.Mode = text
	case "user", "group":
		if !isText || !permission.ValidAccount(text) {
			return fail("must be the name of an account")
		}
		*map[string]*string{"user": &f.User, "group": &f.Group}[key] = text
	default:
		out := fail("unknown key; a file has " + strings.Join(known(), ", "))
		if near := nearest.To(key, known()); near != "" {
			out.Hint = "did you mean  " + near + "?"
		}
		return out
	}
	return nil
}

func readFrom(v any, at func(keys []string) (v any, secret bool)) (out []source, fail *Error) {
	list, ok := v.(*py.List)
	if !ok {
		list = py.NewList(v)
	}
	for _, x := range list.Items() {
		key, _ := x.(string)
		var d *py.Dict
		var keys []string
		for _, separator := range []string{":", "."} {
			if v, _ := at(strings.Split(key, separator)); d == nil {
				keys = strings.Split(key, separator)
				d, _ = v.(*py.Dict)
			}
		}
		if d == nil {
			return nil, &Error{Text: "cfg has no mapping " + py.Str(x), Hint: "separate keys with colons, as in  from: data:app"}
		}
		out = append(out, source{d, keys})
	}
	return out, nil
}

func (f *File) readRemove(v any) *Error {
	list, ok := v.(*py.List)
	if !ok {
		list = py.NewList(v)
	}
	f.Remove = [][]string{}
	for _, x := range list.Items() {
		switch x := x.(type) {
		case string:
			f.Remove = append(f.Remove, strings.Split(x, ":"))
		case *py.List: // keys that contain a colon
			var keys []string
			for _, k := range x.Items() {
				keys = append(keys, py.Str(k))
			}
			f.Remove = append(f.Remove, keys)
		default:
			return &Error{Text: "must be a list of keys, such as 'server:port'"}
		}
		if last := f.Remove[len(f.Remove)-1]; len(last) == 0 || slices.Contains(last, "") {
			return &Error{Text: "must be a list of keys, such as 'server:port'"}
		}
	}
	return nil
}

// merge merges a mapping over another.
func merge(into, from *py.Dict) {
	for _, e := range from.Items() {
		old, _ := into.Get(e.Key)
		od, ok1 := old.(*py.Dict)
		nd, ok2 := e.Value.(*py.Dict)
		if ok1 && ok2 {
			merge(od, nd)
			continue
		}
		_ = into.Set(e.Key, py.DeepCopy(e.Value)) // it was a key before
	}
}

// check merges the file's own values over those of from, and refuses what the format cannot express, by the key of cfg that sets it.
func (f *File) check(own *py.Dict, from []source) *Error {
	f.Values = py.NewDict()
	for _, s := range append(from, source{own, []string{Key, f.Path, "values"}}) {
		if s.values != nil {
			merge(f.Values, s.values)
		}
	}
	_, err := configfile.Edit(f.Format, nil, f.Values, f.Remove)
	var bad *configfile.KeyError
	if err == nil {
		return nil
	}
	if !errors.As(err, &bad) {
		return &Error{Keys: []string{Key, f.Path}, Text: err.Error()}
	}
	at := []string{Key, f.Path}
	for _, s := range append(from, source{own, []string{Key, f.Path, "values"}}) {
		if has(s.values, bad.Keys) {
			at = append(s.keys[:len(s.keys):len(s.keys)], bad.Keys...) // the strongest that has it
		}
	}
	return &Error{Keys: at, Text: bad.Text, Hint: "it is written to " + f.Path + " as " + string(f.Format)}
}

// has reports whether a mapping has a value at a path.
func has(d *py.Dict, path []string) bool {
	for i, k := range path {
		if d == nil {
			return false
		}
		v, ok := d.GetStr(k)
		if !ok {
			return false
		}
		next, isDict := v.(*py.Dict)
		if !isDict {
			return i < len(path) // a list has the rest
		}
		d = next
	}
	return true
}
