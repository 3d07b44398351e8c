package sshd

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Limits limits what clients may use. A zero field means its default.
type Limits struct {
	// Connections is the maximum number of connections at a time, from all sources, PerSource from one source (an IPv4 address or an IPv6
	// /64). Defaults 1024 and 512.
	Connections, PerSource int
	// Unauthenticated is the maximum number of unauthenticated connections at a time, from all sources, UnauthenticatedPerSource from one
	// source. Defaults 256 and 128.
	Unauthenticated, UnauthenticatedPerSource int
	// Sessions is the maximum number of sessions at a time on one connection. Default 10, as OpenSSH's MaxSessions.
	Sessions int
	// AuthTries is the number of keys that a client may offer. Default 6, as OpenSSH's MaxAuthTries.
	AuthTries int
	// Failures is the number of connections from one source that may fail to log in within Penalty; further ones are refused for the same
	// time. Defaults 30 and 1 minute.
	Failures int
	Penalty  time.Duration
	// LoginGrace is the time limit for the login, and KeyExchange the part of it within which a client must have begun the key exchange.
	// Defaults 30 s and 10 s.
	LoginGrace, KeyExchange time.Duration
	// Idle is how long a connection may stay open after login without a session. Default 1 minute.
	Idle time.Duration
	// Keepalive is the interval of keepalive requests, and Answer how long one may remain unanswered. Defaults 15 s and 60 s.
	Keepalive, Answer time.Duration
	// ReadIdle is how long a session waits for input. Default 10 minutes: git sends nothing while it counts and compresses objects.
	ReadIdle time.Duration
	// WriteIdle is how long one write waits for a client that does not read. Default 2 minutes.
	WriteIdle time.Duration
}

// WithDefaults fills in the defaults.
func (l Limits) WithDefaults() Limits {
	n := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	d := func(p *time.Duration, v time.Duration) {
		if *p <= 0 {
			*p = v
		}
	}
	n(&l.Connections, 1024)
	n(&l.PerSource, 512)
	n(&l.Unauthenticated, 256)
	n(&l.UnauthenticatedPerSource, 128)
	n(&l.Sessions, 10)
	n(&l.AuthTries, 6)
	n(&l.Failures, 30)
	d(&l.Penalty, time.Minute)
	d(&l.LoginGrace, 30*time.Second)
	d(&l.KeyExchange, 10*time.Second)
	d(&l.Idle, time.Minute)
	d(&l.Keepalive, 15*time.Second)
	d(&l.Answer, time.Minute)
	d(&l.ReadIdle, 10*time.Minute)
	d(&l.WriteIdle, 2*time.Minute)
	return l
}

// source identifies a peer: an IPv4 address, or the /64 of an IPv6 one.
func source(a net.Addr) string {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return a.String()
	}
	ip := ap.Addr().Unmap().WithZone("")
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}

// admission counts connections, and refuses those beyond the limits.
type admission struct {
	limits Limits
	now    func() time.Time

	mu      sync.Mutex
	all     count
	sources map[string]*count
	swept   time.Time
	// waiting holds the connections of each source that have not logged in, the oldest first, without those that are being closed.
	waiting map[string][]*conn
}

type count struct {
	conns, unauth int
	failures      int
	since         time.Time // of the first failure counted
	told          time.Time // when a refused login was last reported
	away          time.Time // when a refused connection was last reported
	silent        int       // number of refusals since then
}

