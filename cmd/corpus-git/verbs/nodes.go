package verbs

import (
	"context"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/verbs/approve"
	"corpus-git/cmd/corpus-git/verbs/enter"
	"corpus-git/cmd/corpus-git/verbs/hostkeys"
	"corpus-git/cmd/corpus-git/verbs/hubs"
	"corpus-git/cmd/corpus-git/verbs/jobs"
	"corpus-git/cmd/corpus-git/verbs/nodes"
	"corpus-git/cmd/corpus-git/verbs/promote"
	"corpus-git/cmd/corpus-git/verbs/waits"
	"corpus-git/internal/audit"
	"corpus-git/internal/event"
	"corpus-git/project"
	"corpus-git/project/status"
)

// nodes returns the session as the verbs about nodes see it.
func (s *session) nodes() nodes.Session {
	return nodes.Session{
		Context: s.ctx, Fleet: s.b.Fleet, Access: s.b.Access, Caller: s.who.Identity, In: s.in, Out: s.out, HostKey: func() (string, error) { return s.b.Bundles.Key() }, Address: s.b.Address, NATS: s.b.NATS, Hubs: s.b.Hubs.Addresses, Now: s.b.Now, Admin: s.admin, Local: s.local, Project: s.project, Audited: s.audited,
		JSON: func() bool { return s.json }, JSONFlag: s.jsonFlag, Document: s.document, Printer: func() nodes.Printer { return lines{s.printer()} }, Exactly: exactly,
		Group:    func(use, short string, subs ...*cobra.Command) *cobra.Command { return group(s, use, short, subs...) },
		RunFlags: s.runFlags, Deploy: s.deploy, Cancel: s.cancel,
	}
}

// enter returns the session as the verb enter sees it.
func (s *session) enter() enter.Session {
	return enter.Session{Session: s.nodes(), Projects: s.b.Enter, Terminal: s.who.Screen, Remote: s.who.Remote, Allowed: s.b.Shells && !s.who.Program, Err: s.err,
		Guard: func(name project.Name, want project.Right) (context.Context, func()) {
			stop := s.guard(name, want)
			return s.ctx, stop
		},
		Exit: func(status int) error { return verdict{status} },
	}
}

// waits returns the session as the verbs about waits see it.
func (s *session) waits() waits.Session {
	return waits.Session{Session: s.nodes(), Signals: s.b.Signals, Find: func(name project.Name, prefix string) (project.ID, error) {
		r, err := s.b.Runs.Find(s.ctx, name, prefix)
		return r.ID, err
	}}
}

// approve returns the session as the verbs about approvals see it.
func (s *session) approve() approve.Session {
	return approve.Session{Session: s.nodes(), Approvals: s.b.Approvals, Prepare: s.prepare, Pusher: s.who.Pusher(), Detached: func() bool { return s.detach },
		Watch: func(name project.Name, id project.ID, verbose bool) error {
			return s.watch(name, id, event.Style{Commands: s.commands(), Verbose: verbose})
		},
	}
}

// hostKeys returns the session as the verb about host keys sees it.
func (s *session) hostKeys() hostkeys.Session {
	return hostkeys.Session{Session: s.nodes(), Backend: s.b.HostKeys, Err: s.err, Server: func() status.Server {
		if s.b.Status.Server == nil {
			return status.Server{}
		}
		return s.b.Status.Server("")
	}}
}

// hubs returns the session as the verbs about hubs see it.
func (s *session) hubs() hubs.Session {
	return hubs.Session{Session: s.nodes(), Backend: s.b.Hubs, Host: s.b.Host}
}

func (s *session) jobs() jobs.Session {
	return jobs.Session{Session: s.nodes(), Jobs: s.b.Jobs, Can: func(name project.Name, want project.Right) (bool, error) {
		return s.b.Access.Can(s.ctx, s.who.Identity, name, want)
	}}
}

func (s *session) promote() promote.Session {
	return promote.Session{Session: s.nodes(), Promotions: s.b.Promotions, Prepare: s.prepare, AboutSettings: aboutSettings}
}

// lines implements nodes.Printer.
type lines struct{ *printer }

// Line implements nodes.Printer.
func (l lines) Line(format string, args ...any) { l.line(format, args...) }

// Err implements nodes.Printer.
func (l lines) Err() error { return l.err }

// cancel ends a deployment, for "" the one that runs.
func (s *session) cancel(verb string, name project.Name, id project.ID) error {
	id, err := s.b.Runs.Cancel(s.ctx, name, id, s.who.Pusher())
	if err := s.audited(audit.Entry{Action: verb, Project: string(name), Deployment: string(id)}, err); err != nil {
		return err
	}
	p := s.printer()
	p.line("cancelling deployment %s", id.Short())
	p.line("  watch it:  corpus-git logs %s %s -f", name, id.Short())
	return p.err
}

// deployments returns the newest records of a project; it is asked when a verb runs, which Describe's do not.
func (s *session) deployments(ctx context.Context, name project.Name, limit int) ([]project.Record, error) {
	return s.b.Runs.Deployments(ctx, name, limit)
}
