package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"corpus-git/cluster/replica"
	"corpus-git/cluster/stream"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
)

// Hub is one server of a cluster.
type Hub struct {
	Name string `json:"name"`
	SSH  string `json:"ssh"`            // HOST:PORT where the other hubs reach its ssh server
	HTTP string `json:"http,omitempty"` // likewise of its web listener
	NATS string `json:"nats"`           // tls://HOST:PORT of the NATS server beside it
}

// Config describes this hub's part in a cluster.
type Config struct {
	Self Hub
	// Hubs returns all of them as they are now, Self included.
	Hubs func() ([]Hub, error)
	// Connect connects to the hubs' account on any of the NATS servers, the own one first.
	Connect func(opts ...nats.Option) (*nats.Conn, error)
	Root    layout.Root
	State   layout.State
	// Founder means that this hub's state is the cluster's first.
	Founder bool
	// Release is that of this program, for Status.
	Release string
	// Free returns how much space is left where the NATS server beside this hub stores the log, in bytes, for Status; nil does not know.
	Free func() (int64, error)
	// LogLimit is the size of the log from which it is shortened even if a hub that is not heard still needs it, in bytes: that hub copies. 0 is the default, 4 GiB.
	LogLimit uint64
	// MayLead returns nil, or why this hub must not lead although no other one does: then it goes on following. fresh means that it has heard no leader since Open. nil has no objection.
	MayLead func(ctx context.Context, fresh bool) error
	// Silence is how long nothing is heard of a leader before this hub tries to lead. 0 is the default, 2.5 seconds.
	Silence time.Duration
	Log     zerolog.Logger
}

// ErrLost means that another hub leads.
var ErrLost = errors.New("another hub leads")

// What a hub does, in Status.
const (
	Leads       = "leads"
	Follows     = "follows"
	Copies      = "copies"
	Unreachable = "unreachable"
)

// Status is what is known of one hub.
type Status struct {
	Name string `json:"name"`
	// Does is Leads, Follows, Copies or Unreachable.
	Does string `json:"does"`
	// Applied is the number of the last message of the log that it has applied, Behind how many there are after it.
	Applied uint64 `json:"applied"`
	Behind  uint64 `json:"behind"`
	// Copied is how many files and folders it has looked at of those that it copies.
	Copied int64 `json:"copied"`
	// Seen is when it was last heard; zero if never.
	Seen time.Time `json:"seen"`
	// Release is that of its program, Trouble what keeps it from following, "" for nothing.
	Release string `json:"release"`
	Trouble string `json:"trouble"`
	// Barred is why it must not lead (Config.MayLead), "" if nothing is known that keeps it from that.
	Barred string `json:"barred"`
	// Free is how much space is left for the log on its machine, in bytes; nil if that is not known.
	Free *int64 `json:"free"`
	// Skew is how much its clock is ahead of this hub's, as far as is known: what a message takes is in it.
	Skew time.Duration `json:"skew"`
}

// Log is the extent of the log.
type Log struct {
	// Bytes is its size, Limit the size from which it is shortened even if a hub that is not heard still needs it.
	Bytes, Limit uint64
	// Missing are the NATS servers that do not store it at the moment, or lack some of it.
	Missing []string
}

// Cluster is this hub's part in a cluster. Its methods are safe for concurrent use.
type Cluster struct {
	c     Config
	conn  *nats.Conn
	log   *stream.Log
	files replica.Files
	// ended is closed by Close, wake has a value when a follower should look at the log.
	ended chan struct{}
	wake  chan struct{}
	all   sync.WaitGroup
	stops []func()

	mu      sync.Mutex
	pos     position
	does    string
	heard   beat
	heardAt time.Time
	reports map[string]Status
	trouble error   // why this hub can't follow
	barred  error   // why it must not lead
	copied  int64   // while this hub copies
	leader  *Leader // while this hub leads
	// known are the hubs as they were read last, resigned is the greatest epoch that was ended in order.
	known    []Hub
	resigned uint64

	// cursor is the number of the last message that was read, batch that of the first part of an incomplete batch, 0 for none. Follow alone uses them.
	cursor, batch uint64
}

