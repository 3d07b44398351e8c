package state

import (
	"path/filepath"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
)

// texts are the pieces that file.append and file.prepend add: text, or the rendered sources.
func (c *Call) texts() ([]string, string) {
	sources := c.strs("sources")
	if len(sources) == 0 && c.boolean("source", false) {
		sources = c.strs("source")
	}
	if len(sources) == 0 {
		v, ok := c.val("text")
		if !ok {
			return nil, "No text found to append. Nothing appended"
		}
		out, ok := strList(v)
		if !ok {
			return nil, "The text is neither a string nor a list of strings"
		}
		return out, ""
	}
	var out []string
	hashes := c.strs("source_hashes")
	if len(hashes) == 0 && c.has("source_hash") {
		hashes = c.strs("source_hash")
	}
	for i, s := range sources {
		data, _, err := c.fetch(s)
		if err != nil {
			return nil, err.Error()
		}
		if k := scheme(s); k == "http" || k == "https" {
			if i >= len(hashes) {
				return nil, "Unable to verify upstream hash of source file " + redactURL(s) + ", please set source_hash"
			}
			if err := c.verify(data, c.expand(c.Name), s, hashes[i]); err != nil {
				return nil, err.Error()
			}
		}
		text := string(data)
		if v, ok := c.Args.GetStr("template"); !ok || v != nil {
			if text, err = c.renderFile(text, s); err != nil {
				return nil, err.Error()
			}
		}
		out = append(out, text)
	}
	return out, ""
}

// contains reports whether a file holds a piece: with more or less white space, or, where that is not ignored, as a regular
// expression. Source: Salt, states/file.py, append.
func contains(content, piece string, ignoreSpace bool) bool {
	if ignoreSpace {
		re, bad := whitespaceRegex(piece)
		if bad != "" {
			badArg("%s", bad)
		}
		return re.MatchString(content)
	}
	re, bad := byteRegex(piece, "m")
	if bad != "" {
		badArg("%s", bad)
	}
	return re.matches(content, false)
}

// fileAppend implements file.append. Source: Salt documentation, file state, append.
func fileAppend(c *Call) Return {
	return c.addText(func(have, add []string) []string { return append(slices.Clone(have), add...) }, "Appended")
}

// addText adds lines that are not there yet.
func (c *Call) addText(merge func(have, add []string) []string, verb string) Return {
	name := c.expand(c.Name)
	if name == "" {
		return Failf("Must provide name to file.append")
	}
	if !filepath.IsAbs(name) {
		return Failf("Specified file %s is not an absolute path", name)
	}
	if isDir(name) {
		return Failf("Specified target %s is a directory", name)
	}
	fresh := !exists(name)
	if fresh && c.Test {
		return Would(py.NewDict("new", name), "File %s is set to be created", name)
	}
	if fresh {
		if dir := filepath.Dir(name); !isDir(dir) {
			if !c.boolean("makedirs", false) {
				return Failf("%s: file not found", name)
			}
			if err := c.makeDirs(dir, owner{}, nil); err != nil {
				return Failf("Failed to create directory %s: %s", dir, why(err))
			}
		}
	}
	pieces, fail := c.texts()
	if fail != "" {
		return Failf("%s", fail)
	}
	var old []byte
	if !fresh {
		var err error
		if old, err = vfs.ReadFollowed(name, vfs.MaxRead); err != nil {
			return Failf("%s", why(err))
		}
	}
	ignoreSpace := c.boolean("ignore_whitespace", true)
	var add []string
	verbatim := verb == "Prepended" && c.boolean("header", false) // then the place counts, too
	for _, p := range pieces {
		if !verbatim && contains(string(old), p, ignoreSpace) {
			continue
		}
		add = append(add, pySplitLines(p)...)
	}
	have := pySplitLines(string(old))
	lines := merge(have, add)
	// What is there stays as it is, whatever its lines end with.
	text, block := string(old), ""
	for _, l := range add {
		block += l + "\n"
	}
	switch {
	case slices.Equal(have, lines):
	case verb == "Prepended":
		text = block + text
	default:
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		text += block
	}
	ret := Return{Result: True, Comment: "File " + name + " is in correct state"}
	if slices.Equal(have, lines) && !fresh {
		return ret
	}
	if !slices.Equal(have, lines) {
		ret.Diff = diffText(old, []byte(text))
		shown := ret.Diff
		if verb != "Prepended" { // Salt splits the lines in two ways
			shown = strings.Join(unifiedDiff(have, lines, "\n"), "\n")
		}
		if isBinary(old) {
			ret.Diff = "Replace binary file"
			shown = ret.Diff
		}
		ret.Set("diff", shown)
		if !c.boolean("show_changes", true) {
			ret.Set("diff", "<show_changes=False>")
			ret.Diff = ""
		}
	}
	if c.Test {
		ret.Result, ret.Comment = None, "File "+name+" is set to be updated"
		return ret
	}
	var err error
	if fresh {
		err = c.writeNew(name, managed{data: []byte(text)})
	} else {
		err = c.rewrite(name, []byte(text))
	}
	if err != nil {
		return Failf("Failed to write %s: %s", name, why(err))
	}
	if len(add) > 0 {
		ret.Comment = verb + " " + py.Str(int64(len(add))) + " lines"
	}
	return ret
}
