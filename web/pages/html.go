package pages

import (
	"html/template"
	"time"

	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/internal/quantity"
	"corpus-git/project"
)

func (p *Pages) functions() template.FuncMap {
	return template.FuncMap{
		"age":   func(t time.Time) string { return humanize.Age(p.Now(), t) },
		"exact": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"iso":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"short": func(c project.Commit) string {
			if c == "" {
				return "–"
			}
			return c.Short()
		},
		"id":        func(id project.ID) string { return id.Short() },
		"shortID":   func(id string) string { return printable.Clip(project.ID(id).Short(), 40) },
		"bytes":     func(n int64) string { return humanize.Bytes(n) },
		"count":     func(n int64) string { return humanize.Count(n) },
		"class":     stateClass,
		"unitClass": unitClass,
		"asked":     asksApproval,
		"took": func(r *project.Result) string {
			if r == nil || r.Started.IsZero() || r.Ended.IsZero() {
				return "–"
			}
			return humanize.Seconds(r.Ended.Sub(r.Started))
		},
		"what":    project.Record.What,
		"every":   quantity.FormatDuration,
		"seconds": humanize.Seconds,
		"rough":   humanize.Rough,
		"clip":    func(n int, s string) string { return printable.Clip(s, n) },
		"add":     func(a, b int) int { return a + b },
		"path":    pathOf,
		"marks":   func() int { return stripMarks },
	}
}

func seconds(d time.Duration) string { return humanize.Seconds(d) }

func stateClass(s project.State) string {
	switch {
	case s.Good():
		return "good"
	case s.Terminal():
		return "bad"
	}
	return "busy"
}

// unitClass returns how the state of a unit looks.
func unitClass(u project.UnitState) string {
	switch u.State {
	case project.UnitActive:
		return "good"
	case project.UnitFailed, project.UnitUnknown:
		return "bad"
	}
	return "busy"
}
