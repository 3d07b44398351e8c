package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/regex"
)

func addFileLine(t *core.Table) {
	t.Add("file.line", "content match mode location before after show_changes backup quiet indent create user group file_mode", fileLine)
	t.Add("file.keyvalue", "key value key_values separator append_if_not_found prepend_if_not_found search_only show_changes "+
		"ignore_if_missing count uncomment key_ignore_case value_ignore_case create_if_missing prune", fileKeyValue)
	t.Add("file.hardlink", "target! force makedirs user group dir_mode **", fileHardlink)
}

// fileLine implements file.line: one line that must be present, absent, or replace another.
// Source: Salt documentation, file state, line.
func fileLine(c *core.Call) core.Return {
	if !c.Has("mode") {
		return core.Failf("Mode was not defined. How to process the file?")
	}
	attributes, fail := lineFile(c)
	if fail != nil {
		return *fail
	}
	path, text, fail := readForEdit(c)
	if fail != nil {
		return *fail
	}
	l := lineEdit{mode: strings.ToLower(c.Str("mode", "")), location: c.Str("location", ""), content: c.Str("content", ""),
		indent: c.Bool("indent", true), lines: core.SplitKeep(text)}
	if l.mode != "delete" && !c.Has("content") {
		return core.Failf("Content can only be empty if mode is ['delete']")
	}
	if n := len(l.lines); n > 0 && lineEnd(l.lines[n-1]) != "" {
		l.lines = append(l.lines, "") // what comes after the last line end
	}
	match := c.Str("match", "")
	if match == "" && !c.Has("before") && !c.Has("after") {
		match = l.content
	}
	for _, p := range []struct {
		to   *[]string
		expr string
	}{{&l.match, match}, {&l.before, c.Str("before", "")}, {&l.after, c.Str("after", "")}} {
		var bad string
		if *p.to, bad = l.matching(p.expr); bad != "" {
			return core.Failf("%s", bad)
		}
	}
	if bad := l.edit(); bad != "" {
		return core.Failf("%s", bad)
	}
	if !c.Args.Has("backup") {
		c.Args.SetStr("backup", false)
	}
	ret := writeEdit(c, path, text, l.text(), "Changes were made", "Changes would be made")
	if attributes.Len() > 0 && ret.Result != core.False {
		if !ret.Changed() {
			ret.Comment = map[bool]string{false: "Changes were made", true: "Changes would be made"}[c.Test]
		}
		for _, e := range attributes.Items() {
			ret.Set(py.Str(e.Key), e.Value)
		}
		if c.Test {
			ret.Result = core.None
		}
	}
	return ret
}

// lineFile returns what file.line does before it reads: it creates the file if create is set, and sets the given owner and mode, which are the changes
// that it returns. Salt does so, too, and reports neither these changes nor their failure. fail ends the state.
func lineFile(c *core.Call) (changes *py.Dict, fail *core.Return) {
	stop := func(r core.Return) (*py.Dict, *core.Return) { return nil, &r }
	path := c.ExpandUser(c.Name)
	m := Managed{Mode: c.Mode("file_mode")}
	var bad string
	if m.Owner, bad = c.Owner(); bad != "" {
		return stop(core.Failf("%s", bad))
	}
	switch {
	case !filepath.IsAbs(path) || core.IsDir(path):
	case core.Exists(path):
		changes, err := c.Enforce(path, m.Owner, m.Mode, true)
		if err != nil {
			return stop(core.Failf("Failed to change owner or mode of %s: %s", path, core.Cause(err)))
		}
		return changes, nil
	case c.Bool("create", false) && c.Test:
		return stop(core.Would(py.NewDict("new", path), "File %s is set to be created", path))
	case c.Bool("create", false):
		if err := WriteNew(c, path, m); err != nil && !errors.Is(err, fs.ErrNotExist) { // no folder: there is no file to read
			return stop(core.Failf("%s", core.Cause(err)))
		}
	}
	return nil, nil
}

