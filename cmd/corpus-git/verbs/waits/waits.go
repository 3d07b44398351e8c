// Package waits is the verbs about waits and signals.
//
// It owns their words, flags and output. What a verb needs of who types it, and of the server, is in Session; it decides nothing about signals, and keeps nothing.
package waits

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/verbs/nodes"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/project"
	"corpus-git/signals"
)

// Signals is the waits of all deployments.
type Signals interface {
	List(ctx context.Context, f signals.Filter) ([]signals.WaitStatus, error)
	// Signal counts a signal for a wait of a deployment, for "" of the newest that has one of that name.
	Signal(ctx context.Context, name project.Name, id project.ID, wait string, g signals.Given) (signals.Answer, error)
}

// Session is one run of a verb.
type Session struct {
	nodes.Session
	Signals Signals
	// Find resolves the beginning of a deployment's ID.
	Find func(name project.Name, prefix string) (project.ID, error)
}

// WaitsCommand returns the verb waits.
func WaitsCommand(s Session) *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use: "waits PROJECT", Short: "List waits of deployments, newest first, with missing signals", Args: s.Exactly("PROJECT"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.Project("waits", args[0], project.Read)
			if err != nil {
				return err
			}
			if limit < 1 {
				return fault.New(fault.Usage, "", "--limit must be 1 or more")
			}
			list, err := s.Signals.List(s.Context, signals.Filter{Project: name, Limit: limit})
			if err != nil {
				return err
			}
			if s.JSON() {
				return s.Document(signals.Document{Version: 1, Waits: list})
			}
			return s.list(list)
		},
	}
	c.Flags().IntVarP(&limit, "limit", "n", 20, "show at most this many entries")
	return s.JSONFlag(c)
}

func (s Session) list(list []signals.WaitStatus) error {
	p := s.Printer()
	if len(list) == 0 {
		p.Line("no waits yet")
	}
	for _, w := range list {
		when := humanize.Age(s.Now(), w.Since)
		switch {
		case w.State == signals.Waiting:
			when += ", until " + w.Until.Format("15:04:05")
		case w.State.Ended():
			when = humanize.Age(s.Now(), w.Ended)
		}
		p.Line("%-8s  %s  %s  %s  (%s)", w.Deployment.Short(), w.Wait, string(w.State), w.Progress(), when)
		if w.Reason != "" {
			p.Line("          %s", printable.Line(w.Reason))
		}
		for _, x := range w.Received {
			text := x.ID + "  " + string(x.Status)
			if x.Reason != "" {
				text += "  " + x.Reason
			}
			p.Line("          %s  by %s, %s", printable.Line(text), printable.Line(x.By), humanize.Age(s.Now(), x.At))
		}
	}
	return p.Err()
}

// SignalCommand returns the verb signal.
func SignalCommand(s Session) *cobra.Command {
	var g signals.Given
	var status, data, deployment string
	c := &cobra.Command{
		Use: "signal PROJECT WAIT", Short: "Send a signal to a waiting deployment", Args: s.Exactly("PROJECT", "WAIT"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.Project("signal", args[0], project.Deploy)
			if err != nil {
				return err
			}
			var id project.ID
			if deployment != "" {
				if id, err = s.Find(name, deployment); err != nil {
					return err
				}
			}
			g.Status, g.By = signals.Status(status), s.Caller.Name
			if data != "" {
				g.Data = json.RawMessage(data)
			}
			answer, err := s.Signals.Signal(s.Context, name, id, args[1], g)
			if err := s.Audited(audit.Entry{Action: "signal", Project: string(name), Object: args[1], Deployment: string(id)}, err); err != nil {
				return err
			}
			if s.JSON() {
				return s.Document(answer)
			}
			p := s.Printer()
			if answer.Counted {
				p.Line("%s: %s", answer.Wait, answer.Progress())
			} else {
				p.Line("%s: this signal was already received; %s", answer.Wait, answer.Progress())
			}
			return p.Err()
		},
	}
	c.Flags().StringVar(&g.ID, "id", "", "the ID of the signal; default: the next number")
	c.Flags().StringVar(&status, "status", string(signals.Success), "SUCCESS or FAILURE; FAILURE ends the wait immediately")
	c.Flags().StringVar(&g.Reason, "reason", "", "the reason, for people")
	c.Flags().StringVar(&data, "data", "", "`JSON` data for later steps")
	c.Flags().StringVar(&deployment, "deployment", "", "the waiting `DEPLOYMENT`; default: the newest with this wait")
	return s.JSONFlag(c)
}
