package compile

import (
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/sls/jinja"
)

// source is a file that was rendered: the text that a user wrote and the text that YAML parsed.
type source struct {
	sls     string
	display string // how messages name the file
	isInit  bool   // the file is <dir>/init.sls
	lines   []string
	// from maps lines of the rendered text to the template lines that produced them; nil if the file was not rendered.
	from *jinja.Lines
}

// pos is a position in a source, by rendered line; a zero pos is unknown.
type pos struct {
	src  *source
	line int
}

// at returns the position in the file as the user wrote it: the file itself, or a template that it imports or includes.
// The text of the line is the file's own, never the rendered one, which could hold a pillar value.
func (p pos) at() fault.Pos {
	if p.src == nil {
		return fault.Pos{}
	}
	out := fault.Pos{File: p.src.display}
	if p.src.from != nil {
		if s, ok := p.src.from.Source(p.line); ok {
			return fault.Pos{File: s.Template, Line: s.Line, Text: s.Text}
		}
		return out
	}
	if p.line > 0 && p.line <= len(p.src.lines) {
		out.Line, out.Text = p.line, strings.TrimRight(p.src.lines[p.line-1], "\r")
	}
	return out
}

// Op is the name of a compilation in errors.
const Op = "compile"

// failf returns an error that the author of a file caused.
func failf(p pos, format string, args ...any) *fault.Error {
	return fault.New(fault.Failed, "", format, args...).WithPos(p.at())
}
