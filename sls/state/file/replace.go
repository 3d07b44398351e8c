package file

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/difflib"
	"corpus-git/sls/state/regex"
)

func addFileEdit(t *core.Table) {
	const texts = "text makedirs source source_hash template sources source_hashes defaults context show_changes"
	t.Add("file.prepend", texts+" header", filePrepend)
	t.Add("file.replace", "pattern! repl! count flags bufsize? append_if_not_found prepend_if_not_found not_found_content backup "+
		"show_changes ignore_if_missing backslash_literal encoding search_only~", fileReplace)
	t.Add("file.comment", "regex! char backup ignore_missing", fileComment)
	t.Add("file.uncomment", "regex! char backup", fileUncomment)
	t.Add("file.blockreplace", "marker_start marker_end source source_hash template sources source_hashes defaults context content "+
		"append_if_not_found prepend_if_not_found backup show_changes append_newline insert_before_match insert_after_match", fileBlock)
	t.Add("file.accumulated", "filename! text! **", fileAccumulated)
}

// readForEdit reads a file that must exist; the Return ends the state if it does not.
func readForEdit(c *core.Call) (path string, text string, fail *core.Return) {
	path = c.ExpandUser(c.Name)
	stop := func(r core.Return) *core.Return { return &r }
	switch {
	case path == "":
		return path, "", stop(core.Failf("Must provide name to %s", c.Function))
	case !filepath.IsAbs(path):
		return path, "", stop(core.Failf("Specified file %s is not an absolute path", path))
	case !core.Exists(path):
		if c.Bool("ignore_if_missing", false) {
			return path, "", stop(core.OKf("No changes needed to be made"))
		}
		return path, "", stop(core.Failf("%s: file not found", path))
	}
	b, err := vfs.ReadFollowed(path, vfs.MaxRead)
	if err != nil {
		return path, "", stop(core.Failf("%s", core.Cause(err)))
	}
	if core.IsBinary(b) {
		return path, "", stop(core.Failf("Cannot perform string replacements on a binary file: %s", path))
	}
	return path, string(b), nil
}

// writeEdit writes an edited file, keeps a copy if backup requests one, and reports the diff.
func writeEdit(c *core.Call, path, old, text, done, would string) core.Return {
	if old == text {
		return core.OKf("No changes needed to be made")
	}
	ret := core.Return{Result: core.True, Comment: done}
	ret.Diff = strings.Join(difflib.Unified(core.SplitKeep(old), core.SplitKeep(text), "\n"), "")
	ret.Set("diff", ret.Diff)
	if !c.Bool("show_changes", true) {
		ret.Changes.SetStr("diff", true)
		ret.Diff = ""
	}
	if c.Test {
		ret.Result, ret.Comment = core.None, would
		return ret
	}
	if suffix := backupSuffix(c); suffix != "" {
		if err := copyFile(c, path, path+suffix); err != nil {
			return core.Failf("Unable to keep a copy of %s: %s", path, core.Cause(err))
		}
	}
	if err := c.Rewrite(path, []byte(text)); err != nil {
		return core.Failf("Unable to write file '%s': %s", path, core.Cause(err))
	}
	return ret
}

// backupSuffix returns the suffix of the name of a copy of the old file, "" if none is kept.
func backupSuffix(c *core.Call) string {
	ext, ok := c.Args.GetStr("backup")
	if !ok {
		return ".bak"
	}
	if s := py.Str(ext); py.Truth(ext) && s != "minion" && s != "True" {
		return s
	}
	return ""
}

// fileReplace implements file.replace. Source: Salt documentation, file execution module, replace.
func fileReplace(c *core.Call) core.Return {
	if p := c.ExpandUser(c.Name); filepath.IsAbs(p) && core.IsDir(p) {
		return core.Failf("Cannot perform string replacements on a binary file: %s", p)
	}
	path, text, fail := readForEdit(c)
	if fail != nil {
		return *fail
	}
	pattern, _ := c.Args.GetStr("pattern")
	if _, ok := pattern.(string); !ok {
		return core.Failf("expected str, bytes, or bytearray not <class '%s'>", py.TypeName(pattern))
	}
	app, pre := c.Bool("append_if_not_found", false), c.Bool("prepend_if_not_found", false)
	if app && pre {
		return core.Failf("Only one of append and prepend_if_not_found is permitted")
	}
	flags := regexFlags(c)
	compile := regex.Bytes
	if c.Args.Has("encoding") {
		compile = regex.Text
	}
	re, bad := compile(c.Str("pattern", ""), flags)
	if bad != "" {
		return core.Failf("%s", bad)
	}
	repl := c.Str("repl", "")
	out, n := re.Subn(text, repl, c.Bool("backslash_literal", false), int(c.Int("count", 0)))
	if utf8.ValidString(text) && !utf8.ValidString(out) {
		return core.Failf("The replacement cuts a character of %s in two: the expression is held against bytes", path)
	}
	if n == 0 && (app || pre) {
		content := c.Str("not_found_content", repl)
		there, bad := compile("^"+py.ReEscape(cmp.Or(content, repl))+`($|(?=\r\n))`, flags)
		if bad != "" {
			return core.Failf("%s", bad)
		}
		if !there.Matches(text, false) {
			if pre {
				out = content + "\n" + out
			} else {
				if out != "" && !strings.HasSuffix(out, "\n") {
					out += "\n"
				}
				out += content + "\n"
			}
		}
	}
	to, err := os.Readlink(path)
	if err != nil {
		return writeEdit(c, path, text, out, "Changes were made", "Changes would have been made")
	}
	// Behind a link the file itself is copied and written, and a link like this one leads to the copy.
	ret := writeEdit(c, core.Followed(path), text, out, "Changes were made", "Changes would have been made")
	if suffix := backupSuffix(c); suffix != "" && out != text && ret.Result == core.True {
		if err := c.Symlink(to+suffix, path+suffix); err != nil {
			return core.Failf("Unable to make the link %s: %s", path+suffix, core.Cause(err))
		}
	}
	return ret
}

