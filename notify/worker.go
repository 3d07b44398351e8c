package notify

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/internal/event"
	"corpus-git/internal/execx"
	"corpus-git/internal/printable"
	"corpus-git/internal/redact"
	"corpus-git/project"
	"corpus-git/project/config"
)

// Worker delivers what is in an outbox.
type Worker struct {
	Outbox *Outbox
	// Settings returns the settings of the current configuration; its sinks are those of Outbox.
	Settings func() config.Notify
	// Secrets returns the server's own secrets, which are redacted in recorded errors.
	Secrets func() []redact.Secret
	// Describe returns how people reach a project, as printed by report, for the mail about its creation.
	Describe func(ctx context.Context, name project.Name) (string, error)
	Exec     execx.Commander
	// Host is the name of this machine for people.
	Host string
	Log  zerolog.Logger

	mu   sync.Mutex
	busy map[string]bool // sinks that are being delivered to
}

// permanent is an error that further attempts would not fix.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// due is one delivery that is due.
type due struct {
	seq      int64
	attempts int
	n        project.Notification
}

// idle is the longest pause between two queries.
const idle = time.Minute

// Run delivers until ctx ends. Sinks do not wait for each other.
func (w *Worker) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		for name := range w.dueSinks(ctx) {
			if w.take(name) {
				wg.Go(func() {
					defer w.Outbox.wakeUp() // added meanwhile
					defer w.leave(name)
					w.deliverAll(ctx, name)
				})
			}
		}
		wait := idle
		if next, ok := w.next(ctx); ok {
			wait = min(idle, max(time.Until(next), 50*time.Millisecond))
		}
		select {
		case <-ctx.Done():
			return
		case <-w.Outbox.wake:
		case <-time.After(wait):
		}
	}
}

// Drain makes one attempt at everything that is due, until ctx ends: for a process that is about to end, or that is not a server.
func (w *Worker) Drain(ctx context.Context) {
	var wg sync.WaitGroup
	for name := range w.dueSinks(ctx) {
		if w.take(name) {
			wg.Go(func() {
				defer w.leave(name)
				w.deliverAll(ctx, name)
			})
		}
	}
	wg.Wait()
}

func (w *Worker) take(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy[name] {
		return false
	}
	if w.busy == nil {
		w.busy = map[string]bool{}
	}
	w.busy[name] = true
	return true
}

func (w *Worker) leave(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.busy, name)
}

// dueSinks returns the names of the sinks with due deliveries, including those no longer configured.
func (w *Worker) dueSinks(ctx context.Context) map[string]bool {
	out := map[string]bool{}
	rows, err := w.Outbox.db.QueryContext(ctx, `SELECT DISTINCT sink FROM deliveries WHERE state = 'waiting' AND next <= ?`, w.Outbox.now().UnixNano())
	if err != nil {
		w.logFailure(ctx, err)
		return nil
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			w.logFailure(ctx, err)
			return nil
		}
		out[name] = true
	}
	return out
}

// next returns when the next delivery to a sink that is not busy is due.
func (w *Worker) next(ctx context.Context) (time.Time, bool) {
	rows, err := w.Outbox.db.QueryContext(ctx, `SELECT sink, min(next) FROM deliveries WHERE state = 'waiting' GROUP BY sink`)
	if err != nil {
		w.logFailure(ctx, err)
		return time.Time{}, false
	}
	defer rows.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	var first int64
	for rows.Next() {
		var name string
		var at int64
		if err := rows.Scan(&name, &at); err != nil {
			break
		}
		if !w.busy[name] && (first == 0 || at < first) {
			first = at
		}
	}
	return time.Unix(0, first), first != 0
}

func (w *Worker) logFailure(ctx context.Context, err error) {
	if ctx.Err() == nil {
		w.Log.Error().Err(err).Msg("notifications")
	}
}

// deliverAll delivers what is due to one sink, the oldest first, one after another.
func (w *Worker) deliverAll(ctx context.Context, name string) {
	begun := w.Outbox.now()
	for ctx.Err() == nil {
		d, ok, err := w.first(ctx, name, begun)
		if err != nil {
			w.logFailure(ctx, err)
			return
		}
		if !ok {
			return
		}
		sink, err := w.sink(name)
		if err == nil {
			err = w.deliver(ctx, sink, d.n)
		}
		if ctx.Err() != nil && err != nil {
			return // interrupted: does not count as an attempt
		}
		if err := w.ended(context.WithoutCancel(ctx), name, d, err); err != nil {
			w.logFailure(ctx, err)
			return
		}
	}
}

func (w *Worker) sink(name string) (config.Sink, error) {
	for _, s := range w.Outbox.sinks() {
		if s.Name == name {
			return s, nil
		}
	}
	return config.Sink{}, permanent{errors.New("the configuration has no such sink any more")}
}

// first returns the first delivery to a sink that is due at a time.
func (w *Worker) first(ctx context.Context, name string, at time.Time) (d due, ok bool, err error) {
	var body []byte
	err = w.Outbox.db.QueryRowContext(ctx, `SELECT d.seq, d.attempts, n.body FROM deliveries d JOIN notifications n ON n.seq = d.notification
		WHERE d.sink = ? AND d.state = 'waiting' AND d.next <= ? ORDER BY d.next, d.seq LIMIT 1`, name, at.UnixNano()).Scan(&d.seq, &d.attempts, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return d, false, nil
	}
	if err == nil {
		err = json.Unmarshal(body, &d.n)
	}
	return d, err == nil, err
}

// deliver makes one attempt.
func (w *Worker) deliver(ctx context.Context, s config.Sink, n project.Notification) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Timeout, errors.New("no answer within "+s.Timeout.String()))
	defer cancel()
	var err error
	switch s.Kind {
	case "smtp":
		err = w.mail(ctx, s, n)
	case "command":
		err = w.command(ctx, s, n)
	default:
		err = w.post(ctx, s, n)
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}

// ended records an attempt. It is durable on return.
func (w *Worker) ended(ctx context.Context, sink string, d due, err error) error {
	now, set := w.Outbox.now(), w.Settings()
	attempts := d.attempts + 1
	state, next, text := Delivered, now, ""
	log := w.Log.With().Str("sink", sink).Str("notification", d.n.ID).Str("event", d.n.Event).Int("attempt", attempts).Logger()
	if err != nil {
		var forever permanent
		state, text = Waiting, printable.Shorten(event.Scrub(redact.New(w.Secrets()).String(err.Error())), 300)
		next = now.Add(Pause(attempts, set.RetryAfter, set.RetryMax, rand.Float64()))
		if attempts >= set.Attempts || errors.As(err, &forever) {
			state = GivenUp
		}
		log.Warn().Str("reason", text).Bool("given_up", state == GivenUp).Msg("notification not delivered")
	} else {
		log.Debug().Msg("notification delivered")
	}
	_, err = w.Outbox.db.ExecContext(ctx, `UPDATE deliveries SET state = ?, attempts = ?, next = ?, last = ?, error = ? WHERE seq = ?`,
		string(state), attempts, next.UnixNano(), now.UnixNano(), text, d.seq)
	return err
}

// Pause returns the delay after failed attempt number n, from 1: first, doubled each time, at most longest; multiplied by three quarters to five
// quarters, by a random number from 0 to 1, so that simultaneous failures are not retried simultaneously.
func Pause(attempts int, first, longest time.Duration, chance float64) time.Duration {
	p := longest
	if shift := attempts - 1; shift < 32 && first<<shift>>shift == first {
		p = min(longest, first<<shift)
	}
	return time.Duration(float64(p) * (0.75 + chance/2))
}
