package api

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// limits bound how many requests each credential sends.
type limits struct {
	rate rate.Limit
	now  func() time.Time

	mu  sync.Mutex
	all map[string]*rate.Limiter
}

// burst is how many seconds' worth of requests may come at once.
const burst = 5

// maxLimiters is how many credentials are told apart before all are forgotten: each may send its burst again then.
const maxLimiters = 10000

func newLimits(perSecond float64, now func() time.Time) *limits {
	return &limits{rate: rate.Limit(perSecond), now: now, all: map[string]*rate.Limiter{}}
}

// take counts a request; wait is how long it is too early, 0 where it may go on.
func (l *limits) take(who string) (wait time.Duration) {
	if l.rate == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.all[who]
	if one == nil {
		if len(l.all) >= maxLimiters {
			clear(l.all)
		}
		one = rate.NewLimiter(l.rate, max(1, int(l.rate*burst)))
		l.all[who] = one
	}
	now := l.now()
	r := one.ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
	}
	return wait
}
