package undo

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Action is a change other than of a file: how to detect it, and how to undo it.
type Action struct {
	// Noun and Name say what was changed: crontab, www-data.
	Noun string `json:"noun"`
	Name string `json:"name"`
	// Probe prints the state; its output and exit status are compared. If it is empty, the change can't be detected, and is always undone.
	Probe []string `json:"probe,omitempty"`
	// Before is the result of Probe before the change; BeforeAction fills it in.
	Before string `json:"before,omitempty"`
	// Last actions run after everything else is restored, each once, in the order in which they were first recorded, whatever Probe returns: a
	// service is restarted so that it uses what was restored.
	Last bool `json:"last,omitempty"`
	// Undo undoes the change, with Stdin as its input. It must be harmless if the change was not made.
	Undo  []string `json:"undo"`
	Stdin string   `json:"stdin,omitempty"`
}

// BeforeAction records a change other than of a file before it is made. It is durable on return.
func (l *Log) BeforeAction(ctx context.Context, a Action) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(a.Probe) > 0 {
		var err error
		if a.Before, err = l.probe(ctx, a); err != nil {
			return fmt.Errorf("note %s %s for the undo log: %w", a.Noun, a.Name, err)
		}
	}
	l.seq++
	r := record{Seq: l.seq, Kind: kindAction, State: l.state, Action: &a}
	l.acted = append(l.acted, r)
	if err := l.append([]record{r}, true); err != nil {
		return fmt.Errorf("note %s %s for the undo log: %w", a.Noun, a.Name, err)
	}
	return nil
}

func (l *Log) probe(ctx context.Context, a Action) (string, error) { return answer(ctx, l.run, a) }

func answer(ctx context.Context, run Commands, a Action) (string, error) {
	status, out, err := run(ctx, a.Probe, "")
	if err != nil {
		return "", err
	}
	return strconv.Itoa(status) + "\n" + out, nil
}

// Manual records a change that can't be undone automatically, for Undo to list. It is not durable, and does not create a log by itself: see
// Listed.
func (l *Log) Manual(what string) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	r := record{Seq: l.seq, Kind: kindManual, State: l.state, What: what}
	if l.journal == nil {
		if len(l.listed) < maxListed {
			l.listed = append(l.listed, r)
		}
		return nil
	}
	return l.append([]record{r}, false)
}

// ManualStep records the same for a step that has no states, and that what names. It and what follows belong to no state of the steps before.
func (l *Log) ManualStep(what string) error {
	l.Enter(State{})
	return l.Manual(what)
}

// maxListed limits how many of these changes are kept.
const maxListed = 1000

// Listed returns the changes that can't be undone automatically, the last first, if nothing else was recorded.
func (l *Log) Listed() []Item {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Item
	for _, r := range l.listed {
		out = append(out, Item{Name: r.What, State: r.State})
	}
	slices.Reverse(out)
	return out
}

func (u *undoing) action(ctx context.Context, c *change) {
	a := *c.Action
	item := Item{Noun: a.Noun, Name: a.Name, State: c.State}
	fail := func(why string) {
		item.Why = why
		u.report.Failed = append(u.report.Failed, item)
	}
	if len(a.Probe) > 0 && !a.Last {
		now, err := answer(ctx, u.run, a)
		switch {
		case err != nil:
			fail(err.Error())
			return
		case now == a.Before:
			u.report.Unchanged = append(u.report.Unchanged, item)
			return
		case c.output != nil && now != *c.output:
			item.Why = "it has been changed since by somebody else"
			u.report.Left = append(u.report.Left, item)
			return
		}
	}
	status, out, err := u.run(ctx, a.Undo, a.Stdin)
	if err != nil {
		fail(err.Error())
		return
	}
	if status != 0 {
		line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
		fail(strings.TrimSuffix(fmt.Sprintf("%s: exit status %d: %s", a.Undo[0], status, line), ": "))
		return
	}
	if len(a.Probe) > 0 && !a.Last {
		if now, err := answer(ctx, u.run, a); err != nil || now != a.Before {
			fail("it is not as it was before")
			return
		}
	}
	u.report.Undone = append(u.report.Undone, item)
}
