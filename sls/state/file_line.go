package state

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"corpus-git/internal/py"
)

func addFileLine(t *Table) {
	t.add("file.line", "content match mode location before after show_changes backup quiet indent create user group file_mode", fileLine)
	t.add("file.keyvalue", "key value key_values separator append_if_not_found prepend_if_not_found search_only show_changes "+
		"ignore_if_missing count uncomment key_ignore_case value_ignore_case create_if_missing prune", fileKeyValue)
	t.add("file.hardlink", "target! force makedirs user group dir_mode", fileHardlink)
}

// fileLine implements file.line: one line that is there, is not, or replaces another.
// Source: Salt documentation, file state, line.
func fileLine(c *Call) Return {
	if !c.has("mode") {
		return Failf("Mode was not defined. How to process the file?")
	}
	mode := c.str("mode", "")
	path := c.expand(c.Name)
	if !exists(path) && c.boolean("create", false) && filepath.IsAbs(path) {
		if c.Test {
			return Would(py.NewDict("new", path), "File %s is set to be created", path)
		}
		if err := c.writeNew(path, managed{}); err != nil {
			return Failf("%s", why(err))
		}
	}
	path, text, fail := c.editable()
	if fail != nil {
		return *fail
	}
	content := strings.TrimRight(c.str("content", ""), "\r\n")
	match := c.str("match", content)
	if mode != "delete" && content == "" {
		return Failf("Content can only be empty if mode is \"delete\"")
	}
	lines := pySplitLines(text)
	find := func(p string) int {
		if p == "" {
			return -1
		}
		re, err := regexp.Compile(p)
		return slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, p) || err == nil && re.MatchString(l) })
	}
	like := func(at int) string {
		if at >= 0 && at < len(lines) && c.boolean("indent", true) {
			bare := strings.TrimLeft(lines[at], " \t")
			return lines[at][:len(lines[at])-len(bare)] + strings.TrimLeft(content, " \t")
		}
		return content
	}
	var bad string
	switch mode {
	case "delete":
		lines = slices.DeleteFunc(lines, func(l string) bool {
			re, err := regexp.Compile(match)
			return strings.Contains(l, match) || err == nil && re.MatchString(l)
		})
	case "replace":
		if at := find(match); at >= 0 {
			lines[at] = like(at)
		}
	case "insert", "ensure":
		lines, bad = c.insertLine(lines, content, mode, find, like)
	default:
		return Failf("Unknown mode: \"%s\"", mode)
	}
	if bad != "" {
		return Failf("%s", bad)
	}
	out := strings.Join(lines, "\n")
	if len(lines) > 0 {
		out += "\n"
	}
	if !c.Args.Has("backup") {
		c.Args.SetStr("backup", false)
	}
	return c.commit(path, text, out, "Changes were made", "Changes would be made")
}

func (c *Call) insertLine(lines []string, content, mode string, find func(string) int, like func(int) string) ([]string, string) {
	bare := func(l string) string { return strings.TrimSpace(l) }
	before, after := find(c.str("before", "")), find(c.str("after", ""))
	if c.has("before") && before < 0 || c.has("after") && after < 0 {
		return lines, "Neither before or after was found in file."
	}
	switch loc := c.str("location", ""); {
	case c.has("before") && c.has("after"):
		if after > before {
			return lines, "The line of after stands below that of before"
		}
		if mode == "ensure" && before-after == 2 {
			lines[after+1] = like(after)
			return lines, ""
		}
		if mode == "ensure" && before-after > 2 {
			return lines, "Found more than one line between boundaries \"before\" and \"after\"."
		}
		return slices.Insert(lines, before, like(after)), ""
	case c.has("before"):
		if before > 0 && bare(lines[before-1]) == bare(content) {
			return lines, ""
		}
		return slices.Insert(lines, before, like(before)), ""
	case c.has("after"):
		if after+1 < len(lines) && bare(lines[after+1]) == bare(content) {
			return lines, ""
		}
		return slices.Insert(lines, after+1, like(after)), ""
	case mode == "ensure":
		return lines, "Wrong conditions? Unable to ensure line without knowing where to put it before and/or after."
	case loc == "start":
		if len(lines) > 0 && bare(lines[0]) == bare(content) {
			return lines, ""
		}
		return slices.Insert(lines, 0, content), ""
	case loc == "end":
		if n := len(lines); n > 0 && bare(lines[n-1]) == bare(content) {
			return lines, ""
		}
		return append(lines, content), ""
	}
	return lines, "On insert either \"location\" or \"before/after\" conditions are required."
}

func fileHardlink(c *Call) Return {
	name, target := c.expand(c.Name), c.expand(c.str("target", ""))
	o, complaint := c.owner()
	switch {
	case complaint != "":
		return Failf("%s", complaint)
	case !filepath.IsAbs(name):
		return Failf("Specified file %s is not an absolute path", name)
	case !filepath.IsAbs(target):
		return Failf("Specified target %s is not an absolute path", target)
	case !exists(target):
		return Failf("Target %s for hard link does not exist", target)
	}
	a, err1 := os.Stat(target)
	b, err2 := os.Lstat(name)
	switch {
	case err1 == nil && err2 == nil && os.SameFile(a, b):
		if c.Test { // Salt has words of its own for each
			return OKf("The hard link %s is presently targetting %s", name, target) //nolint:misspell // Salt spells it so
		}
		return OKf("Target of hard link %s is already pointing to %s", name, target)
	case err2 == nil && !c.boolean("force", false):
		if c.Test {
			return Failf("File or directory exists where the hard link %s should be. Did you mean to use force?", name)
		}
		return Failf("File exists where the hard link %s should be", name)
	case c.Test:
		return Would(py.NewDict("new", name), "Hard link %s to %s is set for creation", name, target)
	}
	if dir := filepath.Dir(name); !isDir(dir) {
		if !c.boolean("makedirs", false) {
			return Failf("Directory %s for hard link is not present", dir)
		}
		if err := c.makeDirs(dir, o, c.mode("dir_mode")); err != nil {
			return Failf("%s", why(err))
		}
	}
	if err2 == nil {
		if err := os.RemoveAll(name); err != nil {
			return Failf("%s", why(err))
		}
	}
	if err := os.Link(target, name); err != nil {
		return Failf("Unable to create new hard link %s -> %s: %s", name, target, why(err))
	}
	return Return{Result: True, Changes: py.NewDict("new", name), Comment: "Created new hard link " + name + " -> " + target}
}