func fileComment(c *core.Call) core.Return   { return toggle(c, true) }
func fileUncomment(c *core.Call) core.Return { return toggle(c, false) }

var anchored = regexp.MustCompile(`^(\(\?[iLmsux]\))?\^?(.*?)\$?$`)

// toggle puts a comment character before the lines that match, or removes it. Salt decides with one expression whether there is
// something to do, with a second one to which lines it applies, and with a third one whether it worked; all three
// are Salt's. Source: Salt, states/file.py comment and uncomment, modules/file.py comment_line.
func toggle(c *core.Call, comment bool) core.Return {
	path, text, fail := readForEdit(c)
	if fail != nil {
		return *fail
	}
	ch, expr := c.Str("char", "#"), c.Str("regex", "")
	bare, tail := strings.TrimLeft(expr, "^"), ""
	if strings.HasSuffix(expr, "$") {
		tail = "$"
	}
	body := "(" + strings.TrimRight(bare, "$") + ")" + tail
	plain := anchored.ReplaceAllString(expr, "$2")
	todo, done, line, after := `^(?!\s*`+ch+`)\s*`+plain, ch+plain, "^"+body, ch+plain
	if !comment {
		todo, done, line = ch+"[ \t]*"+bare, "^[ \t]*"+bare, `^`+ch+`\s*`+body
		after = done
	}
	edits, bad := regex.Text(line, "")
	if bad != "" {
		return core.Failf("%s", bad)
	}
	var re [3]*regex.Pattern
	for i, e := range []string{todo, done, after} {
		if re[i], bad = regex.Bytes(e, "m"); bad != "" {
			return core.Failf("%s", bad)
		}
	}
	word, name := "Commented", plain
	if !comment {
		word, name = "Uncommented", expr
	}
	if !re[0].Matches(text, false) {
		switch {
		case re[1].Matches(text, false):
			return core.OKf("Pattern already %s", strings.ToLower(word))
		case comment && c.Bool("ignore_missing", false):
			return core.OKf("Pattern not found and ignore_missing set to True")
		}
		return core.Failf("%s: Pattern not found", name)
	}
	if c.Test {
		return core.Would(py.NewDict(path, "updated"), "File %s is set to be updated", path)
	}
	var lines []string
	for _, l := range core.SplitKeep(text) {
		if edits.Matches(l, true) {
			if comment {
				l = ch + l
			} else {
				l = strings.TrimLeft(l, ch)
			}
		}
		lines = append(lines, l)
	}
	edited := strings.Join(lines, "")
	ret := core.OKf("")
	if edited != text {
		if ret = writeEdit(c, path, text, edited, "", ""); ret.Result == core.False {
			return ret
		}
	}
	ret.Comment = word + " lines successfully"
	if !re[2].Matches(edited, false) {
		ret.Result, ret.Comment = core.False, "Expected "+strings.ToLower(word)+" lines not found"
	}
	return ret
}

func filePrepend(c *core.Call) core.Return {
	return addText(c, func(have, add []string) []string {
		if c.Bool("header", false) && len(have) >= len(add) && slices.Equal(have[:len(add)], add) {
			return have
		}
		return append(slices.Clone(add), have...)
	}, "Prepended")
}

// regexFlags reads flags as Salt does: a number as in Python's re, a name, or a list of names.
func regexFlags(c *core.Call) string {
	v, ok := c.Value("flags")
	if !ok {
		return "m"
	}
	out := ""
	if n, isInt := v.(int64); isInt {
		for _, f := range []struct {
			bit int64
			ch  string
		}{{2, "i"}, {8, "m"}, {16, "s"}, {64, "x"}} {
			if n&f.bit != 0 {
				out += f.ch
			}
		}
		return out
	}
	for _, s := range c.Strings("flags") {
		switch strings.ToUpper(s) {
		case "I", "IGNORECASE":
			out += "i"
		case "M", "MULTILINE":
			out += "m"
		case "S", "DOTALL":
			out += "s"
		case "X", "VERBOSE":
			out += "x"
		case "A", "ASCII":
		default:
			core.BadArg("Invalid re flag given: %s", s)
		}
	}
	return out
}
