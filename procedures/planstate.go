package procedures

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"corpus-git/internal/humanize"
	"corpus-git/project"
	"corpus-git/sls"
)

// planWidth is how long the line of a state may get before what it acts on goes to a line of its own.
const planWidth = 100

// planDiffLines is how much of one file's difference a plan shows.
const planDiffLines = 200

// planFiles are the files that a deployment brings, changes and removes.
func planFiles(desc project.Description) []string {
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

// planState tells of one state what it would do; nothing where it is right. Names are whole. All texts are redacted
// before they are cut to lines: a secret that runs over a line's end would not be found behind a prefix.
func (e *Env) planState(st sls.StateResult) []string {
	hide := e.Prepared.Redactor.String
	mark := "~ "
	switch {
	case st.Outcome == sls.FailedState:
		mark = "! "
	case st.Outcome != sls.WouldChange && !st.Changed:
		return nil
	}
	out := planTitle(mark+st.ID+"  "+st.Function, hide(planSubject(st)))
	for _, what := range st.Unevaluated {
		out = append(out, indented([]string{what + " not evaluated in a plan"})...)
	}
	if mark == "! " {
		return append(out, indented(textLines(hide(st.Comment)))...)
	}
	out = append(out, indented(textLines(hide(strings.Join(planChanges(st), "\n"))))...)
	return append(out, indented(planDiff(hide(st.Diff)))...)
}

// planSubject is what a state acts on, "" where its ID says so.
func planSubject(st sls.StateResult) string {
	what := st.Name
	if st.Command != nil {
		what = st.Command.Line
	}
	if what = strings.TrimSpace(what); what == st.ID {
		return ""
	}
	return what
}

// planTitle is the line of a state; what is long, or has several lines, stands below.
func planTitle(title, subject string) []string {
	switch {
	case subject == "":
		return []string{title}
	case !strings.Contains(subject, "\n") && len(title)+len(subject)+2 <= planWidth:
		return []string{title + ": " + subject}
	}
	return append([]string{title}, indented(textLines(subject))...)
}

// planDiff is a difference without the empty names above it, cut where it is long.
func planDiff(diff string) []string {
	lines := textLines(diff)
	if len(lines) > 2 && strings.TrimSpace(lines[0]) == "---" && strings.TrimSpace(lines[1]) == "+++" {
		lines = lines[2:]
	}
	if more := len(lines) - planDiffLines; more > 0 {
		lines = append(lines[:planDiffLines:planDiffLines], fmt.Sprintf("and %s more", humanize.Plural(more, "line")))
	}
	return lines
}

// planChanges are the changes that a state tells beside the difference of a text: a mode, an owner, a version.
func planChanges(st sls.StateResult) []string {
	var changes map[string]any
	if json.Unmarshal(st.Changes, &changes) != nil {
		return nil
	}
	same := func(v any) bool { // what the line of the state says already
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
			// Paths below that of the state are told from there.
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
					out = append(out, planValue(v))
				default:
					out = append(out, label+": "+planValue(v))
				}
			}
		}
	}
	walk("", changes)
	return slices.DeleteFunc(out, func(l string) bool { return l == "" })
}

// oldToNew is a change of Salt's form {old: …, new: …} in words.
func oldToNew(m map[string]any) (string, bool) {
	was, hasOld := m["old"]
	is, hasNew := m["new"]
	if !hasOld || !hasNew || len(m) != 2 {
		return "", false
	}
	if s := planValue(was); s != "" {
		return s + " to " + planValue(is), true
	}
	return planValue(is), true
}

func planValue(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case []any:
		var words []string
		for _, it := range x {
			words = append(words, planValue(it))
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
