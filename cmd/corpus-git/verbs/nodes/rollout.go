package nodes

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"corpus-git/fleet"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/project"
)

// RolloutCommand returns the verb rollout.
func RolloutCommand(s Session) *cobra.Command {
	return s.Group("rollout", "Show and control rollouts to nodes", rolloutList(s), rolloutShow(s),
		rolloutPause(s, true), rolloutPause(s, false), rolloutCancel(s), rolloutRetry(s))
}

// RolloutsDocument is what rollout list --json and rollout show --json print.
type RolloutsDocument struct {
	Version  int               `json:"version"`
	Rollouts []*fleet.Progress `json:"rollouts"`
}

// state is that of a rollout, for people.
func state(p *fleet.Progress) string {
	if p.Paused {
		return "paused"
	}
	return p.State
}

// nodeCounts returns how many nodes are in which state, for people.
func nodeCounts(p *fleet.Progress) string {
	n := p.Count()
	var parts []string
	for _, st := range []string{fleet.NodeLive, fleet.Applying, fleet.Ready, fleet.Waiting, fleet.NodeFailed, fleet.Missing, fleet.NodeBack} {
		if n[st] > 0 {
			parts = append(parts, humanize.Plural(n[st], "node")+" "+st)
		}
	}
	return strings.Join(parts, ", ")
}

func rolloutList(s Session) *cobra.Command {
	return s.JSONFlag(&cobra.Command{
		Use: "list PROJECT", Short: "List the rollouts of a project, the newest first", Args: s.Exactly("PROJECT"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.Project("rollout list", args[0], project.Read)
			if err != nil {
				return err
			}
			list, err := s.Fleet.History(s.Context, name)
			if err != nil {
				return err
			}
			if s.JSON() {
				return s.Document(RolloutsDocument{Version: 1, Rollouts: append([]*fleet.Progress{}, list...)})
			}
			p := s.Printer()
			if len(list) == 0 {
				p.Line("no rollouts of %s yet", name)
			}
			for _, r := range list {
				p.Line("%-8s  %s  %-19s  %s", r.Deployment.ID.Short(), r.Started.UTC().Format(time.RFC3339), state(r), nodeCounts(r))
			}
			return p.Err()
		},
	})
}

// find returns the rollout of a project whose ID begins with prefix, for "" the newest.
func find(s Session, name project.Name, prefix string) (*fleet.Progress, error) {
	list, err := s.Fleet.History(s.Context, name)
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		if strings.HasPrefix(string(r.Deployment.ID), prefix) {
			return r, nil
		}
	}
	if len(list) == 0 {
		return nil, fault.New(fault.Refused, "rollout", "%s has not been rolled out to nodes yet", name)
	}
	return nil, fault.New(fault.Refused, "rollout", "%s has no rollout %s", name, prefix).WithHint("corpus-git rollout list %s", name)
}

