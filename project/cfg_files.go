package project

import (
	"corpus-git/project/files"
)

// Files returns the files that deployments write, in the order of the configuration.
func (c *Cfg) Files() []files.File { return c.fileList }

// verbatim leaves the contents of files as they are: {key} is not replaced in them.
func (r *resolver) verbatim() {
	top := r.root.get([]string{files.Key})
	if top == nil || top.sub == nil {
		return
	}
	top.sub.each(func(l *leaf) {
		for _, key := range files.Verbatim() {
			if l.sub == nil {
				continue
			}
			if text := l.sub.get([]string{key}); text != nil && text.sub == nil {
				s, _ := text.value.(string)
				text.secret = text.secret || r.generated != nil && r.generated(s)
				r.done[text] = true
			}
		}
	})
}

// files reads and validates the key of the same name, and adds the permissions of files in the tree.
func (c *Cfg) files(live string) error {
	top := c.root.get([]string{files.Key})
	if top == nil || top.sub == nil && top.value == nil {
		return nil
	}
	fail := &files.Error{Keys: []string{files.Key}, Text: "must be a mapping of paths"}
	if top.sub != nil {
		at := func(keys []string) (v any, secret bool) {
			l := c.root.get(keys)
			switch {
			case l == nil:
				return nil, false
			case l.sub != nil:
				return l.sub.dict(), l.hasSecret()
			}
			return l.value, l.secret
		}
		if c.fileList, c.perms, fail = files.Parse(top.sub.dict(), live, c.perms, at); fail == nil {
			return nil
		}
	}
	return c.FileError(fail)
}

// FileError returns an error at a key of a file, in the layer that sets it or what is nearest above it.
func (c *Cfg) FileError(fail *files.Error) error {
	layer := LayerSample
	for n := len(fail.Keys); n > 0; n-- { // what is nearest to the error has a layer
		if l := c.root.get(fail.Keys[:n]); l != nil {
			layer = l.nearest(l.layer)
			break
		}
	}
	out := cfgError(layer, files.Key, "%s", fail.Text)
	out.Err = &KeyError{Keys: fail.Keys, Text: fail.Text}
	if fail.Hint == "" {
		return out
	}
	return out.WithHint("%s", fail.Hint)
}
