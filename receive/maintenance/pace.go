package maintenance

import (
	"context"
	"time"

	"corpus-git/git/store"
)

// pace limits one maintenance.
type pace struct {
	// own returns an error while its own project is being deployed; busy counts the projects with deployments.
	own  func(context.Context) error
	busy func() int
	// rate is the number of bytes that may be written per second.
	rate   func() int64
	after  func(time.Duration) <-chan time.Time
	waited time.Duration // waited for other projects
}

// pause is called before each store.PauseEvery bytes: it returns an error while its own project is being deployed, waits during other
// deployments, up to othersWait in all, and limits the rate.
func (p *pace) pause(ctx context.Context) error {
	rest := time.Duration(float64(time.Second) * store.PauseEvery / float64(p.rate()))
	for first := true; ; first = false {
		if err := p.own(ctx); err != nil {
			return err
		}
		if !first && (p.busy() == 0 || p.waited >= othersWait) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.after(rest):
		}
		if !first {
			p.waited += rest
		}
		rest = busyPoll
	}
}
