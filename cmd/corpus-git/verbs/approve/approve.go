// Package approve is the verbs about deployments that wait for approval.
//
// It owns their words, flags and output. Who may approve, and what follows, is decided by package pipeline and the approvals below it.
package approve

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/verbs/nodes"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/project"
	"corpus-git/project/approval"
)

// Approvals is the pipeline.
type Approvals interface {
	Approvals(ctx context.Context, name project.Name, open bool, limit int) ([]approval.Request, error)
	// Approve counts a vote, and starts the deployment when there are enough: id is that, "" while more are needed.
	Approve(ctx context.Context, name project.Name, request string, v approval.Vote) (r approval.Request, id project.ID, err error)
	Reject(ctx context.Context, name project.Name, request string, by project.Pusher, reason string) (approval.Request, error)
}

// Session is one run of a verb.
type Session struct {
	nodes.Session
	Approvals Approvals
	// Prepare runs before something changes, Watch follows a deployment to its end, and returns its verdict. Detached is the flag --detach.
	Prepare  func() error
	Watch    func(name project.Name, id project.ID, verbose bool) error
	Detached func() bool
	// Pusher is the caller.
	Pusher project.Pusher
}

// Command returns the verb approve.
func Command(s Session) *cobra.Command {
	var verbose bool
	var v approval.Vote
	c := &cobra.Command{
		Use: "approve PROJECT DEPLOYMENT", Short: "Approve a waiting deployment",
		Long: "Approves a waiting DEPLOYMENT (see corpus-git approvals PROJECT; its plan is in corpus-git logs). With enough approvals\n" +
			"it is deployed, and its output is shown. Users cannot approve their own pushes. If code, pillar, live release or plan have changed\n" +
			"since, the request is void. --break-glass deploys without approval; it requires admin permission and a reason, and sends a notification.",
		Example: "  corpus-git approve app 1f0c9a2b\n  corpus-git approve app 1f0c9a2b --break-glass --reason 'the shop is down'",
		Args:    s.Exactly("PROJECT", "DEPLOYMENT"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.Project("approve", args[0], project.Read)
			if err == nil {
				err = s.Prepare()
			}
			if err != nil {
				return err
			}
			if v.Reason != "" && !v.BreakGlass {
				return fault.New(fault.Usage, "", "--reason is for --break-glass")
			}
			v.By = s.Pusher
			r, id, err := s.Approvals.Approve(s.Context, name, args[1], v)
			if err != nil {
				return err
			}
			if id != "" && !s.JSON() && !s.Detached() {
				return s.Watch(name, id, verbose)
			}
			return s.decided(r, id)
		},
	}
	c.Flags().BoolVar(&v.BreakGlass, "break-glass", false, "deploy without approval by others")
	c.Flags().StringVar(&v.Reason, "reason", "", "the reason, for the audit log and the notification")
	return s.RunFlags(c, &verbose)
}

// RejectCommand returns the verb reject.
func RejectCommand(s Session) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "reject PROJECT DEPLOYMENT", Short: "Reject a deployment that waits for approval, or withdraw your own", Args: s.Exactly("PROJECT", "DEPLOYMENT"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.Project("reject", args[0], project.Read)
			if err != nil {
				return err
			}
			r, err := s.Approvals.Reject(s.Context, name, args[1], s.Pusher, reason)
			if err != nil {
				return err
			}
			return s.decided(r, "")
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "the reason, for the user who pushed")
	return s.JSONFlag(c)
}

func (s Session) decided(r approval.Request, id project.ID) error {
	if s.JSON() {
		return s.Document(approval.Decision{Version: 1, Approval: r, Deployment: id})
	}
	p := s.Printer()
	switch {
	case id != "":
		p.Line("%s is approved: deployment %s was started", r.ID.Short(), id.Short())
	case r.State == approval.Open:
		p.Line("%s has %d of %s", r.ID.Short(), len(r.Votes), humanize.Plural(r.Need, "approval", "approvals"))
	default:
		p.Line("%s is %s", r.ID.Short(), r.State)
	}
	return p.Err()
}

// ListCommand returns the verb approvals.
func ListCommand(s Session) *cobra.Command {
	var all bool
	var limit int
	c := &cobra.Command{
		Use: "approvals PROJECT", Short: "List deployments that wait for approval, newest first", Args: s.Exactly("PROJECT"),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := s.Project("approvals", args[0], project.Read)
			if err != nil {
				return err
			}
			if limit < 1 {
				return fault.New(fault.Usage, "", "--limit must be 1 or more")
			}
			list, err := s.Approvals.Approvals(s.Context, name, !all, limit)
			if err != nil {
				return err
			}
			if s.JSON() {
				return s.Document(approval.Document{Version: 1, Approvals: append([]approval.Request{}, list...)})
			}
			return s.list(name, list)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "include finished ones")
	c.Flags().IntVarP(&limit, "limit", "n", 20, "show at most this many entries")
	return s.JSONFlag(c)
}

func (s Session) list(name project.Name, list []approval.Request) error {
	p := s.Printer()
	if len(list) == 0 {
		p.Line("nothing is waiting for approval")
	}
	for _, r := range list {
		d := r.Deployment
		what := d.LiveCode.Short() + ".." + d.Code.Short()
		if d.Repo == project.PillarRepo {
			what = "pillar " + d.LivePillar.Short() + ".." + d.Pillar.Short()
		}
		p.Line("%s  %s  %s  by %s, %s", r.ID.Short(), r.State, what, printable.Line(d.Pusher.Key), humanize.Age(s.Now(), r.At))
		switch {
		case r.State == approval.Open:
			p.Line("          %d of %s, until %s; plan %.12s:  corpus-git logs %s %s", len(r.Votes), humanize.Plural(r.Need, "approval", "approvals"), r.Expires.UTC().Format("2006-01-02 15:04Z"), r.Plan, name, r.ID.Short())
		case r.Result != "":
			p.Line("          deployment %s", r.Result.Short())
		}
		if names := r.Names(); len(names) > 0 {
			p.Line("          approved by %s", printable.Line(strings.Join(names, ", ")))
		}
		if r.Reason != "" {
			p.Line("          %s", printable.Line(strings.TrimSpace(r.Reason+" "+by(r))))
		}
	}
	return p.Err()
}

func by(r approval.Request) string {
	if r.State == approval.Rejected {
		return "(" + r.By + ")"
	}
	return ""
}