// enter counts a new connection; why is the exceeded limit, with the key of the configuration. If too many have not logged in, out is
// one to close instead: a few silent sources must not lock out everybody.
func (d *admission) enter(nc *conn) (why string, out *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	src := nc.source
	c := d.of(src)
	switch l := d.limits; {
	case c.failures >= l.Failures:
		return fmt.Sprintf("too many failed logins from your address: %d within %s (limits.max_login_failures, limits.login_penalty)", c.failures, l.Penalty), nil
	case d.all.conns >= l.Connections:
		return fmt.Sprintf("too many connections: %d (limits.max_connections)", l.Connections), nil
	case c.conns >= l.PerSource:
		return fmt.Sprintf("too many connections from your address: %d (limits.max_connections_per_source)", l.PerSource), nil
	case c.unauth >= l.UnauthenticatedPerSource:
		return fmt.Sprintf("too many connections from your address that have not logged in: %d (limits.max_unauthenticated_per_source)", l.UnauthenticatedPerSource), nil
	case d.all.unauth >= l.Unauthenticated:
		if out = d.evictFor(src); out == nil {
			return fmt.Sprintf("too many connections that have not logged in: %d (limits.max_unauthenticated)", l.Unauthenticated), nil
		}
	}
	d.all.conns++
	d.all.unauth++
	c.conns++
	c.unauth++
	if d.waiting == nil {
		d.waiting = map[string][]*conn{}
	}
	d.waiting[src] = append(d.waiting[src], nc)
	return "", out
}

// evictFor removes from the list the oldest waiting connection of the source that has the most of them; of several such sources, the one
// whose oldest connection is older. It returns nil if with one more src would have more than any other. d.mu is held.
func (d *admission) evictFor(src string) *conn {
	var most []*conn
	for s, w := range d.waiting {
		if s != src && (len(w) > len(most) || len(w) == len(most) && w[0].begun.Before(most[0].begun)) {
			most = w
		}
	}
	if len(most) == 0 || len(d.waiting[src])+1 > len(most) {
		return nil
	}
	oldest := most[0]
	d.removeWaiting(oldest)
	return oldest
}

// removeWaiting removes a connection from the list. d.mu is held.
func (d *admission) removeWaiting(c *conn) {
	w := d.waiting[c.source]
	if i := slices.Index(w, c); i >= 0 {
		w = slices.Delete(w, i, i+1)
	}
	if len(w) == 0 {
		delete(d.waiting, c.source)
	} else {
		d.waiting[c.source] = w
	}
}

// countRefusal reports whether to log a refusal: the first from a source within a penalty period. silent is the number of those that were
// not logged.
func (d *admission) countRefusal(src string) (silent int, report bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.of(src)
	if !c.away.IsZero() {
		c.silent++
		return 0, false
	}
	silent, c.silent, c.away = c.silent, 0, d.now()
	return silent, true
}

// set changes the limits; open connections stay.
func (d *admission) set(l Limits) {
	d.mu.Lock()
	d.limits = l
	d.mu.Unlock()
}

func (d *admission) authenticated(nc *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all.unauth--
	d.of(nc.source).unauth--
	d.removeWaiting(nc)
}

// leave counts a closed connection. failed says that it failed to log in; report reports whether to log that: the first from a source
// within a penalty period.
func (d *admission) leave(nc *conn, authenticated, failed bool) (report bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.of(nc.source)
	d.all.conns--
	c.conns--
	if !authenticated {
		d.all.unauth--
		c.unauth--
		d.removeWaiting(nc)
	}
	if failed {
		if c.failures == 0 {
			c.since = d.now()
		}
		c.failures++
		if report = c.told.IsZero(); report {
			c.told = d.now()
		}
	}
	return report
}

// of finds a source's count, dropping old failures. It also cleans the map, so that it does not grow.
func (d *admission) of(src string) *count {
	now := d.now()
	stale := func(t time.Time) bool { return !t.IsZero() && now.Sub(t).Abs() >= d.limits.Penalty }
	fresh := func(c *count) {
		if stale(c.since) {
			c.failures, c.since = 0, time.Time{}
		}
		if stale(c.told) {
			c.told = time.Time{}
		}
		if stale(c.away) {
			c.away = time.Time{}
		}
	}
	if now.Sub(d.swept).Abs() >= d.limits.Penalty {
		d.swept = now
		for k, c := range d.sources {
			if fresh(c); *c == (count{silent: c.silent}) {
				delete(d.sources, k)
			}
		}
	}
	c := d.sources[src]
	if c == nil {
		if d.sources == nil {
			d.sources = map[string]*count{}
		}
		c = &count{}
		d.sources[src] = c
	}
	fresh(c)
	return c
}
