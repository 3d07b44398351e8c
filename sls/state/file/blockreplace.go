package file

import (
	"slices"
	"strings"

	"corpus-git/sls/state/core"
	"corpus-git/sls/state/regex"
)

// fileBlock implements file.blockreplace. Source: Salt documentation, file execution module, blockreplace.
func fileBlock(c *core.Call) core.Return {
	path, text, fail := readForEdit(c)
	if fail != nil {
		return *fail
	}
	app, pre := c.Bool("append_if_not_found", false), c.Bool("prepend_if_not_found", false)
	before, after := c.Str("insert_before_match", ""), c.Str("insert_after_match", "")
	n := 0
	for _, on := range []bool{app, pre, before != "", after != ""} {
		if on {
			n++
		}
	}
	if n > 1 {
		return core.Failf("Encountered error managing block: Only one of append_if_not_found, prepend_if_not_found, insert_before_match, and insert_after_match is permitted. See the log for details.")
	}
	content := c.Str("content", "")
	for _, p := range accumulated(c, path) {
		if content != "" {
			content += "\n"
		}
		content += p
	}
	if c.Bool("source", false) || c.Has("sources") {
		pieces, bad := readTexts(c)
		if bad != "" {
			return core.Failf("%s", bad)
		}
		content += strings.Join(pieces, "")
	}
	lines := core.SplitKeep(text)
	b := block{start: c.Str("marker_start", "#-- start managed zone --"), end: c.Str("marker_end", "#-- end managed zone --"),
		content: strings.Split(strings.ReplaceAll(content, "\r\n", "\n"), "\n"), newline: !strings.HasSuffix(content, "\n"), eol: "\n"}
	if v, ok := c.Args.GetStr("append_newline"); ok && v != nil {
		b.newline = c.Bool("append_newline", false)
	}
	if len(lines) > 0 && strings.HasSuffix(lines[0], "\r\n") {
		b.eol = "\r\n"
	}
	out, found, open := b.replaced(lines)
	if open {
		return core.Failf("Encountered error managing block: Unterminated marked block. End of file reached before marker_end.. See the log for details.")
	}
	if !found {
		whole := append([]string{b.start + b.eol}, b.inside(b.end)...)
		switch {
		case pre:
			out = append(whole, out...)
		case app:
			if n := len(out); n > 0 && !strings.HasSuffix(out[n-1], b.eol) {
				out[n-1] += b.eol
			}
			out = append(out, whole...)
		case before != "" || after != "":
			re, bad := regex.Text(before+after, "")
			if bad != "" {
				return core.Failf("%s", bad)
			}
			at := slices.IndexFunc(out, func(l string) bool { return re.Matches(l, false) })
			if at < 0 {
				return core.Failf("Encountered error managing block: Cannot edit marked block. Markers were not found in file.. See the log for details.")
			}
			if after != "" {
				at++
			}
			out = slices.Insert(out, at, whole...)
		default:
			return core.Failf("Encountered error managing block: Cannot edit marked block. Markers were not found in file.. See the log for details.")
		}
	}
	return writeEdit(c, path, text, strings.Join(out, ""), "Changes were made", "Changes would be made")
}

// block is the text between two markers.
type block struct {
	start, end string
	content    []string
	// newline puts the end marker on its own line; eol is the line end of the file.
	newline bool
	eol     string
}

// inside returns the content, with the line of the end marker.
func (b block) inside(endLine string) []string {
	last := len(b.content) - 1
	var out []string
	for _, l := range b.content[:last] {
		out = append(out, l+b.eol)
	}
	endLine = strings.TrimRight(endLine, "\r\n") + b.eol
	if b.newline {
		return append(out, b.content[last]+b.eol, endLine)
	}
	return append(out, b.content[last]+endLine)
}

// replaced returns the lines with every block replaced; open reports that the last block has no end.
func (b block) replaced(lines []string) (out []string, found, open bool) {
	for _, l := range lines {
		switch at := strings.Index(l, b.end); {
		case strings.Contains(l, b.start):
			open = true
			out = append(out, l)
		case !open:
			out = append(out, l)
		case at >= 0:
			open, found = false, true
			out = append(out, b.inside(l[at:])...)
		}
	}
	return out, found, open
}
