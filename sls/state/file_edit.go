package state

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"corpus-git/internal/py"
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
	b, err := os.ReadFile(path)
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

// toggle puts a comment character before the lines that match, or takes it away.
func (c *Call) toggle(comment bool) Return {
	path, text, fail := c.editable()
	if fail != nil {
		return *fail
	}
	ch := c.str("char", "#")
	expr := anchored.ReplaceAllString(c.str("regex", ""), "$2")
	body, bad := pyRegex(`^[ \t]*(?:`+expr+`)`, "")
	if bad != "" {
		return Failf("%s", bad)
	}
	word := map[bool]string{true: "comment", false: "uncomment"}[comment]
	var lines []string
	hit, done := false, false
	for _, l := range splitKeep(text) {
		bare := strings.TrimLeft(l, " \t")
		indent := l[:len(l)-len(bare)]
		rest, isComment := strings.CutPrefix(bare, ch)
		switch {
		case comment && isComment && body.MatchString(rest), !comment && !isComment && body.MatchString(l):
			done = true
		case comment && !isComment && body.MatchString(l):
			l, hit = indent+ch+bare, true
		case !comment && isComment && body.MatchString(strings.TrimLeft(rest, " \t")):
			l, hit = indent+rest, true
		}
		lines = append(lines, l)
	}
	switch {
	case hit:
	case done:
		return OKf("Pattern already %sed", word)
	case c.boolean("ignore_missing", false):
		return OKf("Pattern not found and ignore_missing set to True")
	default:
		return Failf("%s: Pattern not found", expr)
	}
	if c.Test {
		return Would(py.NewDict(path, "updated"), "File %s is set to be updated", path)
	}
	return c.commit(path, text, strings.Join(lines, ""), strings.ToUpper(word[:1])+word[1:]+"ed lines successfully", "")
}

// fileAccumulated collects text for file.managed and file.blockreplace of the same run.
// Source: Salt documentation, file state, accumulated.
func fileAccumulated(c *Call) Return {
	file := c.expand(c.str("filename", ""))
	lines, ok := strList(func() any { v, _ := c.val("text"); return v }())
	if !ok {
		return Failf("The text is neither a string nor a list of strings")
	}
	d := c.Accumulated[file]
	if d == nil {
		d = py.NewDict()
		c.Accumulated[file] = d
	}
	v, _ := d.GetStr(c.Name)
	l, isList := v.(*py.List)
	if !isList {
		l = py.NewList()
		d.SetStr(c.Name, l)
	}
	for _, s := range lines {
		if !slices.Contains(l.Items(), any(s)) {
			l.Append(s)
		}
	}
	return OKf("Accumulator %s for file %s was charged by text", c.Name, file)
}

// fileBlock implements file.blockreplace. Source: Salt documentation, file execution module, blockreplace.
func fileBlock(c *Call) Return {
	path, text, fail := c.editable()
	if fail != nil {
		return *fail
	}
	app, pre := c.boolean("append_if_not_found", false), c.boolean("prepend_if_not_found", false)
	before, after := c.str("insert_before_match", ""), c.str("insert_after_match", "")
	n := 0
	for _, on := range []bool{app, pre, before != "", after != ""} {
		if on {
			n++
		}
	}
	if n > 1 {
		return Failf("Only one of append_if_not_found, prepend_if_not_found, insert_before_match, and insert_after_match is permitted")
	}
	content := c.str("content", "")
	if d := c.Accumulated[path]; d != nil {
		for _, v := range d.Values() {
			for _, l := range v.(*py.List).Items() {
				if content != "" {
					content += "\n"
				}
				content += py.Str(l)
			}
		}
	}
	if c.boolean("source", false) || c.has("sources") {
		pieces, bad := c.texts()
		if bad != "" {
			return Failf("%s", bad)
		}
		content += strings.Join(pieces, "")
	}
	start, end := c.str("marker_start", "#-- start managed zone --"), c.str("marker_end", "#-- end managed zone --")
	newline := !strings.HasSuffix(content, "\n")
	if v, ok := c.val("append_newline"); ok {
		newline = py.Truth(v)
	}
	block := func(endLine string) string {
		if newline {
			content += "\n"
		}
		return content + strings.TrimRight(endLine, "\r\n") + "\n"
	}
	var out []string
	in, found := false, false
	for _, l := range splitKeep(text) {
		switch {
		case strings.Contains(l, start):
			in = true
			out = append(out, l)
		case in:
			if i := strings.Index(l, end); i >= 0 {
				in, found = false, true
				out = append(out, block(l[i:]))
			}
		default:
			out = append(out, l)
		}
	}
	if in {
		return Failf("Encountered error managing block: Unterminated marked block. End of file reached before marker_end.. See the log for details.")
	}
	if !found {
		whole := start + "\n" + block(end)
		switch {
		case pre:
			out = append([]string{whole}, out...)
		case app:
			if len(out) > 0 && !strings.HasSuffix(out[len(out)-1], "\n") {
				out[len(out)-1] += "\n"
			}
			out = append(out, whole)
		case before != "" || after != "":
			re, bad := pyRegex(before+after, "")
			if bad != "" {
				return Failf("%s", bad)
			}
			at := slices.IndexFunc(out, re.MatchString)
			if at < 0 {
				return Failf("Encountered error managing block: Cannot edit marked block. insert_%s_match was not found in file. See the log for details.",
					map[bool]string{true: "before", false: "after"}[before != ""])
			}
			if after != "" {
				at++
			}
			out = slices.Insert(out, at, whole)
		default:
			return Failf("Encountered error managing block: Cannot edit marked block. Markers were not found in file.. See the log for details.")
		}
	}
	return c.commit(path, text, strings.Join(out, ""), "Changes were made", "Changes would be made")
}

func filePrepend(c *Call) Return {
	return c.addText(func(have, add []string) []string {
		if c.boolean("header", false) && len(have) >= len(add) && slices.Equal(have[:len(add)], add) {
			return have
		}
		return append(slices.Clone(add), have...)
	}, "Prepended")
}