// lineEdit is one edit by file.line, of lines with their ends. It follows Salt, modules/file.py, _set_line.
type lineEdit struct {
	mode, location, content string
	indent                  bool
	lines                   []string
	match, before, after    []string // the lines that an expression matches
}

// matching returns the lines that contain a text or match it as a regular expression.
func (l *lineEdit) matching(expr string) ([]string, string) {
	if expr == "" || len(l.lines) == 0 {
		return nil, ""
	}
	re, bad := regex.Text(expr, "s")
	if bad != "" {
		return nil, bad
	}
	var out []string
	for _, line := range l.lines {
		if re.Matches(line, false) || strings.Contains(line, expr) {
			out = append(out, line)
		}
	}
	return out, ""
}

// indented returns the content with the indentation of a line.
func (l *lineEdit) indented(at int) string {
	if !l.indent {
		return l.content
	}
	line := l.lines[(at+len(l.lines))%len(l.lines)] // before the first one is the last
	bare := strings.TrimLeft(line, " \t")
	return line[:len(line)-len(bare)] + strings.TrimLeftFunc(l.content, pySpace)
}

func (l *lineEdit) insert(at int, line string) { l.lines = slices.Insert(l.lines, at, line) }

// same reports whether a line is the content, ignoring line ends.
func (l *lineEdit) same(at int) bool {
	return at >= 0 && at < len(l.lines) && strings.TrimRight(l.lines[at], "\r\n") == strings.TrimRight(l.content, "\r\n")
}

// edit changes the lines; the string is Salt's error message.
func (l *lineEdit) edit() string {
	switch l.mode {
	case "insert", "ensure":
		return l.insertOrEnsure()
	case "delete":
		if len(l.match) > 0 {
			l.lines = slices.DeleteFunc(l.lines, func(line string) bool { return line == l.match[0] })
		}
	case "replace":
		if len(l.match) > 0 {
			at := slices.Index(l.lines, l.match[0])
			l.lines[at] = l.indented(at)
		}
	default:
		return "Unknown mode: \"" + l.mode + "\""
	}
	return ""
}

// insertOrEnsure is insert and ensure.
func (l *lineEdit) insertOrEnsure() string {
	if l.mode == "insert" && l.location != "" {
		l.atEdge()
		return ""
	}
	for _, p := range []struct {
		name  string
		found []string
	}{{"after", l.after}, {"before", l.before}} {
		if len(p.found) > 1 {
			return "Found more than expected occurrences in \"" + p.name + "\" expression"
		}
	}
	first, last := -1, -1
	if len(l.after) > 0 {
		first = slices.Index(l.lines, l.after[0])
	}
	if len(l.before) > 0 {
		last = slices.Index(l.lines, l.before[0])
	}
	switch {
	case first >= 0 && last >= 0 && l.mode == "insert":
		l.insert(last, l.indented(last))
	case first >= 0 && last >= 0:
		return l.between(first, last)
	case first >= 0:
		if !l.same(first + 1) {
			l.insert(first+1, l.indented(first))
		}
	case last >= 0 && l.mode == "insert":
		if !l.same((last - 1 + len(l.lines)) % len(l.lines)) { // Salt uses the last line if there is none before
			l.insert(last, l.indented(last))
		}
	case last >= 0:
		if last == 0 || !l.same(last-1) {
			l.insert(last, l.indented(last-1))
		}
	case l.mode == "insert":
		return "On insert either \"location\" or \"before/after\" conditions are required."
	default:
		return "Wrong conditions? Unable to ensure line without knowing where to put it before and/or after."
	}
	return ""
}

// between is ensure with both neighbours.
func (l *lineEdit) between(first, last int) string {
	if slices.ContainsFunc(l.lines, func(line string) bool { return strings.TrimLeftFunc(line, pySpace) == l.content }) {
		return ""
	}
	switch last - first {
	case 1:
		l.insert(first+1, l.indented(first))
	case 2:
		l.lines[first+1] = l.indented(first)
	default:
		return "Found more than one line between boundaries \"before\" and \"after\"."
	}
	return ""
}

