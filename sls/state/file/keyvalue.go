package file

import (
	"fmt"
	"os"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/sls/state/core"
)

// fileKeyValue implements file.keyvalue: lines of keys and values, one by one.
// Source: Salt documentation, file state, keyvalue; salt/states/file.py, keyvalue, whose diff it shows.
func fileKeyValue(c *core.Call) core.Return {
	path := c.ExpandUser(c.Name)
	if path == "" {
		return core.Failf("Must provide name to file.keyvalue")
	}
	want, complaint := keyValues(c)
	if complaint != "" {
		return core.Failf("%s", complaint)
	}
	w := keyValueWork{want: want, sep: c.Str("separator", "="), foldKey: c.Bool("key_ignore_case", false),
		foldValue: c.Bool("value_ignore_case", false), prune: c.Bool("prune", false), left: map[string]int64{}}
	w.uncomment, w.strips = c.Str("uncomment", ""), c.Has("uncomment")
	for _, e := range want.Items() {
		w.left[py.Str(e.Key)] = c.Int("count", 1)
	}
	old, err := vfs.ReadFollowed(path, vfs.MaxRead)
	missing := os.IsNotExist(err)
	if err != nil && !(missing && c.Bool("create_if_missing", false)) {
		r := core.Failf("unable to open %s", path)
		if c.Bool("ignore_if_missing", false) {
			r.Result = core.True
		}
		return r
	}
	for _, l := range core.SplitKeep(string(old)) {
		w.line(l)
	}
	switch {
	case missing, c.Bool("append_if_not_found", false):
		w.add(true)
	case c.Bool("prepend_if_not_found", false):
		w.add(false)
	}
	for _, l := range w.dropped {
		w.insert(1, "- "+l)
	}
	if w.changes+len(w.dropped) == 0 {
		return core.OKf("")
	}
	ret := core.Return{Result: core.True}
	diff := strings.Join(w.diff, "")
	shown := c.Bool("show_changes", true)
	if shown {
		ret.Diff = diff
		ret.Set("diff", diff)
	}
	if c.Test {
		ret.Result = core.None
		ret.Comment = fmt.Sprintf("File %s is set to be changed (%d lines modified, %d deleted)", path, w.changes, len(w.dropped))
		if shown {
			ret.Comment += "\nPredicted diff:\n\r\t\t" + strings.Join(w.diff, "\r\t\t")
		}
		return ret
	}
	ret.Comment = fmt.Sprintf("Changed %d, deleted %d lines", w.changes, len(w.dropped))
	data := []byte(strings.Join(w.content, ""))
	if missing {
		err = WriteNew(c, path, Managed{Data: data})
	} else {
		err = c.Rewrite(path, data)
	}
	if err != nil {
		ret.Result, ret.Comment = core.False, path+" not writable"
	}
	return ret
}

// keyValues returns the pairs that are requested.
func keyValues(c *core.Call) (*py.Dict, string) {
	v, _ := c.Value("key_values")
	d, isDict := v.(*py.Dict)
	switch {
	case c.Has("key") && c.Has("value"): // Salt means to refuse key_values with them, and does not
		value, _ := c.Value("value")
		return py.NewDict(c.Str("key", ""), value), ""
	case !py.Truth(v):
		return nil, "file.keyvalue key and value not supplied and key_values is empty"
	case !isDict:
		return nil, "file.keyvalue key and value not supplied and key_values is not a dictionary"
	}
	return d, ""
}

type keyValueWork struct {
	want                      *py.Dict
	sep, uncomment            string
	strips                    bool // uncomment is given
	foldKey, foldValue, prune bool
	left                      map[string]int64 // how often a key may still be changed
	content, diff, dropped    []string
	changes                   int
}

func foldCase(s string, on bool) string {
	if on {
		return strings.ToLower(s)
	}
	return s
}

// line processes one line of the file.
func (w *keyValueWork) line(line string) {
	bare := strings.TrimLeftFunc(line, pySpace)
	if w.strips {
		bare = strings.TrimLeft(line, w.uncomment)
	}
	commented := len(bare) < len(line)
	key, value, found := strings.Cut(bare, w.sep)
	test := foldCase(bare, w.foldKey)
	known := false
	for _, e := range w.want.Items() {
		known = known || strings.HasPrefix(test, foldCase(py.Str(e.Key), w.foldKey))
	}
	if w.prune && !known {
		w.dropped = append(w.dropped, line)
		return
	}
	for _, e := range w.want.Items() {
		name := py.Str(e.Key)
		if !found || !strings.HasPrefix(test, foldCase(name, w.foldKey)) || foldCase(key, w.foldKey) != foldCase(name, w.foldKey) {
			continue
		}
		strip := func(s string) string { return foldCase(strings.TrimFunc(s, pySpace), w.foldValue) }
		same := strip(value) == strip(py.Str(e.Value))
		change := !commented && w.left[name] == 0 // seen often enough
		if commented {
			change = w.left[name] > 0
			same = same || !change
		}
		if !same || change {
			w.diff = append(w.diff, "- "+line)
			line = ""
			if w.left[name] != 0 {
				line = w.pair(key, e.Value)
				w.diff = append(w.diff, "+ "+line)
				if _, text := e.Value.(string); !text {
					w.diff[len(w.diff)-1] = "+ " + strings.TrimRightFunc(line, pySpace) + " (from " + py.TypeName(e.Value) + " type)\n"
				}
			}
			w.changes++
		}
		if w.left[name] > 0 {
			w.left[name]--
		}
	}
	w.content = append(w.content, line)
}

func (w *keyValueWork) pair(key string, value any) string { return key + w.sep + py.Str(value) + "\n" }

// add adds what was not found at the end or at the beginning.
func (w *keyValueWork) add(atEnd bool) {
	var end []string
	begun := false
	for _, e := range w.want.Items() {
		if w.left[py.Str(e.Key)] <= 0 {
			continue
		}
		line := w.pair(py.Str(e.Key), e.Value)
		w.changes++
		if !atEnd {
			if !begun {
				w.insert(0, "  <SOF>\n")
			}
			begun = true
			w.insert(1, "+ "+line)
			w.content = append([]string{line}, w.content...)
			continue
		}
		if n := len(w.content); n > 0 && w.content[n-1] != "" && !strings.HasSuffix(w.content[n-1], "\n") {
			w.content[n-1] += "\n" // Salt would write the pair behind the last one
		}
		end = append(end, "+ "+line)
		w.content = append(w.content, line)
	}
	if len(end) > 0 {
		w.diff = append(append(append(w.diff, "- <EOF>\n"), end...), "+ <EOF>\n")
	}
}

// insert puts a line into the diff, at its end if it is shorter than at.
func (w *keyValueWork) insert(at int, line string) {
	at = min(at, len(w.diff))
	w.diff = append(w.diff[:at], append([]string{line}, w.diff[at:]...)...)
}
