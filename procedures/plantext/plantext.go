// Package plantext formats what a plan reports of files and states: pure functions. It does not redact by itself: State is passed a
// function for that.
package plantext

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"corpus-git/internal/humanize"
	"corpus-git/project"
	"corpus-git/sls"
)

// width is the length from which the object of a state is printed on its own line.
const width = 100

// maxDiffLines is the maximum number of lines of one file's diff that a plan shows.
const maxDiffLines = 200

// Files returns the files that a deployment adds, changes and removes.
func Files(desc project.Description) []string {
	out := make([]string, 0, len(desc.Paths)+1)
	for i, p := range desc.Paths {
		mark := "~ "
		if i < len(desc.Kinds) {
			switch desc.Kinds[i] {
			case 'A':
				mark = "+ "
			case 'D':
				mark = "- "
			}
		}
		out = append(out, mark+p)
	}
	return out
}

// State describes what one state would do; it returns nothing if the state would change nothing. Names are not shortened. All texts are
// redacted before they are split into lines: otherwise a secret that spans lines would not be found.
func State(st sls.StateResult, hide func(string) string) []string {
	mark := "~ "
	switch {
	case st.Outcome == sls.FailedState:
		mark = "! "
	case st.Outcome != sls.WouldChange && !st.Changed:
		return nil
	}
	out := title(mark+st.ID+"  "+st.Function, hide(subject(st)))
	for _, what := range st.Unevaluated {
		out = append(out, indented([]string{what + " not evaluated in a plan"})...)
	}
	if mark == "! " {
		return append(out, indented(textLines(hide(st.Comment)))...)
	}
	out = append(out, indented(textLines(hide(strings.Join(changes(st), "\n"))))...)
	return append(out, indented(diff(hide(st.Diff)))...)
}

// subject returns what a state acts on, "" if its ID is the same.
func subject(st sls.StateResult) string {
	what := st.Name
	if st.Command != nil {
		what = st.Command.Line
	}
	if what = strings.TrimSpace(what); what == st.ID {
		return ""
	}
	return what
}

// title returns the line of a state; an object that is long, or has several lines, goes below it.
func title(title, subject string) []string {
	switch {
	case subject == "":
		return []string{title}
	case !strings.Contains(subject, "\n") && len(title)+len(subject)+2 <= width:
		return []string{title + ": " + subject}
	}
	return append([]string{title}, indented(textLines(subject))...)
}

// diff returns a diff without the file names above it, shortened if it is long.
func diff(diff string) []string {
	lines := textLines(diff)
	if len(lines) > 2 && strings.TrimSpace(lines[0]) == "---" && strings.TrimSpace(lines[1]) == "+++" {
		lines = lines[2:]
	}
	if more := len(lines) - maxDiffLines; more > 0 {
		lines = append(lines[:maxDiffLines:maxDiffLines], fmt.Sprintf("and %s more", humanize.Plural(more, "line")))
	}
	return lines
}

// changes returns the changes that a state reports besides a diff: a mode, an owner, a version.
func changes(st sls.StateResult) []string {
	var changes map[string]any
	if json.Unmarshal(st.Changes, &changes) != nil {
		return nil
	}
	same := func(v any) bool { // already in the line of the state
		return v == st.Name || st.Command != nil && v == st.Command.Line
	}
	var out []string
	var walk func(at string, m map[string]any)
	walk = func(at string, m map[string]any) {
		keys := make([]string, 0, len(m))
		for k := range m {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			// Paths below that of the state are shown relative to it.
			label := strings.TrimSpace(at + " " + strings.TrimPrefix(k, strings.TrimRight(st.Name, "/")+"/"))
			if k == st.Name || strings.HasSuffix(k, "/"+at) && at != "" {
				label = at
			}
			switch v := m[k].(type) {
			case map[string]any:
				if change, ok := oldToNew(v); ok {
					out = append(out, label+": "+change)
				} else {
					walk(label, v)
				}
			default:
				switch {
				case k == "diff" && st.Diff != "" || k == "pid" || k == "cmd" && same(v) || st.Function == "mc_proxy.hook":
				case k == "newfile":
					out = append(out, strings.TrimPrefix(at+": new file", ": "))
				case k == "directory" && v == "new":
					out = append(out, strings.TrimPrefix(at+": new directory", ": "))
				case same(v) || v == true:
					out = append(out, label)
				case label == "":
					out = append(out, value(v))
				default:
					out = append(out, label+": "+value(v))
				}
			}
		}
	}
	walk("", changes)
	return slices.DeleteFunc(out, func(l string) bool { return l == "" })
}

// oldToNew returns a change of Salt's form {old: …, new: …} in words.
func oldToNew(m map[string]any) (string, bool) {
	was, hasOld := m["old"]
	is, hasNew := m["new"]
	if !hasOld || !hasNew || len(m) != 2 {
		return "", false
	}
	if s := value(was); s != "" {
		return s + " to " + value(is), true
	}
	return value(is), true
}

func value(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case []any:
		var words []string
		for _, it := range x {
			words = append(words, value(it))
		}
		return strings.Join(words, ", ")
	case map[string]any:
		b, err := json.Marshal(x)
		if err != nil {
			return ""
		}
		return string(b)
	}
	return fmt.Sprint(v)
}

func textLines(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return strings.Split(strings.TrimRight(text, "\n"), "\n")
}

func indented(lines []string) []string {
	for i := range lines {
		lines[i] = "    " + lines[i]
	}
	return lines
}
