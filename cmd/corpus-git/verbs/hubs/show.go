package hubs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"corpus-git/cluster"
	"corpus-git/cluster/member"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/layout"
	"corpus-git/project/status"
)

func shown(s Session, verb string, show func(d status.Hubs, now time.Time, line func(string, ...any))) error {
	if err := s.Admin(verb, ""); err != nil {
		return err
	}
	d, err := Document(s.Context, s.State, s.Cluster, "", s.Now())
	if err != nil {
		return err
	}
	if s.JSON() {
		return s.Document(d)
	}
	p := s.Printer()
	show(d, s.Now(), p.Line)
	return p.Err()
}

// Document returns what is known of the hubs. c is nil on a hub without others, on one that still serves alone, and on one that cannot open the log, for the reason trouble.
func Document(ctx context.Context, state layout.State, c Cluster, trouble string, now time.Time) (d status.Hubs, err error) {
	d.Version, d.Hubs, d.Problems = status.Version, []status.Hub{}, []status.HubProblem{}
	l, err := member.Load(state)
	if err != nil {
		return d, err
	}
	self, _, err := member.LoadSelf(state)
	if err != nil {
		return d, err
	}
	var all []cluster.Status
	var log cluster.Log
	var unanswered error
	if c != nil {
		all, log, unanswered = c.Status(ctx)
		if h, epoch, ok := c.Leader(); ok {
			d.Leader, d.Epoch = h.Name, epoch
		}
		d.LogBytes, d.LogLimit = log.Bytes, log.Limit
	}
	d.Formed = l.Formed
	for _, m := range l.Hubs {
		h := status.Hub{Name: m.Name, SSH: m.SSH, HTTP: m.HTTP, NATS: m.NATS, State: "not joined"}
		if m.Joined {
			h.State = "joined"
		}
		if m.Joined && l.Formed {
			h.State = "unknown"
		}
		if at := slices.IndexFunc(all, func(o cluster.Status) bool { return o.Name == m.Name }); at >= 0 {
			o := all[at]
			h.State, h.Applied, h.Behind, h.Seen, h.Release, h.Trouble, h.Barred, h.LogSpace, h.Copied, h.ClockAhead = o.Does, o.Applied, o.Behind, o.Seen, o.Release, o.Trouble, o.Barred, o.Free, o.Copied, o.Skew.Truncate(time.Second).Seconds()
		}
		d.Hubs = append(d.Hubs, h)
	}
	if len(l.Hubs) > 0 {
		d.Self = self.Name
	}
	found := problems{d: d, now: now}
	switch {
	case !l.Formed:
	case c == nil && trouble == "":
		found.add(self.Name, fmt.Sprintf("start the NATS servers of all hubs, here again:  nats-server -c %s/nats.conf ; then restart this hub", state.NATS()), "this hub serves alone, as before the others joined: they have no state in common yet")
	case c == nil:
		found.add(self.Name, fmt.Sprintf("two of the three NATS servers have to run, when the hubs begin all of them; here  nats-server -c %s/nats.conf", state.NATS()), "this hub waits for the NATS servers of the hubs: %s", trouble)
	default:
		found.running(unanswered, log, state)
	}
	d.Problems = append(d.Problems, found.out...)
	return d, nil
}

// heard says when a hub was heard last.
func heard(h status.Hub, now time.Time) string {
	if h.Seen.IsZero() {
		return "never heard"
	}
	return "heard " + humanize.Age(now, h.Seen)
}

func list(d status.Hubs, now time.Time, line func(string, ...any)) {
	if len(d.Hubs) == 0 {
		line("this hub has no others:  corpus-git hub add NAME --ssh HOST:PORT --nats tls://HOST:PORT")
		return
	}
	for _, h := range d.Hubs {
		more := ""
		switch h.State {
		case cluster.Follows:
			more = fmt.Sprintf("  %d behind", h.Behind)
		case cluster.Copies: // the log comes afterwards
			more = fmt.Sprintf("  %d files so far", h.Copied)
		}
		switch {
		case h.Name == d.Self:
			more += "  (this one)"
		case h.State != "joined" && h.State != "not joined" && h.State != "unknown":
			more += "  " + heard(h, now)
		}
		line("%-16s %-12s ssh %s  %s%s", h.Name, h.State, h.SSH, h.NATS, more)
	}
	switch {
	case !d.Formed:
		line("the hubs do not share their state yet: three have to join")
	case d.Leader != "":
		line("%s leads, epoch %d", d.Leader, d.Epoch)
	default:
		line("none leads")
	}
	said(d, line)
}

// said prints what is wrong.
func said(d status.Hubs, line func(string, ...any)) {
	for _, p := range d.Problems {
		line("problem: %s", p.Problem)
		if p.Hint != "" {
			line("hint: %s", p.Hint)
		}
	}
}

func own(d status.Hubs, _ time.Time, line func(string, ...any)) {
	at := slices.IndexFunc(d.Hubs, func(h status.Hub) bool { return h.Name == d.Self })
	if at < 0 {
		line("this hub has no others")
		return
	}
	h := d.Hubs[at]
	line("name     %s", h.Name)
	line("state    %s", h.State)
	if !d.Formed {
		line("hubs     %d, which do not share their state yet", len(d.Hubs))
		return
	}
	line("leader   %s", cmp.Or(d.Leader, "none"))
	line("epoch    %d", d.Epoch)
	if h.State == cluster.Copies {
		line("copied   %d files so far", h.Copied)
	} else {
		line("applied  %d, %d behind", h.Applied, h.Behind)
	}
	if d.LogLimit > 0 {
		line("log      %s of %s", humanize.Bytes(int64(d.LogBytes)), humanize.Bytes(int64(d.LogLimit))) //nolint:gosec // far below 2^63
	}
	said(d, line)
}

// Answer answers hub list and hub status on a hub that follows, whose database is not open; ok is false for other command lines.
func Answer(state layout.State) func(ctx context.Context, c *cluster.Cluster, trouble string, argv []string, out, errw io.Writer) (code int, ok bool) {
	return func(ctx context.Context, at *cluster.Cluster, trouble string, argv []string, out, errw io.Writer) (int, bool) {
		shows := map[string]func(status.Hubs, time.Time, func(string, ...any)){"list": list, "status": own}
		if len(argv) < 2 || argv[0] != "hub" || shows[argv[1]] == nil {
			return 0, false
		}
		var c Cluster
		if at != nil {
			c = at
		}
		now := time.Now()
		d, err := Document(ctx, state, c, cmp.Or(trouble, "it has just started"), now)
		if err == nil && (slices.Contains(argv, "--json") || slices.Contains(argv, "--json=true")) {
			e := json.NewEncoder(out)
			e.SetIndent("", "  ")
			err = e.Encode(d)
		} else if err == nil {
			shows[argv[1]](d, now, func(format string, args ...any) {
				_, werr := fmt.Fprintf(out, format+"\n", args...)
				err = errors.Join(err, werr)
			})
		}
		if err != nil {
			fmt.Fprintf(errw, "error: %s\n", err)
			return fault.ExitCode(err), true
		}
		return 0, true
	}
}
