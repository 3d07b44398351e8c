package verbs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/notify"
	"corpus-git/project"
	"corpus-git/project/config"
	"corpus-git/project/status"
)

// Notifications is the outbox and its sinks.
type Notifications interface {
	// Sinks returns those of the configuration; nothing of them is shown but name, kind and filters.
	Sinks() []config.Sink
	// List returns the newest deliveries first; "" is any project, any state.
	List(ctx context.Context, name project.Name, state notify.State, limit int) ([]notify.Delivery, error)
	// Test adds a notification for one sink, and gives its ID.
	Test(ctx context.Context, sink string, by project.Pusher) (string, error)
	Get(ctx context.Context, id, sink string) (notify.Delivery, error)
	// Retry makes deliveries due that were not made, those of one notification or for "" all, and gives how many.
	Retry(ctx context.Context, id string) (int64, error)
	// Deliver makes an attempt at what is due, where no server does it.
	Deliver(ctx context.Context)
}

func notifyCommand(s *session) *cobra.Command {
	return group(s, "notify", "Show, test and retry notifications", notifyList(s), notifyTest(s), notifyRetry(s))
}

// shownDelivery returns a delivery as people and programs see it.
func shownDelivery(d notify.Delivery) status.Delivery {
	return status.Delivery{ID: d.ID, Sink: d.Sink, Event: d.Event, Project: d.Project, At: d.At, State: string(d.State), Attempts: d.Attempts, Next: d.Next, Last: d.Last, Error: d.Error}
}

func notifyList(s *session) *cobra.Command {
	var limit int
	var failed bool
	c := &cobra.Command{
		Use: "list [PROJECT]", Short: "List deliveries of notifications, newest first, and the sinks", Args: exactly("[PROJECT]"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.admin("notify list", ""); err != nil {
				return err
			}
			if limit < 1 {
				return usage("--limit must be 1 or more")
			}
			var name project.Name
			if len(args) == 1 {
				var err error
				if name, err = project.ParseName(args[0]); err != nil {
					return err
				}
			}
			state := notify.State("")
			if failed {
				state = notify.GivenUp
			}
			doc := status.Notifications{Version: status.Version, Sinks: []status.Sink{}, Deliveries: []status.Delivery{}}
			for _, x := range s.b.Notifications.Sinks() {
				doc.Sinks = append(doc.Sinks, status.Sink{Name: x.Name, Kind: x.Kind, Projects: x.Projects, Environments: x.Environments, Events: x.Events, Verdicts: x.Verdicts})
			}
			all, err := s.b.Notifications.List(s.ctx, name, state, limit)
			if err != nil {
				return err
			}
			for _, d := range all {
				doc.Deliveries = append(doc.Deliveries, shownDelivery(d))
			}
			if s.json {
				return s.document(doc)
			}
			return s.deliveries(doc)
		},
	}
	c.Flags().IntVar(&limit, "limit", 20, "how many")
	c.Flags().BoolVar(&failed, "failed", false, "only failed ones")
	return s.listFlags(c)
}

func (s *session) deliveries(doc status.Notifications) error {
	p := s.printer()
	if len(doc.Sinks) == 0 {
		p.line("no sinks are configured: docs/notifications.md")
	}
	for _, x := range doc.Sinks {
		p.line("sink %s  %s", x.Name, x.Kind)
	}
	p.line("")
	if len(doc.Deliveries) == 0 {
		p.line("no deliveries yet")
		return p.err
	}
	t := table{heads: []string{"WHEN", "EVENT", "PROJECT", "SINK", "STATE", "ATTEMPTS", "ID", "ERROR"}, flexible: []int{7}}
	for _, d := range doc.Deliveries {
		t.add(cell{text: s.when(d.At)}, cell{text: d.Event}, cell{text: orNone(string(d.Project))}, cell{text: d.Sink}, cell{text: d.State}, cell{text: fmt.Sprint(d.Attempts)}, cell{text: d.ID}, cell{text: d.Error})
	}
	t.print(p, s.who.Term)
	return p.err
}

func notifyTest(s *session) *cobra.Command {
	return s.jsonFlag(&cobra.Command{
		Use: "test SINK", Short: "Send a test notification to a sink", Args: exactly("SINK"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.admin("notify test", ""); err != nil {
				return err
			}
			id, err := s.b.Notifications.Test(s.ctx, args[0], s.who.Pusher())
			if err := s.audited(audit.Entry{Action: "notify test", Object: args[0]}, err); err != nil {
				return err
			}
			d, err := s.attempted(id, args[0])
			if err != nil {
				return err
			}
			if s.json {
				if err := s.document(status.NotificationTest{Version: status.Version, Delivery: shownDelivery(d)}); err != nil {
					return err
				}
			}
			if d.State != notify.Delivered {
				return fault.New(fault.Failed, "notify test", "%s rejected it: %s", d.Sink, d.Error).
					WithHint("it will be retried:  corpus-git notify list  shows when")
			}
			if s.json {
				return nil
			}
			p := s.printer()
			p.line("delivered to %s", d.Sink)
			return p.err
		},
	})
}

// attempted waits for the first attempt to deliver a notification to a sink, as long as the sink's timeout allows.
func (s *session) attempted(id, sink string) (notify.Delivery, error) {
	if !s.b.Detached {
		s.b.Notifications.Deliver(s.ctx)
	}
	all := s.b.Notifications.Sinks()
	limit := 10 * time.Second
	if i := slices.IndexFunc(all, func(x config.Sink) bool { return x.Name == sink }); i >= 0 {
		limit += all[i].Timeout
	}
	late := time.After(limit)
	for {
		d, err := s.b.Notifications.Get(s.ctx, id, sink)
		if err != nil || d.Attempts > 0 {
			return d, err
		}
		select {
		case <-s.ctx.Done():
			return d, context.Cause(s.ctx)
		case <-late:
			return d, fault.New(fault.Busy, "notify test", "no attempt for %s within %s: other messages are ahead in the queue", sink, humanize.Seconds(limit)).
				WithHint("corpus-git notify list  shows pending messages")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func notifyRetry(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "retry [ID]", Short: "Retry pending and failed deliveries of one or all notifications", Args: exactly("[ID]"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.admin("notify retry", ""); err != nil {
				return err
			}
			n, err := s.b.Notifications.Retry(s.ctx, arg(args, 0))
			if err := s.audited(audit.Entry{Action: "notify retry", Object: arg(args, 0)}, err); err != nil {
				return err
			}
			if !s.b.Detached {
				s.b.Notifications.Deliver(s.ctx)
			}
			p := s.printer()
			p.line("%s will be retried", humanize.Plural(n, "delivery", "deliveries"))
			return p.err
		},
	}
}
