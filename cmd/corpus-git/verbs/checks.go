package verbs

import (
	"corpus-git/internal/humanize"
	"corpus-git/internal/quantity"
	"corpus-git/project"
	"corpus-git/project/status"
)

// checkHistory is  check --history.
func (s *session) checkHistory(arg string, limit int) error {
	name, err := s.project("check --history", arg, project.Read)
	if err != nil {
		return err
	}
	if limit < 1 {
		return usage("--limit must be 1 or more")
	}
	if err := need(s.b.Checks, "check --history"); err != nil {
		return err
	}
	history, err := s.b.Checks.History(s.ctx, name, limit)
	if err != nil {
		return err
	}
	states := s.b.Checks.States(name)
	if s.json {
		return s.document(status.Checks{Version: status.Version, Project: name, Checks: append([]project.CheckState{}, states...), History: history})
	}
	p := s.printer()
	if len(states) > 0 {
		t := table{heads: []string{"CHECK", "EVERY", "STATE", "SINCE", "LAST RUN", "TOOK", "WHY"}, flexible: []int{6}}
		for _, c := range states {
			state, since, last, took, why := plain("has not run yet"), "", "", "", ""
			if n := c.Now; n != nil {
				state, since, last, took, why = checkState(*n), s.when(n.Since), s.when(n.Last), humanize.Seconds(n.Took), n.Reason
			}
			t.add(painted(bold, c.Name), plain(quantity.FormatDuration(c.Every)), state, plain(since), plain(last), number(took), plain(why))
		}
		t.print(p, s.who.Term)
	}
	if len(history) == 0 {
		if len(states) == 0 {
			p.line("%s has no periodic checks; configure one with  on: [deploy, every: 1m]  (docs/checks.md)", name)
		}
		return p.err
	}
	if len(states) > 0 {
		p.line("")
	}
	t := table{heads: []string{"CHECK", "STATE", "FROM", "UNTIL", "RUNS", "CODE", "WHY"}, flexible: []int{6}}
	for _, h := range history {
		t.add(painted(bold, h.Check), checkState(h), plain(s.when(h.Since)), plain(s.when(h.Last)), number(humanize.Count(h.Runs)), plain(commit(h.Code)), plain(h.Reason))
	}
	t.print(p, s.who.Term)
	return p.err
}

func checkState(p project.CheckPeriod) cell {
	if p.Good {
		return painted(green, "succeeded")
	}
	return painted(red, "failed")
}
