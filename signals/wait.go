package signals

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/internal/nearest"
	"corpus-git/internal/py"
	"corpus-git/internal/quantity"
	"corpus-git/internal/saltyaml"
	"corpus-git/internal/vfs"
)

// File is the file in which a recipe declares its waits.
const File = "waits.yaml"

// Limits of what a recipe declares.
const (
	maxFile        = 1 << 20
	maxWaits       = 100
	maxNames       = 1000
	maxName        = 100
	maxTimeout     = 30 * 24 * time.Hour
	defaultTimeout = time.Hour
)

// Wait is the declaration of one wait.
type Wait struct {
	ID string
	// Step is the step after which the deployment waits; "" if a state corpus.wait does.
	Step string
	// Names are the names of the signals: those listed in from, otherwise the numbers 1 to count.
	Names []string
	// Named: from lists them, so a signal with another name is refused.
	Named   bool
	Timeout time.Duration
	// Continue: a timeout, or a signal with FAILURE, is not an error.
	Continue bool
}

// Variable returns the name of the environment variable with the addresses of the wait's signals.
func (w Wait) Variable() string {
	return "CORPUS_SIGNAL_" + strings.ToUpper(strings.ReplaceAll(w.ID, "-", "_"))
}

// keys returns the keys of a declaration, stateKeys those of a state.
func keys() []string      { return append(stateKeys(), "step") }
func stateKeys() []string { return []string{"count", "from", "timeout", "on_failure"} }

// Read reads .salt/waits.yaml; none if there is no such file. shown is its name in messages, steps are the names of the recipe's
// steps. Errors are fault.Failed with the position.
func Read(files fs.FS, shown string, steps []string) ([]Wait, error) {
	text, err := fs.ReadFile(vfs.Bounded{FS: files, Max: maxFile}, File)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, fault.New(fault.KindOf(err), "read "+shown, "%w", err)
	}
	doc, err := saltyaml.Parse(shown, text, saltyaml.Options{MaxBytes: maxFile, MaxDepth: 20})
	if err != nil || doc.Root == nil {
		return nil, err
	}
	bad := func(at *saltyaml.Node, format string, args ...any) *fault.Error {
		return fault.New(fault.Failed, "read "+shown, format, args...).WithPos(doc.Pos(at))
	}
	if doc.Root.Kind != saltyaml.Mapping {
		return nil, bad(doc.Root, "the file must be a mapping of waits").WithHint("as in  workers: {step: 040_start, count: 3, timeout: 10m}")
	}
	if len(doc.Root.Keys) > maxWaits {
		return nil, bad(doc.Root, "more than %d waits", maxWaits)
	}
	var out []Wait
	for i, k := range doc.Root.Keys {
		id, ok := k.Value.(string)
		if !ok || !validID(id) {
			return nil, bad(k, "the name of a wait is a letter, and letters, digits, _ and -")
		}
		n := doc.Root.Items[i]
		w, err := parse(id, n, keys(), bad)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(o Wait) bool { return o.Variable() == w.Variable() }) {
			return nil, bad(k, "%s has the variable of another wait, %s", id, w.Variable()).WithHint("choose another name")
		}
		if w.Step != "" && !slices.Contains(steps, w.Step) {
			e := bad(n.Items[slices.IndexFunc(n.Keys, func(k *saltyaml.Node) bool { return k.Value == "step" })], "no step %s", w.Step)
			if near := nearest.To(w.Step, steps); near != "" {
				return nil, e.WithHint("did you mean  %s?", near).WithFix(w.Step, near)
			}
			return nil, e.WithHint("the name of a step is its file name without the extension")
		}
		out = append(out, w)
	}
	return out, nil
}

