// Package texts formats the first and the last line of a deployment's log.
package texts

import (
	"fmt"
	"strings"

	"corpus-git/internal/event"
	"corpus-git/internal/humanize"
	"corpus-git/project"
	"corpus-git/project/demands"
)

// Headline returns the first line of a deployment; desc may be nil; hide redacts.
func Headline(d project.Deployment, desc *project.Description, hide func(string) string) event.Event {
	var b strings.Builder
	by := " by " + d.Pusher.Key
	switch {
	case d.Trigger == project.TriggerRollback:
		fmt.Fprintf(&b, "%s  back from %s to %s", d.Project, d.LiveCode.Short(), d.Code.Short())
		switch {
		case d.Pillar == d.LivePillar && d.Pillar != "":
			fmt.Fprintf(&b, ", pillar %s unchanged", d.Pillar.Short())
		case d.Pillar != d.LivePillar:
			fmt.Fprintf(&b, ", pillar from %s to %s", d.LivePillar.Short(), d.Pillar.Short())
		}
	case d.Trigger == project.TriggerRedeploy && d.Code == d.LiveCode:
		fmt.Fprintf(&b, "%s  %s again", d.Project, d.Code.Short())
		if d.Job != "" {
			fmt.Fprintf(&b, ", job %s", d.Job)
		}
	case d.Repo == project.PillarRepo:
		fmt.Fprintf(&b, "%s  pillar %s..%s", d.Project, d.LivePillar.Short(), d.Pillar.Short())
	case d.LiveCode == "":
		fmt.Fprintf(&b, "%s  first deployment, %s", d.Project, d.Code.Short())
	default:
		fmt.Fprintf(&b, "%s  %s..%s", d.Project, d.LiveCode.Short(), d.Code.Short())
	}
	if (d.Trigger == project.TriggerBundle || d.Promoted != nil) && d.Pillar != d.LivePillar {
		fmt.Fprintf(&b, ", pillar %s..%s", d.LivePillar.Short(), d.Pillar.Short())
	}
	if desc == nil {
		b.WriteString(" " + by)
		return event.Event{Kind: event.Head, Text: b.String()}
	}
	if desc.Subject != "" {
		s := []rune(hide(desc.Subject)) // before it is cut short
		if len(s) > 40 {
			s = append(s[:39], '…')
		}
		fmt.Fprintf(&b, "  %q ", string(s))
	}
	b.WriteString(by)
	if desc.Commits > 0 {
		more := ""
		if desc.CommitsMore {
			more = " or more"
		}
		fmt.Fprintf(&b, ", %s%s", humanize.Plural(desc.Commits, "commit"), more)
	}
	if desc.Files > 0 {
		fmt.Fprintf(&b, ", %s", humanize.Plural(desc.Files, "file"))
	}
	if desc.Forced {
		b.WriteString(", forced")
	}
	return event.Event{Kind: event.Head, Text: b.String()}
}

// Result appends the last line, with the hint before it.
func Result(log *event.Log, rec project.Record) {
	res := rec.Result
	took := res.Ended.Sub(res.Started)
	if res.Hint != "" {
		log.Append(event.Event{Kind: event.Hint, Text: res.Hint})
	}
	e := event.Event{Kind: event.Verdict, Status: event.Bad, Duration: took}
	is := fmt.Sprintf("%s is %s", rec.Project, res.Code.Short())
	if res.Pillar != "" {
		is += ", pillar " + res.Pillar.Short()
	}
	still := strings.Replace(is, " is ", " is still ", 1)
	if res.Code == "" {
		still = fmt.Sprintf("%s has no live release yet", rec.Project)
	}
	switch res.State {
	case project.Live:
		e.Status = event.OK
		e.Text = fmt.Sprintf("live in %s: %s", humanize.Rough(took), is)
		if res.Unhealthy != "" {
			e.Status = event.Bad
			e.Text = fmt.Sprintf("rolled back in %s, but %s: %s", humanize.Rough(took), res.Unhealthy, is)
		}
	case project.Done:
		e.Status = event.OK
		e.Text = fmt.Sprintf("done in %s: %s", humanize.Rough(took), res.Reason)
	case project.RolledBack:
		but := ""
		if res.Unhealthy != "" {
			but = ", but " + res.Unhealthy
		}
		e.Text = fmt.Sprintf("rolled back in %s%s: %s", humanize.Rough(took), but, still)
	case project.Refused:
		e.Text = "refused: nothing was changed, " + still
		if strings.HasPrefix(res.Reason, demands.Waiting) {
			e.Text = "waiting for approval: " + still
		}
	default:
		e.Text = fmt.Sprintf("failed after %s: %s", humanize.Rough(took), res.Reason)
	}
	e.Text += ", deployment " + rec.ID.Short()
	log.Append(e)
}
