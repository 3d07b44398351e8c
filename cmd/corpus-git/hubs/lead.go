package hubs

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/cluster"
	"corpus-git/cluster/relay"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/layout"
	"corpus-git/project"
)

// Lead is the leadership of this hub. A nil Lead is that of a server without others: its methods do nothing.
type Lead struct {
	log    *cluster.Cluster
	leader *cluster.Leader
	member membership
	state  layout.State
	// given: the sockets are those of the service manager.
	given   bool
	closing atomic.Bool
	// farewell tells clients that this process ends.
	farewell atomic.Pointer[func(context.Context, error)]
	logger   zerolog.Logger
}

// Cluster returns the cluster, nil without others.
func (l *Lead) Cluster() *cluster.Cluster {
	if l == nil {
		return nil
	}
	return l.log
}

// Database tells which database belongs to the state.
func (l *Lead) Database(d *sql.DB) {
	if l != nil {
		l.leader.Database(d)
	}
}

// Logs returns what opens the event logs of deployments, so that Share looks at no others; nil without other hubs.
func (l *Lead) Logs() *event.Opened {
	if l == nil {
		return nil
	}
	logs := &event.Opened{}
	l.leader.Logs(logs.Written)
	return logs
}

// Share returns when the database, the files of the state and those of the named projects are on the disks of a majority of the hubs as they are now. If this hub no longer leads it does not return:
// the process ends (UntilLost), and nothing that depends on it may happen before that.
func (l *Lead) Share(names ...project.Name) {
	if l == nil {
		return
	}
	ctx := context.Background()
	if len(names) == 0 {
		l.share(func() error { return l.leader.BarrierState(ctx) })
	}
	for _, n := range names {
		l.share(func() error { return l.leader.Barrier(ctx, n) })
	}
}

// ShareAfter is Share for what a command line may have changed: the state, and the projects that it names, among them new ones and those that are gone.
func (l *Lead) ShareAfter(argv []string) {
	if l == nil {
		return
	}
	l.share(func() error { return l.leader.BarrierState(context.Background(), named(argv)...) })
}

// named returns what may be names of projects in a command line.
func named(argv []string) (names []project.Name) {
	for _, arg := range argv {
		_, value, ok := strings.Cut(arg, "=") // of a flag
		if !ok {
			value = arg
		}
		if name, err := project.ParseName(value); err == nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

const (
	// shareRetry is the pause after an error of sharing, and shareLimit how long it may last: then another hub should lead.
	shareRetry = 500 * time.Millisecond
	shareLimit = 15 * time.Second
)

func (l *Lead) share(barrier func() error) {
	for begun := time.Now(); ; time.Sleep(shareRetry) {
		err := barrier()
		if err == nil {
			return
		}
		if errors.Is(err, cluster.ErrLost) {
			select {} // until the process ends
		}
		l.logger.Error().Err(err).Msg("share the state with the other hubs")
		if time.Since(begun) > shareLimit {
			l.restart()
		}
	}
}

// UntilLost has the process start again as soon as this hub no longer leads, after farewell has told the clients why.
func (l *Lead) UntilLost(farewell func(context.Context, error)) {
	if l == nil {
		return
	}
	l.farewell.Store(&farewell)
	go func() {
		<-l.leader.Lost()
		if !l.closing.Load() {
			l.restart()
		}
	}()
}

// Accepting returns a listener that takes the address of a client from the hub that relays it.
func (l *Lead) Accepting(n net.Listener) net.Listener {
	if l == nil || n == nil {
		return n
	}
	var mu sync.Mutex
	var known []net.IP
	var at time.Time
	return relay.Accepting(n, func(ip net.IP) bool {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(at) > time.Minute {
			at, known = time.Now(), nil
			if now, err := load(l.state); err == nil { // hubs are added and removed while this one leads
				l.member = now
			}
			for _, h := range l.member.Hubs {
				found, _ := net.LookupIP(host(h.SSH))
				known = append(known, found...)
			}
		}
		return slices.ContainsFunc(known, ip.Equal)
	})
}

// Close ships what was written last, and leaves. Nothing writes any more; the database is still open.
func (l *Lead) Close(ctx context.Context) error {
	if l == nil {
		return nil
	}
	l.closing.Store(true)
	err := l.leader.Close(ctx)
	if cerr := l.log.Close(); err == nil {
		err = cerr
	}
	return err
}

// telling limits how long clients are told.
const telling = time.Second

// exitLost is the exit status of a server that no longer leads and was given its sockets, which a replaced process would not have: EX_TEMPFAIL of sysexits.h, after which the service manager starts it again.
const exitLost = 75

// restart replaces this process by a new one of the same program, which follows. Nothing that the old one was doing goes on.
func (l *Lead) restart() {
	l.logger.Error().Msg("this hub no longer leads; it starts again and follows")
	if tell := l.farewell.Load(); tell != nil {
		ctx, cancel := context.WithTimeout(context.Background(), telling)
		(*tell)(ctx, fault.New(fault.Busy, "", "this hub no longer leads the others, and how this ends is not known yet").
			WithHint("the hub that leads next goes on with what was running, or rolls it back: push the same commit again to join it, or follow it with  logs -f PROJECT"))
		cancel()
	}
	if !l.given {
		program, err := os.Executable()
		if err == nil {
			err = syscall.Exec(program, os.Args, os.Environ()) //nolint:gosec // our own program and arguments
		}
		l.logger.Error().Err(err).Msg("start again")
	}
	os.Exit(exitLost)
}