// parse reads one declaration.
func parse(id string, n *saltyaml.Node, known []string, bad func(*saltyaml.Node, string, ...any) *fault.Error) (Wait, error) {
	w := Wait{ID: id, Timeout: defaultTimeout}
	if n.Kind != saltyaml.Mapping {
		return w, bad(n, "%s must be a mapping", id).WithHint("as in  %s: {count: 3, timeout: 10m}", id)
	}
	seen := map[string]bool{}
	for i, k := range n.Keys {
		key := py.Str(k.Value)
		if !slices.Contains(known, key) {
			e := bad(k, "unknown key %s", key)
			if near := nearest.To(key, known); near != "" {
				return w, e.WithHint("did you mean  %s?", near).WithFix(key, near)
			}
			return w, e.WithHint("the keys are: %s", strings.Join(known, ", "))
		}
		seen[key] = true
		if why := w.set(key, n.Items[i].Value); why != "" {
			return w, bad(n.Items[i], "%s %s", key, why)
		}
	}
	if seen["count"] && seen["from"] {
		return w, bad(n, "%s has count and from: one of them says how many signals there are", id)
	}
	return w.whole(), nil
}

// Given reads the arguments of a state, which override the declaration w.
func (w Wait) Given(args *py.Dict) (Wait, error) {
	for _, key := range stateKeys() {
		v, ok := args.GetStr(key)
		if !ok {
			continue
		}
		if why := w.set(key, v); why != "" {
			return w, fmt.Errorf("%s %s", key, why)
		}
	}
	_, count := args.GetStr("count")
	if _, from := args.GetStr("from"); from && count {
		return w, fmt.Errorf("one of count and from must be given")
	}
	if !validID(w.ID) {
		return w, fmt.Errorf("the name of a wait is a letter, and letters, digits, _ and -; it is %q", py.Str(w.ID))
	}
	return w.whole(), nil
}

// Undeclared returns the wait for a state without a declaration.
func Undeclared(id string) Wait { return Wait{ID: id, Timeout: defaultTimeout} }

// whole returns w with default names.
func (w Wait) whole() Wait {
	if len(w.Names) == 0 {
		w.Names = numbers(1)
	}
	return w
}

// set sets one value, and returns what is wrong with it.
func (w *Wait) set(key string, v any) (why string) {
	switch key {
	case "step":
		s, ok := v.(string)
		if !ok || s == "" {
			return "must be the name of a step"
		}
		w.Step = s
	case "count":
		n, ok := v.(int64)
		if !ok || n < 1 || n > maxNames {
			return fmt.Sprintf("must be an integer from 1 to %d", maxNames)
		}
		w.Names, w.Named = numbers(int(n)), false
	case "from":
		l, ok := v.(*py.List)
		if !ok || l.Len() == 0 || l.Len() > maxNames {
			return "must be a list of names"
		}
		w.Names, w.Named = nil, true
		for _, item := range l.Items() {
			name, ok := item.(string)
			if !ok || !validName(name) {
				return fmt.Sprintf("must be a list of names, of letters, digits, . _ : @ and -, of at most %d bytes", maxName)
			}
			if slices.Contains(w.Names, name) {
				return "has " + name + " twice"
			}
			w.Names = append(w.Names, name)
		}
	case "timeout":
		d, ok := duration(v)
		if !ok || d <= 0 || d > maxTimeout {
			return "must be a duration such as 90s or 10m, of at most " + quantity.FormatDuration(maxTimeout)
		}
		w.Timeout = d
	case "on_failure":
		if v != "fail" && v != "continue" {
			return "must be fail or continue"
		}
		w.Continue = v == "continue"
	}
	return ""
}

// duration parses 10m, and plain numbers such as 5 and 0.5 as seconds.
func duration(v any) (time.Duration, bool) {
	switch x := v.(type) {
	case int64:
		return time.Duration(x) * time.Second, x >= 0 && x <= math.MaxInt64/int64(time.Second)
	case float64:
		return time.Duration(x * float64(time.Second)), x >= 0 && x <= maxTimeout.Seconds()
	case string:
		d, err := quantity.ParseDuration(x)
		return d, err == nil
	}
	return 0, false
}

func numbers(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = strconv.Itoa(i + 1)
	}
	return out
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// validID reports whether s is a valid name of a wait, which becomes a part of the name of a variable, except for its hyphens.
func validID(s string) bool {
	return s != "" && len(s) <= maxName && strings.Contains(letters, s[:1]) && strings.Trim(s, letters+"0123456789_-") == ""
}

// validName reports whether s is a valid name of a sender.
func validName(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) <= maxName && strings.Trim(s, letters+"0123456789._:@-") == ""
}
