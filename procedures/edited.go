package procedures

import (
	"context"
	"fmt"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/project"
)

// Edited reports the tracked files of the live release that were changed or removed on this machine, and changes nothing: only a deployment writes
// them again. With count they count as differences from the release, unless the environment is of the class dev, which allows them.
func (e *Env) Edited(ctx context.Context, count bool) error {
	if e.RemoteLess {
		return nil
	}
	for _, x := range []struct {
		repo   project.Repo
		commit project.Commit
		dir    string
	}{{project.Code, e.Deployment.Code, e.Paths.Live()}, {project.PillarRepo, e.Deployment.Pillar, e.Paths.Pillar()}} {
		if x.commit == "" {
			continue
		}
		st, err := e.Tools.Repository(e.Deployment.Project, x.repo).TryCheckout(ctx, project.Checkout{Commit: x.commit, Dir: x.dir}, nil)
		switch {
		case fault.KindOf(err) == fault.Busy || fault.KindOf(err) == fault.Refused:
			e.Note("%s was not compared with %s: %s", x.repo, x.commit.Short(), fault.Cause(err))
			continue
		case err != nil:
			return fault.New(fault.KindOf(err), "compare "+string(x.repo), "%w", err)
		case st.LocalCount == 0:
			continue
		}
		lines := printable.Lines(st.Local)
		more := st.LocalCount - len(lines)
		if count && !e.Prepared.Dev() {
			for _, l := range lines {
				e.differ(1, "%s: %s was changed on this machine", x.repo, l)
			}
			if more > 0 {
				e.differ(more, "%s: %d more files were changed on this machine", x.repo, more)
			}
		}
		if more > 0 {
			lines = append(lines, fmt.Sprintf("and %d more", more))
		}
		e.Report.Append(event.Event{Kind: event.Plan, Status: event.Changed, Procedure: NameReleaseSync, Lines: lines,
			Text: fmt.Sprintf("%s  %s changed on this machine", x.repo, humanize.Plural(st.LocalCount, "file"))})
	}
	return nil
}
