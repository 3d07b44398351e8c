package render

import (
	"fmt"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/jinja"
)

// OwnOptions returns the line of a template on which it chooses options of Jinja for itself, which Salt 3008 honours and takes
// out, and its text; 0 if there is none. It is the first one, or the one below #!jinja|yaml, and holds a JSON object.
// Source: salt/utils/templates.py, parse_jinja_file_opts.
func OwnOptions(src string) (line int, text string) {
	if !strings.Contains(src, "#jinja2:") { // hardly any has, and all are asked each time
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

// refuseOptions is the error of a template with options of its own, which this package does not have.
func refuseOptions(name, src string) error {
	if line, _ := OwnOptions(src); line > 0 {
		return &jinja.Error{Template: name, Line: line, Class: jinja.ClassSyntax, Msg: fmt.Sprintf("only Salt honours %s", OwnOptionsName)}
	}
	return nil
}

// OwnOptionsName is how messages call such a line.
const OwnOptionsName = "a template's own options (#jinja2:)"
