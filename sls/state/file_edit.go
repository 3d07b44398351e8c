package state

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
)

func addFileEdit(t *Table) {
	const texts = "text makedirs source source_hash template sources source_hashes defaults context show_changes"
	t.add("file.prepend", texts+" header", filePrepend)
	t.add("file.replace", "pattern! repl! count flags bufsize? append_if_not_found prepend_if_not_found not_found_content backup "+
		"show_changes ignore_if_missing backslash_literal encoding", fileReplace)
	t.add("file.comment", "regex! char backup ignore_missing", fileComment)
	t.add("file.uncomment", "regex! char backup", fileUncomment)
	t.add("file.blockreplace", "marker_start marker_end source source_hash template sources source_hashes defaults context content "+
		"append_if_not_found prepend_if_not_found backup show_changes append_newline insert_before_match insert_after_match", fileBlock)
	t.add("file.accumulated", "filename! text!", fileAccumulated)
}

// editable reads a file that must be there; the Return ends the state where it is not.
func (c *Call) editable() (path string, text string, fail *Return) {
	path = c.expand(c.Name)
	stop := func(r Return) *Return { return &r }
	switch {
	case path == "":
		return path, "", stop(Failf("Must provide name to %s", c.Function))
	case !filepath.IsAbs(path):
		return path, "", stop(Failf("Specified file %s is not an absolute path", path))
	case !exists(path):
		if c.boolean("ignore_if_missing", false) {
			return path, "", stop(OKf("No changes needed to be made"))
		}
		return path, "", stop(Failf("%s: file not found", path))
	}
	b, err := vfs.ReadFollowed(path, vfs.MaxRead)
	if err != nil {
		return path, "", stop(Failf("%s", why(err)))
	}
	if isBinary(b) {
		return path, "", stop(Failf("Cannot perform string replacements on a binary file: %s", path))
	}
	return path, string(b), nil
}

// commit writes an edited file, keeps a copy where backup asks for one, and reports the diff.
func (c *Call) commit(path, old, text, done, would string) Return {
	if old == text {
		return OKf("No changes needed to be made")
	}
	ret := Return{Result: True, Comment: done}
	ret.Diff = strings.Join(unifiedDiff(splitKeep(old), splitKeep(text), "\n"), "")
	ret.Set("diff", ret.Diff)
	if !c.boolean("show_changes", true) {
		ret.Changes.SetStr("diff", true)
		ret.Diff = ""
	}
	if c.Test {
		ret.Result, ret.Comment = None, would
		return ret
	}
	if ext, ok := c.Args.GetStr("backup"); !ok || py.Truth(ext) {
		suffix := ".bak"
		if ok {
			suffix = py.Str(ext)
		}
		if suffix != "minion" && suffix != "True" {
			if err := c.copyFile(path, path+suffix); err != nil {
				return Failf("Unable to keep a copy of %s: %s", path, why(err))
			}
		}
	}
	if err := c.rewrite(path, []byte(text)); err != nil {
		return Failf("Unable to write file '%s': %s", path, why(err))
	}
	return ret
}

// pyRegex compiles a Python regular expression; what Go's cannot say is an error.
func pyRegex(expr, flags string) (*regexp.Regexp, string) {
	if flags != "" {
		expr = "(?" + flags + ")" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, "the regular expression is not supported by the built-in runner (look-around and back references are not)"
	}
	return re, ""
}

// regexFlags reads flags: a number as Python's re has it, a name, or a list of names.
func (c *Call) regexFlags() string {
	v, ok := c.val("flags")
	if !ok {
		return "m"
	}
	out := ""
	if n, isInt := v.(int64); isInt {
		for _, f := range []struct {
			bit int64
			ch  string
		}{{2, "i"}, {8, "m"}, {16, "s"}} {
			if n&f.bit != 0 {
				out += f.ch
			}
		}
		return out
	}
	for _, s := range c.strs("flags") {
		switch strings.ToUpper(s) {
		case "I", "IGNORECASE":
			out += "i"
		case "M", "MULTILINE":
			out += "m"
		case "S", "DOTALL":
			out += "s"
		}
	}
	return out
}

var pyGroup = regexp.MustCompile(`\\(\d+)|\\g<(\w+)>`)

// pyTemplate turns the replacement of re.sub into Go's: \1 and \g<name>, with \n and \t.
func pyTemplate(s string) string {
	s = strings.ReplaceAll(s, "$", "$$")
	s = pyGroup.ReplaceAllString(s, "$${$1$2}")
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t").Replace(s)
}

// subn is re.subn: it replaces the first count matches (0: all).
func subn(re *regexp.Regexp, text, repl string, literal bool, count int) (string, int) {
	var b strings.Builder
	last, n := 0, 0
	for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
		if count > 0 && n == count {
			break
		}
		b.WriteString(text[last:m[0]])
		if literal {
			b.WriteString(repl)
		} else {
			b.Write(re.ExpandString(nil, pyTemplate(repl), text, m))
		}
		last = m[1]
		n++
	}
	b.WriteString(text[last:])
	return b.String(), n
}

