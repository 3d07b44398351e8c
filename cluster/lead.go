package cluster

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"corpus-git/cluster/replica"
	"corpus-git/cluster/wal"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// Leader ships this hub's changes to the log. Its methods are safe for concurrent use.
type Leader struct {
	c     *Cluster
	epoch uint64
	lost  chan struct{}
	once  sync.Once
	all   sync.WaitGroup

	mu   sync.Mutex
	err  error // why it no longer leads
	next *group
	last uint64 // the number of the last message of the log
	db   *sql.DB
	// copying are the hubs that copy, and when they were last heard.
	copying map[string]time.Time
	// closed means that the database was closed.
	closed bool
	// logs are Logs.
	logs func() []string

	// work has a value when next has something to ship.
	work chan struct{}
	// source is used by the goroutine that ships alone, and by Lead before.
	source *replica.Source
	// failing is when the log was first found without a majority, zero if it has one.
	failing time.Time
}

// group are the calls of Barrier that one batch answers.
type group struct {
	scope replica.Scope
	// after runs when the batch is in the log, in the goroutine that ships.
	after []func() error
	done  chan struct{}
	err   error
}

// begin starts a leadership: from now on this hub says that it leads.
func (c *Cluster) begin(seq, epoch uint64) {
	l := &Leader{c: c, epoch: epoch, last: seq, lost: make(chan struct{}), work: make(chan struct{}, 1), copying: map[string]time.Time{}}
	c.mu.Lock()
	c.leader, c.does = l, Leads
	c.mu.Unlock()
	l.all.Go(l.beat)
}

// lose ends a leadership.
func (l *Leader) lose(err error) {
	l.once.Do(func() {
		go func() { // the caller may hold a lock
			l.mu.Lock()
			l.err = err
			l.mu.Unlock()
			l.c.setDoes(Follows)
			close(l.lost)
		}()
	})
}

// Lead begins to ship this hub's changes, after Follow has returned. It must be called before anything of the state is opened: what changes from then on is shipped.
func (c *Cluster) Lead(ctx context.Context) (*Leader, error) {
	c.mu.Lock()
	l := c.leader
	c.mu.Unlock()
	if l == nil {
		return nil, fault.New(fault.Internal, "lead the hubs", "this hub does not lead")
	}
	err := c.settleDatabase(ctx)
	if err == nil {
		l.source, err = replica.NewSource(ctx, c.files)
	}
	if err != nil {
		l.lose(err)
		return nil, fault.New(fault.Internal, "lead the hubs", "%w", err)
	}
	stop, err := c.log.Answer(copyTopic+c.c.Self.Name, copyLimit, l.answer)
	if err != nil {
		l.lose(err)
		return nil, err
	}
	l.all.Go(func() {
		<-l.lost
		stop()
	})
	l.all.Go(l.ships)
	return l, nil
}

// Database tells which database is shipped with the files. It was opened with db.Options{Replicated: true}.
func (l *Leader) Database(d *sql.DB) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.db = d
}

// Logs tells which event logs Barrier looks at: written names those that may have changed since its last call, by their paths. Without it, it looks at all logs of a project in which something is in progress.
func (l *Leader) Logs(written func() []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.logs = written
}

// Epoch returns the number of this leadership.
func (l *Leader) Epoch() uint64 { return l.epoch }

// Lost is closed when this hub no longer leads.
func (l *Leader) Lost() <-chan struct{} { return l.lost }

// beat says that this hub leads, until it does not.
func (l *Leader) beat() {
	t := time.NewTicker(beatEvery)
	defer t.Stop()
	for {
		l.say()
		select {
		case <-l.lost:
			return
		case <-t.C:
		}
	}
}

func (l *Leader) say() {
	free := l.c.free()
	l.mu.Lock()
	b := beat{Hub: l.c.c.Self, Epoch: l.epoch, Last: l.last, Release: l.c.c.Release, Free: free, At: time.Now()}
	l.mu.Unlock()
	if data, err := json.Marshal(b); err == nil {
		_ = l.c.log.Say(beatTopic, data) // the next one replaces it
	}
}

// Barrier ships what has changed in the database, in the state of the server and in a project, "" for all projects. It is on the disks of a majority on return. ErrLost means that another hub leads:
// then nothing more may be acknowledged or ordered.
func (l *Leader) Barrier(ctx context.Context, name project.Name) error {
	scope := replica.Scope{All: name == ""}
	if !scope.All {
		scope.Projects = []string{string(name)}
	}
	return l.ship(ctx, scope, nil)
}

// BarrierState is Barrier for the database and the state of the server, for the projects in which something is in progress, and for those named, which need not exist.
func (l *Leader) BarrierState(ctx context.Context, names ...project.Name) error {
	var scope replica.Scope
	for _, n := range names {
		scope.Projects = append(scope.Projects, string(n))
	}
	return l.ship(ctx, scope, nil)
}

// ship ships what has changed, together with what others ask for meanwhile, and calls after.
func (l *Leader) ship(ctx context.Context, scope replica.Scope, after func() error) error {
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return ErrLost
	}
	if l.next == nil {
		l.next = &group{done: make(chan struct{})}
	}
	g := l.next
	g.scope.All = g.scope.All || scope.All
	g.scope.Projects = append(g.scope.Projects, scope.Projects...)
	if after != nil {
		g.after = append(g.after, after)
	}
	l.mu.Unlock()
	select {
	case l.work <- struct{}{}:
	default:
	}
	select {
	case <-g.done:
		return g.err
	case <-l.lost:
		return ErrLost
	case <-ctx.Done():
		return ctx.Err()
	}
}

