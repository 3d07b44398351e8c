package waiting

import (
	"context"
	"encoding/json"
	"io/fs"
	"path"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/internal/redact"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/signals"
)

// Signals receives the signals of waits.
type Signals interface {
	// Begin makes the signals of a deployment's waits acceptable. What is recorded about them is passed through hide.
	Begin(ctx context.Context, d project.Deployment, hide func(string) string, waits ...signals.Wait) error
	// Reopen makes the signals of waits acceptable again that an earlier process left open; see signals.Store.Reopen.
	Reopen(ctx context.Context, id project.ID, hide func(string) string) error
	// Wait pauses; see signals.Store.Wait.
	Wait(ctx context.Context, id project.ID, wait, step string, note func(signals.WaitStatus)) (signals.Outcome, error)
	// Data returns the data of a wait's signals when the commit was last deployed and the wait was completed.
	Data(ctx context.Context, d project.Deployment, wait string) (map[string]json.RawMessage, error)
	// Address returns the URL to which the signal with a name is sent, "" if the server has no HTTP address, and its secret part.
	Address(id project.ID, wait, name string) (url, secret string)
}

// Shown returns the name of the declarations in messages.
func Shown() string { return path.Join(layout.SaltDir, signals.File) }

// Set is what a recipe declares, with the addresses of its signals. The zero value declares nothing.
type Set struct {
	list []signals.Wait
	urls map[string][]string // by wait, in the order of its names
}

// Read reads what a recipe declares; steps are the names of the steps that may wait.
func Read(files fs.FS, steps []string) (Set, error) {
	list, err := signals.Read(files, Shown(), steps)
	return Set{list: list}, err
}

// Len returns the number of declared waits.
func (s Set) Len() int { return len(s.list) }

// Address creates the addresses of the signals for one deployment, and returns their secret parts. over reports that they may be sent over
// HTTP; with no Signals all are "".
func (s *Set) Address(id project.ID, to Signals) (secrets []redact.Secret, over bool) {
	s.urls = map[string][]string{}
	for _, w := range s.list {
		for _, name := range w.Names {
			url := ""
			if to != nil {
				var secret string
				url, secret = to.Address(id, w.ID, name)
				secrets = append(secrets, redact.Secret{Label: w.ID + "." + name, Value: secret, Whose: "signal"})
			}
			s.urls[w.ID] = append(s.urls[w.ID], url)
			over = over || url != ""
		}
	}
	return secrets, over
}

// Environ returns the variables that name the addresses to steps.
func (s Set) Environ() (out []string) {
	for _, w := range s.list {
		out = append(out, w.Variable()+"="+strings.Join(s.urls[w.ID], " "))
	}
	return out
}

// Into adds the addresses to cfg: signals, the wait, url and urls.
func (s Set) Into(cfg *py.Dict) {
	if len(s.list) == 0 {
		return
	}
	all := py.NewDict()
	for _, w := range s.list {
		urls := py.NewDict()
		for i, name := range w.Names {
			urls.SetStr(name, s.urls[w.ID][i])
		}
		all.SetStr(w.ID, py.NewDict("url", s.urls[w.ID][0], "urls", urls))
	}
	cfg.SetStr("signals", all)
}

// find returns the declaration of a wait.
func (s Set) find(id string) (signals.Wait, bool) {
	i := slices.IndexFunc(s.list, func(w signals.Wait) bool { return w.ID == id })
	if i < 0 {
		return signals.Undeclared(id), false
	}
	return s.list[i], true
}