// atEdge inserts at the start or the end. A line that exists already is not added again, and the last line ends like the others: both differ from Salt.
func (l *lineEdit) atEdge() {
	bare := func(at int) bool { return strings.TrimSpace(l.lines[at]) == strings.TrimSpace(l.content) }
	n := len(l.lines)
	if n > 1 && l.lines[n-1] == "" {
		n--
	}
	switch {
	case n == 0:
		l.lines = []string{l.content + "\n"}
	case l.location == "end" && !bare(n-1):
		end := lineEnd(l.lines[n-1])
		if end == "" {
			end = "\n"
			l.lines[n-1] += end
		}
		l.insert(n, strings.TrimRight(l.indented(n-1), "\r\n")+end)
	case l.location == "start" && !bare(0):
		l.insert(0, withLineEnd(l.lines[0], l.content))
	}
}

// text returns the lines as one. A line without a line end gets that of a nearby line.
func (l *lineEdit) text() string {
	for i, line := range l.lines {
		if lineEnd(line) == "" && i+1 < len(l.lines) {
			near := i - 1
			if i < 2 { // as Salt looks for it
				near = 1
			}
			l.lines[i] = withLineEnd(l.lines[near], line)
		}
	}
	return strings.Join(l.lines, "")
}

// lineEnd returns the line end of a line, "" if it has none.
func lineEnd(line string) string {
	switch {
	case strings.HasSuffix(line, "\r\n"):
		return "\r\n"
	case strings.HasSuffix(line, "\n"):
		return "\n"
	case strings.HasSuffix(line, "\r"):
		return "\r"
	}
	return ""
}

// withLineEnd returns a line with the line end of another one.
func withLineEnd(like, line string) string {
	end := lineEnd(like)
	if end == "" {
		end = "\n"
	}
	return strings.TrimRightFunc(line, pySpace) + end
}

func fileHardlink(c *core.Call) core.Return {
	name, target := c.ExpandUser(c.Name), c.ExpandUser(c.Str("target", ""))
	o, complaint := c.Owner()
	switch {
	case complaint != "":
		return core.Failf("%s", complaint)
	case !filepath.IsAbs(name):
		return core.Failf("Specified file %s is not an absolute path", name)
	case !filepath.IsAbs(target):
		return core.Failf("Specified target %s is not an absolute path", target)
	case !core.Exists(target):
		return core.Failf("Target %s for hard link does not exist", target)
	}
	a, err1 := os.Stat(target)
	b, err2 := os.Lstat(name)
	switch {
	case err1 == nil && err2 == nil && os.SameFile(a, b):
		if c.Test { // Salt has words of its own for each
			return core.OKf("The hard link %s is presently targetting %s", name, target) //nolint:misspell // Salt spells it so
		}
		return core.OKf("Target of hard link %s is already pointing to %s", name, target)
	case err2 == nil && !c.Bool("force", false):
		if c.Test {
			return core.Failf("File or directory exists where the hard link %s should be. Did you mean to use force?", name)
		}
		return core.Failf("File exists where the hard link %s should be", name)
	case c.Test:
		return core.Would(py.NewDict("new", name), "Hard link %s to %s is set for creation", name, target)
	}
	if dir := filepath.Dir(name); !core.IsDir(dir) {
		if !c.Bool("makedirs", false) {
			return core.Failf("Directory %s for hard link is not present", dir)
		}
		if err := c.MakeDirs(dir, o, c.Mode("dir_mode")); err != nil {
			return core.Failf("%s", core.Cause(err))
		}
	}
	if err2 == nil {
		if err := c.RemoveAll(name); err != nil {
			return core.Failf("%s", core.Cause(err))
		}
	}
	if err := c.Link(target, name); err != nil {
		return core.Failf("Unable to create new hard link %s -> %s: %s", name, target, core.Cause(err))
	}
	return core.Return{Result: core.True, Changes: py.NewDict("new", name), Comment: "Created new hard link " + name + " -> " + target}
}
