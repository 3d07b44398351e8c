package file

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/difflib"
	"corpus-git/sls/state/fetch"
	"corpus-git/sls/state/regex"
)

// readTexts returns the pieces that file.append and file.prepend add: text, or the rendered sources.
func readTexts(c *core.Call) ([]string, string) {
	sources := c.Strings("sources")
	if len(sources) == 0 && c.Bool("source", false) {
		sources = c.Strings("source")
	}
	if len(sources) == 0 {
		v, ok := c.Value("text")
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
	hashes := c.Strings("source_hashes")
	if len(hashes) == 0 && c.Has("source_hash") {
		hashes = c.Strings("source_hash")
	}
	for i, s := range sources {
		data, _, err := fetch.File(c, s)
		if err != nil {
			return nil, err.Error()
		}
		if k := fetch.Scheme(s); k == "http" || k == "https" {
			if i >= len(hashes) {
				return nil, "Unable to verify upstream hash of source file " + fetch.RedactURL(s) + ", please set source_hash"
			}
			if err := fetch.Verify(c, data, c.ExpandUser(c.Name), s, hashes[i]); err != nil {
				return nil, err.Error()
			}
		}
		text := string(data)
		if v, ok := c.Args.GetStr("template"); !ok || v != nil {
			if text, err = fetch.RenderFile(c, text, s); err != nil {
				return nil, err.Error()
			}
		}
		out = append(out, text)
	}
	return out, ""
}

// contains reports whether a file contains a piece: with any amount of white space or, if that is not ignored, as a regular
// expression. Source: Salt, states/file.py, append.
func contains(content, piece string, ignoreSpace bool) bool {
	if ignoreSpace {
		re, bad := whitespaceRegex(piece)
		if bad != "" {
			core.BadArg("%s", bad)
		}
		return re.MatchString(content)
	}
	re, bad := regex.Bytes(piece, "m")
	if bad != "" {
		core.BadArg("%s", bad)
	}
	return re.Matches(content, false)
}

// fileAppend implements file.append. Source: Salt documentation, file state, append.
func fileAppend(c *core.Call) core.Return {
	return addText(c, func(have, add []string) []string { return append(slices.Clone(have), add...) }, "Appended")
}

// addText adds lines that do not exist yet; merge says where they are added, and verb is the word for that in the comment.
func addText(c *core.Call, merge func(have, add []string) []string, verb string) core.Return {
	name := c.ExpandUser(c.Name)
	if name == "" {
		return core.Failf("Must provide name to file.append")
	}
	if !filepath.IsAbs(name) {
		return core.Failf("Specified file %s is not an absolute path", name)
	}
	if core.IsDir(name) {
		return core.Failf("Specified target %s is a directory", name)
	}
	fresh := !core.Exists(name)
	if fresh && c.Test {
		return core.Would(py.NewDict("new", name), "File %s is set to be created", name)
	}
	if fresh {
		if ret, ok := parentForText(c, name); !ok {
			return ret
		}
	}
	pieces, fail := readTexts(c)
	if fail != "" {
		return core.Failf("%s", fail)
	}
	var old []byte
	if !fresh {
		var err error
		if old, err = vfs.ReadFollowed(name, vfs.MaxRead); err != nil {
			return core.Failf("%s", core.Cause(err))
		}
	}
	front := verb == "Prepended"
	add := missingLines(c, string(old), pieces, front && c.Bool("header", false)) // the position then counts, too
	have := core.SplitLines(string(old))
	lines := merge(have, add)
	same := slices.Equal(have, lines)
	ret := core.Return{Result: core.True, Comment: "File " + name + " is in correct state"}
	if same && !fresh {
		return ret
	}
	text := string(old)
	if !same {
		text = withLines(text, add, front)
		showText(c, &ret, old, text, have, lines, front)
	}
	if c.Test {
		ret.Result, ret.Comment = core.None, "File "+name+" is set to be updated"
		return ret
	}
	var err error
	if fresh {
		err = WriteNew(c, name, Managed{Data: []byte(text)})
	} else {
		err = c.Rewrite(name, []byte(text))
	}
	if err != nil {
		return core.Failf("Failed to write %s: %s", name, core.Cause(err))
	}
	if len(add) > 0 {
		ret.Comment = verb + " " + py.Str(int64(len(add))) + " lines"
	}
	return ret
}

// parentForText creates the folder of a new file, if makedirs is set; ok is false if it is missing.
func parentForText(c *core.Call, name string) (ret core.Return, ok bool) {
	dir := filepath.Dir(name)
	if core.IsDir(dir) {
		return ret, true
	}
	if !c.Bool("makedirs", false) {
		return core.Failf("%s: file not found", name), false
	}
	if err := c.MakeDirs(dir, core.Owner{}, nil); err != nil {
		return core.Failf("Failed to create directory %s: %s", dir, core.Cause(err)), false
	}
	return ret, true
}

// missingLines returns the lines of the pieces that a file does not contain; all of them if its content does not matter.
func missingLines(c *core.Call, content string, pieces []string, all bool) (add []string) {
	ignoreSpace := c.Bool("ignore_whitespace", true)
	for _, p := range pieces {
		if !all && contains(content, p, ignoreSpace) {
			continue
		}
		add = append(add, core.SplitLines(p)...)
	}
	return add
}

// withLines returns a text with lines added at its end or its front. The existing text is not changed, whatever its line ends.
func withLines(text string, add []string, front bool) string {
	block := ""
	for _, l := range add {
		block += l + "\n"
	}
	if front {
		return block + text
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + block
}

// showText adds the diff to the result.
func showText(c *core.Call, ret *core.Return, old []byte, text string, have, lines []string, front bool) {
	ret.Diff = difflib.Text(old, []byte(text))
	shown := ret.Diff
	if !front { // Salt splits the lines in two ways
		shown = strings.Join(difflib.Unified(have, lines, "\n"), "\n")
	}
	if core.IsBinary(old) {
		ret.Diff = "Replace binary file"
		shown = ret.Diff
	}
	ret.Set("diff", shown)
	if !c.Bool("show_changes", true) {
		ret.Set("diff", "<show_changes=False>")
		ret.Diff = ""
	}
}

// whitespaceRegex returns an expression that matches a piece of text with any amount of white space, except in quotes. It has
// Go's syntax and is matched against bytes. why says what is wrong. Source: Salt, utils/stringutils.py,
// build_whitespace_split_regex.
func whitespaceRegex(piece string) (re *regexp.Regexp, why string) {
	const gap = `[\s\v]*`
	var b strings.Builder
	b.WriteString("(?m)^")
	for _, line := range py.SplitLines(piece, false) {
		parts, ok := quotedFields(line)
		if !ok {
			return nil, "No closing quotation"
		}
		for i, p := range parts {
			parts[i] = regexp.QuoteMeta(p)
		}
		b.WriteString(gap + strings.Join(parts, gap) + gap)
	}
	b.WriteString("$")
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, "the text is too long to look for: " + err.Error()
	}
	return re, ""
}

// quotedFields splits a line at white space as Python's shlex does without its POSIX rules; if a line has both kinds of
// quotes, the double ones group their content. ok is false if one is not closed.
func quotedFields(line string) (fields []string, ok bool) {
	quotes := strings.Contains(line, "'") && !strings.Contains(line, `'\"`)
	for rest := strings.TrimLeft(line, " \t\r\n"); rest != ""; rest = strings.TrimLeft(rest, " \t\r\n") {
		end := strings.IndexAny(rest, " \t\r\n")
		if quotes && rest[0] == '"' {
			if end = strings.IndexByte(rest[1:], '"'); end < 0 {
				return nil, false
			}
			end += 2
		}
		if end < 0 {
			end = len(rest)
		}
		fields, rest = append(fields, rest[:end]), rest[end:]
	}
	return fields, true
}
