package api

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// limits limits the request rate of each credential.
type limits struct {
	rate rate.Limit
	now  func() time.Time

	mu  sync.Mutex
	all map[string]*rate.Limiter
}

// burst is the size of a burst, in seconds of the allowed rate.
const burst = 5

// maxLimiters is how many credentials are tracked before all are reset, after which each may send a burst again.
const maxLimiters = 10000

func newLimits(perSecond float64, now func() time.Time) *limits {
	return &limits{rate: rate.Limit(perSecond), now: now, all: map[string]*rate.Limiter{}}
}

// take counts a request; wait is how long the client has to wait, 0 if the request is allowed.
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