// fileReplace implements file.replace. Source: Salt documentation, file execution module, replace.
func fileReplace(c *Call) Return {
	path, text, fail := c.editable()
	if fail != nil {
		return *fail
	}
	app, pre := c.boolean("append_if_not_found", false), c.boolean("prepend_if_not_found", false)
	if app && pre {
		return Failf("Only one of append and prepend_if_not_found is permitted")
	}
	flags := c.regexFlags()
	re, bad := pyRegex(c.str("pattern", ""), flags)
	if bad != "" {
		return Failf("%s", bad)
	}
	repl := c.str("repl", "")
	out, n := subn(re, text, repl, c.boolean("backslash_literal", false), int(c.integer("count", 0)))
	if n == 0 && (app || pre) {
		content := c.str("not_found_content", repl)
		there, bad := pyRegex("(?m)^"+regexp.QuoteMeta(content)+"\r?$", flags)
		if bad != "" {
			return Failf("%s", bad)
		}
		if !there.MatchString(text) {
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
	return c.commit(path, text, out, "Changes were made", "Changes would have been made")
}

func fileComment(c *Call) Return   { return c.toggle(true) }
func fileUncomment(c *Call) Return { return c.toggle(false) }

var anchored = regexp.MustCompile(`^(\(\?[iLmsux]\))?\^?(.*?)\$?$`)

// toggle puts a comment character before the lines that match, or takes it away. Salt decides with one expression whether there
// is something to do, with a second one which lines it is done to, and with a third one whether it worked; all three
// are Salt's. Source: Salt, states/file.py comment and uncomment, modules/file.py comment_line.
func (c *Call) toggle(comment bool) Return {
	path, text, fail := c.editable()
	if fail != nil {
		return *fail
	}
	ch, regex := c.str("char", "#"), c.str("regex", "")
	bare, tail := strings.TrimLeft(regex, "^"), ""
	if strings.HasSuffix(regex, "$") {
		tail = "$"
	}
	core := "(" + strings.TrimRight(bare, "$") + ")" + tail
	plain := anchored.ReplaceAllString(regex, "$2")
	todo, done, line, after := `^\s*`+plain, ch+plain, "^"+core, ch+plain
	if !comment {
		todo, done, line = ch+`[ \t]*`+bare, `^[ \t]*`+bare, `^`+ch+`\s*`+core
		after = done
	}
	var re [5]*regexp.Regexp
	for i, expr := range []string{"(?m)" + todo, "(?m)" + done, line, "(?m)" + after, `^\s*` + ch} {
		var bad string
		if re[i], bad = pyRegex(expr, ""); bad != "" {
			return Failf("%s", bad)
		}
	}
	word, name := "Commented", plain
	if !comment {
		word, name = "Uncommented", regex
	}
	if !c.somewhere(re[0], re[4], text, comment) {
		switch {
		case re[1].MatchString(text):
			return OKf("Pattern already %s", strings.ToLower(word))
		case comment && c.boolean("ignore_missing", false):
			return OKf("Pattern not found and ignore_missing set to True")
		}
		return Failf("%s: Pattern not found", name)
	}
	if c.Test {
		return Would(py.NewDict(path, "updated"), "File %s is set to be updated", path)
	}
	var lines []string
	for _, l := range splitKeep(text) {
		if re[2].MatchString(strings.TrimSuffix(l, "\n")) {
			if comment {
				l = ch + l
			} else {
				l = strings.TrimLeft(l, ch)
			}
		}
		lines = append(lines, l)
	}
	edited := strings.Join(lines, "")
	ret := OKf("")
	if edited != text {
		if ret = c.commit(path, text, edited, "", ""); ret.Result == False {
			return ret
		}
	}
	ret.Comment = word + " lines successfully"
	if !re[3].MatchString(edited) {
		ret.Result, ret.Comment = False, "Expected "+strings.ToLower(word)+" lines not found"
	}
	return ret
}

// somewhere tells whether an expression is found in the text; to comment, in a line that is no comment yet.
func (c *Call) somewhere(re, isComment *regexp.Regexp, text string, comment bool) bool {
	if !comment {
		return re.MatchString(text)
	}
	for _, m := range re.FindAllStringIndex(text, -1) {
		if !isComment.MatchString(text[m[0]:]) {
			return true
		}
	}
	return false
}

func filePrepend(c *Call) Return {
	return c.addText(func(have, add []string) []string {
		if c.boolean("header", false) && len(have) >= len(add) && slices.Equal(have[:len(add)], add) {
			return have
		}
		return append(slices.Clone(add), have...)
	}, "Prepended")
}
