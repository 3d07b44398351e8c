package hubs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"corpus-git/cluster"
	"corpus-git/cluster/member"
	"corpus-git/internal/humanize"
	"corpus-git/layout"
	"corpus-git/project/status"
)

const (
	// lags is how many messages a hub may be behind before that is a problem, and apart how much clocks may differ.
	lags  = 500
	apart = 30 * time.Second
	// scarce is the space for the log from which a hub's is a problem, in bytes: the reserve that a server keeps by default for deployments (disk_reserve).
	scarce = 512 << 20
	// full is the share of the log's limit from which its size is a problem, in percent.
	full = 50
)

// problems collects what is wrong with the hubs of a document.
type problems struct {
	d   status.Hubs
	now time.Time
	out []status.HubProblem
	// mute: what hubs say of their own is a consequence.
	mute bool
}

func (p *problems) add(hub, hint, format string, args ...any) {
	p.out = append(p.out, status.HubProblem{Hub: hub, Problem: fmt.Sprintf(format, args...), Hint: hint})
}

// running finds what is wrong while the log is open. unanswered is why it does not answer.
func (p *problems) running(unanswered error, log cluster.Log, state layout.State) {
	both := "another one leads within seconds if two of the three run, each with its NATS server:  nats-server -c STATE/nats/nats.conf , corpus-git serve ; until then pushes wait, and are refused; if two are lost for good:  corpus-git hub alone  on the third"
	p.mute = unanswered != nil
	switch {
	case unanswered != nil:
		p.add("", both, "%s", unanswered)
	case p.d.Leader == "":
		p.add("", both, "no hub leads")
	}
	var releases []string
	for _, h := range p.d.Hubs {
		p.hub(h)
		if h.Release != "" && h.State != cluster.Unreachable {
			releases = append(releases, h.Release)
		}
	}
	for _, name := range log.Missing {
		if strings.Contains(name, " ") { // NATS says that it does not know its name
			p.add("", "start the NATS servers of all hubs", "a NATS server that has not been heard since those of the others were started does not have the whole log of the hubs")
			continue
		}
		p.add(name, "look at its log there, at the space on its disk, and whether it runs:  nats-server -c STATE/nats/nats.conf", "the NATS server of %s does not have the whole log of the hubs", name)
	}
	slices.Sort(releases)
	if releases = slices.Compact(releases); len(releases) > 1 {
		p.add("", "upgrade the others, those that follow first; releases must not differ for long", "the hubs run different releases: %s", strings.Join(releases, ", "))
	}
	if len(p.d.Hubs) < member.Size {
		p.add("", "corpus-git hub add NAME --ssh HOST:PORT --nats tls://HOST:PORT", "there are only %d hubs: none of them may fail", len(p.d.Hubs))
	}
	if log.Limit > 0 && log.Bytes/(log.Limit/100) >= full {
		p.add("", "start the hub that is away, or remove it; each NATS server needs that much space in "+state.JetStream(),
			"the log of the hubs is %s large, since a hub is away or behind; from %s on that hub has to copy", humanize.Bytes(int64(log.Bytes)), humanize.Bytes(int64(log.Limit))) //nolint:gosec // far below 2^63
	}
}

// hub finds what is wrong with one hub.
func (p *problems) hub(h status.Hub) {
	switch {
	case h.State == "not joined":
		p.add(h.Name, "on its machine:  corpus-git hub join TOKEN ; another token:  corpus-git hub add "+h.Name, "%s has not joined", h.Name)
	case h.State == cluster.Unreachable:
		hint := "start the NATS server and the hub there"
		if p.d.Leader != "" { // without a leader nothing can be removed
			hint += fmt.Sprintf("; if the machine is lost:  corpus-git hub remove %s --yes", h.Name)
		}
		p.add(h.Name, hint, "%s does not respond (%s)", h.Name, heard(h, p.now))
	case h.Trouble != "" && !p.mute:
		p.add(h.Name, "corpus-git doctor  there shows the space on its disks; it goes on by itself", "%s cannot follow: %s", h.Name, h.Trouble)
	case h.Behind >= lags && h.State == cluster.Follows:
		p.add(h.Name, "if that grows, its disk or its network is too slow", "%s is %d messages behind", h.Name, h.Behind)
	}
	if h.Barred != "" && h.State != cluster.Leads && h.State != cluster.Unreachable {
		p.add(h.Name, "it follows when another hub leads", "%s must not lead: %s", h.Name, h.Barred)
	}
	if h.LogSpace != nil && *h.LogSpace < scarce && h.State != cluster.Unreachable {
		p.add(h.Name, "free space there; when none is left its NATS server stops storing the log, and has to be restarted", "%s has %s left for the log of the hubs", h.Name, humanize.Bytes(*h.LogSpace))
	}
	if skew := time.Duration(h.ClockAhead * float64(time.Second)); h.State != cluster.Unreachable && skew.Abs() > apart {
		how := "ahead of"
		if skew < 0 {
			how = "behind"
		}
		p.add(h.Name, "set the clocks of the hubs by NTP: what expires and the order of archives go by the clock of the hub that leads",
			"the clock of %s is %s %s that of %s", h.Name, humanize.Rough(skew.Abs()), how, p.d.Self)
	}
}