func arg(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

func rolloutShow(s Session) *cobra.Command {
	return s.JSONFlag(&cobra.Command{
		Use: "show PROJECT [ROLLOUT]", Short: "Show the progress of a rollout (default: the newest)", Args: s.Exactly("PROJECT", "[ROLLOUT]"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.Project("rollout show", args[0], project.Read)
			if err != nil {
				return err
			}
			r, err := find(s, name, arg(args, 1))
			if err != nil {
				return err
			}
			if s.JSON() {
				return s.Document(RolloutsDocument{Version: 1, Rollouts: []*fleet.Progress{r}})
			}
			p := s.Printer()
			p.Line("rollout     %s", r.Deployment.ID)
			p.Line("state       %s", state(r))
			p.Line("code        %s", r.Deployment.Code.Short())
			if r.Deployment.Pillar != "" {
				p.Line("pillar      %s", r.Deployment.Pillar.Short())
			}
			p.Line("by          %s", r.Deployment.Pusher.Key)
			p.Line("started     %s", r.Started.UTC().Format(time.RFC3339))
			if !r.Ended.IsZero() {
				p.Line("ended       %s", r.Ended.UTC().Format(time.RFC3339))
			}
			p.Line("on_failure  %s", r.Plan.OnFailure)
			if len(r.Plan.Skipped) > 0 {
				p.Line("drained     %s", strings.Join(r.Plan.Skipped, ", "))
			}
			width := widthOf(r.Nodes, func(n fleet.NodeProgress) string { return n.Name })
			for _, st := range r.Stages {
				p.Line("")
				p.Line("stage %s: %d of %s complete", st.Name, st.Done, humanize.Plural(st.Of, "batch", "batches"))
				for _, n := range r.Nodes {
					if n.Stage == st.Name {
						p.Line("  %-*s %-12s %s", width, n.Name, n.State, strings.TrimPrefix(n.Reason, n.Name+": "))
					}
				}
			}
			return p.Err()
		},
	})
}

func rolloutPause(s Session, paused bool) *cobra.Command {
	verb, short, is := "pause", "Pause a rollout: start no further node", "paused"
	if !paused {
		verb, short, is = "resume", "Resume a paused rollout", "not paused"
	}
	return &cobra.Command{
		Use: verb + " PROJECT", Short: short, Args: s.Exactly("PROJECT"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.Project("rollout "+verb, args[0], project.Deploy)
			if err != nil {
				return err
			}
			changed, err := s.Fleet.Pause(s.Context, name, paused)
			if err := s.Audited(audit.Entry{Action: "rollout " + verb, Project: string(name)}, err); err != nil {
				return err
			}
			p := s.Printer()
			when := "now"
			if !changed {
				when = "already"
			}
			p.Line("the rollout of %s is %s %s", name, when, is)
			return p.Err()
		},
	}
}

func rolloutCancel(s Session) *cobra.Command {
	return &cobra.Command{
		Use: "cancel PROJECT", Short: "Cancel a rollout and roll back nodes according to on_failure", Args: s.Exactly("PROJECT"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.Project("rollout cancel", args[0], project.Deploy)
			if err != nil {
				return err
			}
			r, err := find(s, name, "")
			if err == nil && r.Complete() {
				err = fault.New(fault.Refused, "rollout cancel", "no rollout of %s is running", name).WithHint("corpus-git rollout list %s", name)
			}
			if err != nil {
				return err
			}
			return s.Cancel("rollout cancel", name, r.Deployment.ID)
		},
	}
}

func rolloutRetry(s Session) *cobra.Command {
	var verbose, missing bool
	c := &cobra.Command{
		Use: "retry PROJECT", Short: "Deploy the newest rollout to nodes where it is not live",
		Long: "Starts a new deployment of the same commits on the nodes that failed, were skipped or drained, or were not started. If the branch had not moved, it\n" +
			"moves on success. Nodes where the commits are already live are not touched.",
		Args: s.Exactly("PROJECT"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.Project("rollout retry", args[0], project.Deploy)
			if err != nil {
				return err
			}
			r, err := find(s, name, "")
			if err != nil {
				return err
			}
			known, err := s.Fleet.List(s.Context)
			if err != nil {
				return err
			}
			d, err := r.Retry(func(node string) bool {
				return !slices.ContainsFunc(known, func(n fleet.Node) bool { return n.Name == node && !n.Drained })
			})
			if err != nil {
				return err
			}
			d.AllowMissing = missing
			return s.Deploy("rollout retry", d, verbose)
		},
	}
	c.Flags().BoolVar(&missing, "allow-missing", false, "skip nodes that are not ready")
	return s.RunFlags(c, &verbose)
}

// widthOf returns the width of the column of names, at least that of most tables.
func widthOf[T any](list []T, name func(T) string) int {
	width := 20
	for _, x := range list {
		width = max(width, len(name(x)))
	}
	return width
}