// Open connects to the NATS servers and creates the log if it is missing, for which it waits until all three respond or ctx ends. ctx limits Open alone. The caller calls Close.
func Open(ctx context.Context, c Config) (*Cluster, error) {
	c.LogLimit, c.Silence = cmp.Or(c.LogLimit, logLimit), cmp.Or(c.Silence, quiet)
	cl := &Cluster{
		c: c, files: replica.Files{FS: vfs.OS{}, Root: c.Root, State: c.State}, ended: make(chan struct{}), wake: make(chan struct{}, 1), does: Follows, reports: map[string]Status{},
	}
	var err error
	if cl.pos, err = cl.readPosition(); err != nil {
		return nil, err
	}
	if cl.known, err = c.Hubs(); err != nil {
		return nil, err
	}
	for cl.conn == nil {
		// What can't be sent at once is an error: it must not be sent long after somebody has given up.
		cl.conn, err = c.Connect(nats.Name("hub "+c.Self.Name), nats.MaxReconnects(-1), nats.ReconnectWait(reconnect), nats.ReconnectBufSize(-1))
		if err == nil {
			break
		}
		cl.conn = nil
		if !pause(ctx, reconnect) {
			return nil, fault.New(fault.Busy, "connect to the NATS servers of the hubs", "%w", err)
		}
	}
	if cl.log, err = stream.Open(ctx, cl.conn); err == nil {
		err = cl.listen()
	}
	if err != nil {
		cl.conn.Close()
		return nil, fault.New(fault.Busy, "", "%w", err).WithHint("the log of the hubs needs two of the three NATS servers, and all three when it is created")
	}
	cl.all.Go(cl.report)
	return cl, nil
}

// reconnect is the time between two attempts to connect.
const reconnect = 100 * time.Millisecond

// pause waits; it reports false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// listen subscribes to what the other hubs say.
func (c *Cluster) listen() error {
	for topic, f := range map[string]func([]byte){beatTopic: c.hearBeat, reportTopic: c.hearReport, resignTopic: c.hearResign} {
		stop, err := c.log.Hear(topic, f)
		if err != nil {
			return err
		}
		c.stops = append(c.stops, stop)
	}
	return nil
}

// The topics of messages that are not in the log.
const (
	beatTopic   = "beat"
	reportTopic = "report"
	resignTopic = "resign"
	copyTopic   = "copy."
)

func (c *Cluster) hearBeat(data []byte) {
	var b beat
	if json.Unmarshal(data, &b) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.Epoch < c.pos.Epoch || b.Epoch < c.heard.Epoch {
		return // of a hub that does not know yet that it was replaced
	}
	c.heard, c.heardAt = b, time.Now()
	c.reports[b.Hub.Name] = Status{Name: b.Hub.Name, Does: Leads, Applied: b.Last, Seen: c.heardAt, Release: b.Release, Free: b.Free, Skew: skew(b.At)}
	if l := c.leader; l != nil && b.Epoch > l.epoch {
		l.lose(ErrLost)
	}
	c.news()
}

// hearResign hears that a hub no longer leads, and that the log has all that it had: another one can lead at once.
func (c *Cluster) hearResign(data []byte) {
	var r resignation
	if json.Unmarshal(data, &r) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Epoch < c.pos.Epoch || r.Epoch < c.heard.Epoch || r.Name == c.c.Self.Name {
		return
	}
	c.resigned, c.heardAt = r.Epoch, time.Time{}
	c.news()
}

// news wakes a follower.
func (c *Cluster) news() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Cluster) hearReport(data []byte) {
	var r report
	if json.Unmarshal(data, &r) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reports[r.Name] = Status{Name: r.Name, Does: r.Does, Applied: r.Applied, Seen: time.Now(), Release: r.Release, Trouble: r.Trouble, Barred: r.Barred, Free: r.Free, Skew: skew(r.At), Copied: r.Copied}
}

