package state

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

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
	compile := byteRegex
	if c.Args.Has("encoding") {
		compile = textRegex
	}
	re, bad := compile(c.str("pattern", ""), flags)
	if bad != "" {
		return Failf("%s", bad)
	}
	repl := c.str("repl", "")
	out, n := re.subn(text, repl, c.boolean("backslash_literal", false), int(c.integer("count", 0)))
	if utf8.ValidString(text) && !utf8.ValidString(out) {
		return Failf("The replacement cuts a character of %s in two: the expression is held against bytes", path)
	}
	if n == 0 && (app || pre) {
		content := c.str("not_found_content", repl)
		there, bad := compile("^"+py.ReEscape(either(content, repl))+`($|(?=\r\n))`, flags)
		if bad != "" {
			return Failf("%s", bad)
		}
		if !there.matches(text, false) {
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
	todo, done, line, after := `^(?!\s*`+ch+`)\s*`+plain, ch+plain, "^"+core, ch+plain
	if !comment {
		todo, done, line = ch+"[ \t]*"+bare, "^[ \t]*"+bare, `^`+ch+`\s*`+core
		after = done
	}
	edits, bad := textRegex(line, "")
	if bad != "" {
		return Failf("%s", bad)
	}
	var re [3]*pattern
	for i, expr := range []string{todo, done, after} {
		if re[i], bad = byteRegex(expr, "m"); bad != "" {
			return Failf("%s", bad)
		}
	}
	word, name := "Commented", plain
	if !comment {
		word, name = "Uncommented", regex
	}
	if !re[0].matches(text, false) {
		switch {
		case re[1].matches(text, false):
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
		if edits.matches(l, true) {
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
	if !re[2].matches(edited, false) {
		ret.Result, ret.Comment = False, "Expected "+strings.ToLower(word)+" lines not found"
	}
	return ret
}

func filePrepend(c *Call) Return {
	return c.addText(func(have, add []string) []string {
		if c.boolean("header", false) && len(have) >= len(add) && slices.Equal(have[:len(add)], add) {
			return have
		}
		return append(slices.Clone(add), have...)
	}, "Prepended")
}
