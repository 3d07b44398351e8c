package procedures

import (
	"context"
	"fmt"
	"strings"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// ReleaseSync brings the deployment's commits into project/ and pillar/. Files that git does not track stay.
type ReleaseSync struct{}

// Name implements Procedure.
func (ReleaseSync) Name() string { return NameReleaseSync }

// Run implements Procedure.
func (ReleaseSync) Run(ctx context.Context, env *Env) error {
	if env.RemoteLess {
		env.Summarize(nil, "remote-less: the working copy is what is deployed")
		return nil
	}
	var parts, lines []string
	for _, c := range []struct {
		repo   project.Repo
		commit project.Commit
		dir    string
	}{
		{project.Code, env.Deployment.Code, env.Paths.Live()},
		{project.PillarRepo, env.Deployment.Pillar, env.Paths.Pillar()},
	} {
		if c.commit == "" {
			continue
		}
		st, err := env.Repos.Checkout(ctx, env.Deployment.Project, c.repo, c.commit, c.dir, env.Prepared.Cfg.Submodules())
		if err != nil {
			return withDiskHint(fault.New(fault.KindOf(err), "check out "+string(c.repo)+" "+c.commit.Short(), "%w", err))
		}
		if s := checkoutSummary(st); s != "" {
			if c.repo == project.PillarRepo {
				s = "pillar " + s
			}
			parts = append(parts, s)
		}
		if st.LocalCount > 0 {
			line := fmt.Sprintf("overwrote %s changed on this machine: %s", event.Plural(st.LocalCount, "file"), strings.Join(st.Local, ", "))
			if st.LocalCount > len(st.Local) {
				line += ", …"
			}
			lines = append(lines, line)
		}
		lines = append(lines, st.Notes...)
	}
	if len(parts) == 0 {
		parts = []string{"nothing to change"}
	}
	env.Summarize(lines, "%s", strings.Join(parts, "; "))
	return nil
}

// checkoutSummary is empty where nothing happened and nothing is there to say.
func checkoutSummary(st project.CheckoutStats) string {
	var s []string
	if st.Written > 0 {
		s = append(s, event.Count(st.Written)+" written")
	}
	if st.Removed > 0 {
		s = append(s, event.Count(st.Removed)+" removed")
	}
	if st.Untracked > 0 {
		s = append(s, event.Count(st.Untracked)+" untracked kept")
	}
	return strings.Join(s, ", ")
}