// free returns how much space is left for the log on this machine, nil if that is not known.
func (c *Cluster) free() *int64 {
	if c.c.Free == nil {
		return nil
	}
	n, err := c.c.Free()
	if err != nil {
		return nil
	}
	return &n
}

// skew returns how much the clock of the hub that has sent a message is ahead of this one's; 0 if it is of a release that does not say.
func skew(at time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return time.Until(at).Round(time.Millisecond)
}

// report tells the others what this hub does.
func (c *Cluster) report() {
	t := time.NewTicker(reportEvery)
	defer t.Stop()
	for {
		free := c.free()
		c.mu.Lock()
		r, leads := report{Name: c.c.Self.Name, Does: c.does, Applied: c.pos.Applied, Release: c.c.Release, Trouble: shown(c.trouble), Barred: shown(c.barred), Free: free, At: time.Now(), Copied: c.copied}, c.does == Leads
		c.mu.Unlock()
		if data, err := json.Marshal(r); err == nil && !leads {
			_ = c.log.Say(reportTopic, data) // the next one replaces it
		}
		select {
		case <-c.ended:
			return
		case <-t.C:
		}
	}
}

// Leader returns the hub that leads, as was heard last; ok is false if none was heard recently.
func (c *Cluster) Leader() (h Hub, epoch uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard.Hub, c.heard.Epoch, !c.heardAt.IsZero() && time.Since(c.heardAt) < quiet
}

// hubs returns the hubs as they are now, or as they were last if they can't be read. What was heard of one that was removed is forgotten.
func (c *Cluster) hubs() []Hub {
	now, err := c.c.Hubs()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && len(now) > 0 {
		c.known = now
	}
	for name := range c.reports {
		if !slices.ContainsFunc(c.known, func(h Hub) bool { return h.Name == name }) {
			delete(c.reports, name)
		}
	}
	return c.known
}

// Status returns what is known of each hub, and of the log: fault.Busy, with the hubs, if no majority of the NATS servers answers about it.
func (c *Cluster) Status(ctx context.Context) ([]Status, Log, error) {
	hubs, free := c.hubs(), c.free()
	s, err := c.log.State(ctx)
	log := Log{Bytes: s.Bytes, Limit: c.c.LogLimit, Missing: s.Missing}
	if err != nil {
		err = fault.New(fault.Busy, "", "no majority of the NATS servers of the hubs answers: %w", err)
	} else if s.Leader == "" {
		err = fault.New(fault.Busy, "", "no majority of the NATS servers of the hubs answers")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		s.Last = max(s.Last, c.heard.Last, c.pos.Applied)
	}
	var out []Status
	now := time.Now()
	for _, h := range hubs {
		name := h.Name
		r := c.reports[name]
		r.Name = name
		switch {
		case name == c.c.Self.Name:
			r.Does, r.Applied, r.Seen, r.Release, r.Trouble, r.Barred, r.Free, r.Skew, r.Copied = c.does, c.pos.Applied, now, c.c.Release, shown(c.trouble), shown(c.barred), free, 0, c.copied
			if c.leader != nil {
				r.Applied = s.Last
			}
		case name == c.heard.Hub.Name && now.Sub(c.heardAt) < unreachable:
			r.Does, r.Applied, r.Seen = Leads, s.Last, c.heardAt
		case now.Sub(r.Seen) >= unreachable || r.Does == Leads: // one that led is no longer heard
			r.Does = Unreachable
		}
		r.Behind = s.Last - min(s.Last, r.Applied)
		out = append(out, r)
	}
	return out, log, err
}

// Close disconnects.
func (c *Cluster) Close() error {
	close(c.ended)
	for _, stop := range c.stops {
		stop()
	}
	c.mu.Lock()
	l := c.leader
	c.mu.Unlock()
	if l != nil {
		l.lose(ErrLost)
		l.all.Wait()
	}
	c.conn.Close()
	c.all.Wait()
	return nil
}
