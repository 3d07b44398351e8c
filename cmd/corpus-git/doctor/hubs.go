package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"corpus-git/cluster/member"
	"corpus-git/cmd/corpus-git/control"
	"corpus-git/layout"
	"corpus-git/project/status"
)

// hubTime is how long the server may take to say what it knows of the hubs.
const hubTime = 15 * time.Second

// hubs asks the server about the other hubs, if this machine is one of several.
func (d Doctor) hubs(ctx context.Context, add adder, state layout.State) {
	_, there, err := member.LoadSelf(state)
	if err != nil {
		add("hubs", "failed", "", "%v", err)
	}
	if err != nil || !there {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, hubTime)
	defer cancel()
	c, err := control.Dial(state.Socket())
	if errors.Is(err, control.ErrNoServer) {
		add("hubs", "warning", "start it:  systemctl start corpus-git , or  corpus-git serve", "this machine is one of several hubs, and its server does not run: it misses what the others do")
		return
	}
	var doc status.Hubs
	if err == nil {
		defer c.Close()
		var out, errs bytes.Buffer
		if _, err = c.Do(ctx, control.Request{Argv: []string{"hub", "list", "--json"}}, strings.NewReader(""), &out, &errs); err == nil {
			if err = json.Unmarshal(out.Bytes(), &doc); err != nil && errs.Len() > 0 {
				err = errors.New(strings.TrimSpace(errs.String()))
			}
		}
	}
	if err != nil {
		add("hubs", "failed", "", "the server does not say what it knows of the other hubs: %v", err)
		return
	}
	for _, p := range doc.Problems {
		how := "warning"
		if p.Hub == "" || p.Hub == doc.Self {
			how = "failed"
		}
		add("hubs", how, p.Hint, "%s", p.Problem)
	}
	problems := len(doc.Problems)
	if doc.Formed {
		// The hub uses the NATS server of another one, and says nothing; the agents that know only this one's can't.
		if _, err := member.Clustered(state); err != nil {
			problems++
			add("hubs", "warning", "look at its log, its certificate and its keys, and restart it:  nats-server -c "+filepath.Join(state.NATS(), "nats.conf"), "the NATS server beside this hub: %v", err)
		}
	}
	switch {
	case problems > 0:
	case !doc.Formed:
		add("hubs", "ok", "", "%d, which do not share their state yet", len(doc.Hubs))
	default:
		add("hubs", "ok", "", "%d, of which %s leads (epoch %d); this one is %s", len(doc.Hubs), doc.Leader, doc.Epoch, doc.Self)
	}
}