const (
	// tending is how often the leader looks at the log, and ships what nobody waits for.
	tending = 2 * time.Second
	// sweeping is how often it looks at all projects for that, and rest how many times longer than the last look it waits at least.
	sweeping, rest = time.Minute, 50
	// shortening is how often it shortens the log.
	shortening = 30 * time.Second
	// attempts is how often a capture is tried while files are removed or become shorter as they are read.
	attempts = 5
)

// ships ships until the leadership ends.
func (l *Leader) ships() {
	tend := time.NewTicker(tending)
	defer tend.Stop()
	swept, sweep := time.Now(), sweeping
	shortened := time.Now()
	for {
		select {
		case <-l.lost:
			return
		case <-l.work:
			l.mu.Lock()
			g := l.next
			l.next = nil
			l.mu.Unlock()
			if g != nil {
				l.group(g)
			}
		case <-tend.C:
			all := time.Since(swept) > sweep
			began := time.Now()
			if err := l.batch(replica.Scope{All: all}); err != nil && !errors.Is(err, ErrLost) {
				l.c.c.Log.Error().Err(err).Msg("sending changes to the other hubs")
			}
			if all {
				swept, sweep = time.Now(), max(sweeping, rest*time.Since(began))
			}
			l.tend(time.Since(shortened) > shortening)
			if time.Since(shortened) > shortening {
				shortened = time.Now()
			}
		}
	}
}

// group ships one group.
func (l *Leader) group(g *group) {
	g.err = l.batch(g.scope)
	for _, after := range g.after {
		if g.err == nil {
			g.err = after()
		}
	}
	close(g.done)
}

// batch ships what has changed as one batch.
func (l *Leader) batch(scope replica.Scope) (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := context.AfterFunc(lostContext{ctx, l.lost}, cancel)
	defer stop()
	l.mu.Lock()
	if l.closed {
		l.source.Closed()
	}
	l.source.Logs(l.logs)
	l.mu.Unlock()
	for range attempts {
		w := &partWriter{ctx: ctx, l: l}
		b := replica.NewBatch(w)
		var c *replica.Capture
		if c, err = l.source.Capture(ctx, scope, b); err != nil {
			b.Abandon()
			if w.err != nil {
				return w.err
			}
			switch {
			case l.ended():
				return ErrLost
			case errors.Is(err, wal.ErrRestarted): // what it contained can't be sent any more
				l.c.c.Log.Error().Err(err).Msg("this hub no longer leads")
				l.lose(err)
				return ErrLost
			}
			continue
		}
		if b.Records == 0 {
			c.Done()
			return nil
		}
		if err = b.Close(); err == nil {
			err = w.finish()
		}
		if err != nil {
			c.Undo()
			return err
		}
		c.Done()
		l.say()
		return nil
	}
	return fault.New(fault.Internal, "send changes to the other hubs", "%w", err)
}

// ended reports whether the leadership has ended.
func (l *Leader) ended() bool {
	select {
	case <-l.lost:
		return true
	default:
		return false
	}
}

// errResigned is why a leadership ended that another hub continues at once.
var errResigned = fmt.Errorf("%w: this hub has handed over", ErrLost)

// resignWait limits how long the message may take to reach the NATS server.
const resignWait = time.Second

// resign tells the others that one of them can lead at once. If it does not reach them they notice the silence.
func (l *Leader) resign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, resignWait)
	defer cancel()
	data, err := json.Marshal(resignation{Name: l.c.c.Self.Name, Epoch: l.epoch})
	if err == nil {
		err = l.c.log.Say(resignTopic, data)
	}
	if err == nil {
		err = l.c.log.Flush(ctx)
	}
	if err != nil {
		l.c.c.Log.Debug().Err(err).Msg("telling the other hubs that one of them can lead")
	}
}

// Close ships everything, marks the position clean, so that this hub can follow without a copy, and lets another hub lead at once. Nothing may write to the state any more. The database may be
// open or closed; if it is closed all of it is sent.
func (l *Leader) Close(ctx context.Context) error {
	l.mu.Lock()
	d := l.db
	l.mu.Unlock()
	open := d != nil && d.PingContext(ctx) == nil
	l.mu.Lock()
	l.closed = !open
	l.mu.Unlock()
	err := l.ship(ctx, replica.Scope{All: true}, nil)
	if err == nil && open {
		err = l.checkpoint(ctx, d)
	}
	if err != nil {
		l.lose(ErrLost)
		l.all.Wait()
		return err
	}
	l.lose(errResigned) // ends what runs in the background; the log still ends with this hub's last message
	l.all.Wait()
	l.mu.Lock()
	last := l.last
	l.mu.Unlock()
	if err = l.c.setPosition(position{Applied: last, Epoch: l.epoch}); err == nil {
		l.resign(ctx)
	}
	l.c.mu.Lock()
	l.c.leader = nil
	l.c.mu.Unlock()
	return err
}
