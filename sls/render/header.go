package render

import (
	"fmt"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/jinja"
)

// OwnOptions returns the line of a template that sets Jinja options for the template, which Salt 3008 honours and removes, and
// its text; 0 if there is none. It is the first one, or the one below #!jinja|yaml, and contains a JSON object.
// Source: salt/utils/templates.py, parse_jinja_file_opts.
func OwnOptions(src string) (line int, text string) {
	if !strings.Contains(src, "#jinja2:") { // almost none has one, and all are checked each time
		return 0, ""
	}
	lines := py.SplitLines(src, true)
	at := 0
	if len(lines) > 0 && strings.HasPrefix(lines[0], "#!") && !strings.HasPrefix(lines[0], "#!/") {
		at = 1
	}
	if at >= len(lines) {
		return 0, ""
	}
	rest, ok := strings.CutPrefix(lines[at], "#jinja2:")
	if !ok {
		return 0, ""
	}
	v, err := py.FromJSON(strings.TrimSpace(rest))
	if _, isObject := v.(*py.Dict); err != nil || !isObject {
		return 0, ""
	}
	return at + 1, strings.TrimRight(lines[at], "\r\n")
}

// refuseOptions returns the error for a template with its own options, which this package does not support.
func refuseOptions(name, src string) error {
	if line, _ := OwnOptions(src); line > 0 {
		return &jinja.Error{Template: name, Line: line, Class: jinja.ClassSyntax, Msg: fmt.Sprintf("only Salt honours %s", OwnOptionsName)}
	}
	return nil
}

// OwnOptionsName is the name of such a line in messages.
const OwnOptionsName = "a template's own options (#jinja2:)"
