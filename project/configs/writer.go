package configs

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"corpus-git/internal/db"
)

// writer writes to the tables beside the steps, in the order of the calls: what waits meanwhile shares a transaction.
type writer struct {
	db *sql.DB

	mu      sync.Mutex
	waiting []write
	working bool
	// added and done count the writes; wake is signalled when done grows.
	added, done uint64
	wake        *sync.Cond
	// now ends the pause before what waits is written; it holds one call.
	now chan struct{}
}

// pause is how long the first write waits for others, unless it is hurried: the steps of a small deployment share a transaction, and the
// processors are theirs meanwhile.
const pause = 20 * time.Millisecond

// write is one change. failed is called, from another goroutine than the caller's, where it could not be written.
type write struct {
	do     func(ctx context.Context, tx *sql.Tx) error
	failed func(error)
}

func newWriter(d *sql.DB) *writer {
	w := &writer{db: d, now: make(chan struct{}, 1)}
	w.wake = sync.NewCond(&w.mu)
	return w
}

func (w *writer) add(x write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, x)
	w.added++
	if !w.working {
		w.working = true
		go w.work()
	}
}

// hurry ends the pause before what was added is written.
func (w *writer) hurry() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		return
	}
	select {
	case w.now <- struct{}{}:
	default:
	}
}

// flush returns when everything added before was written, or has failed.
func (w *writer) flush() {
	w.hurry()
	w.mu.Lock()
	defer w.mu.Unlock()
	for all := w.added; w.done < all; {
		w.wake.Wait()
	}
}

func (w *writer) work() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.waiting) > 0 {
		w.mu.Unlock()
		more := time.NewTimer(pause)
		select {
		case <-w.now:
		case <-more.C:
		}
		more.Stop()
		w.mu.Lock()
		batch := w.waiting
		w.waiting = nil
		w.mu.Unlock()
		w.write(batch)
		w.mu.Lock()
		w.done += uint64(len(batch))
		w.wake.Broadcast()
	}
	w.working = false
}

// write writes a batch in one transaction. A change that the tables refuse is left out.
func (w *writer) write(batch []write) {
	errs := make([]error, len(batch))
	err := db.WithoutSync(context.Background(), w.db, func(conn *sql.Conn) error {
		ctx := context.Background()
		tx, err := conn.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		for i, x := range batch {
			errs[i] = x.do(ctx, tx)
		}
		return tx.Commit()
	})
	for i, x := range batch {
		if e := errors.Join(errs[i], err); e != nil {
			x.failed(e)
		}
	}
}

// Begin records that a config is being applied, unless that is recorded already, and the config itself if it is new. end records how it ended. Both return
// at once; they are written some milliseconds later, after Hurry at once, and before Flush returns. failed is called, from another goroutine, with what
// prevents that.
func (s *Store) Begin(c Config, d Deployment, failed func(error)) (end func(state State, reason string, outputs json.RawMessage)) {
	c.ID = c.hash()
	began := s.now()
	var seq int64
	s.writer.add(write{failed: failed, do: func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO configs(id, grp, file, source, inputs, outputs, options) VALUES(?,?,?,?,?,?,?) ON CONFLICT(id) DO NOTHING`,
			c.ID, c.Group, c.File, c.Source, c.Inputs, c.Outputs, c.Options)
		if err != nil {
			return err
		}
		// A step that waited for signals while the server was restarted goes on.
		err = tx.QueryRowContext(ctx, `SELECT seq FROM config_deployments WHERE state = 'IN_PROGRESS' AND deployment = ? AND step = ? AND config = ? AND action = ?`, d.Deployment, d.Step, c.ID, d.Action).Scan(&seq)
		if err == nil || !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		res, err := tx.ExecContext(ctx, `INSERT INTO config_deployments(deployment, project, step, config, server, action, state, reason, inputs, outputs, began, ended)
			VALUES(?,?,?,?,?,?,?,'',?,'',?,0)`, d.Deployment, d.Project, d.Step, c.ID, d.Server, d.Action, InProgress, string(d.Inputs), began.UnixNano())
		if err == nil {
			seq, err = res.LastInsertId()
		}
		return err
	}})
	return func(state State, reason string, outputs json.RawMessage) {
		ended := s.now()
		s.writer.add(write{failed: failed, do: func(ctx context.Context, tx *sql.Tx) error {
			if seq == 0 {
				return nil // its beginning was reported as failed
			}
			_, err := tx.ExecContext(ctx, `UPDATE config_deployments SET state = ?, reason = ?, outputs = ?, ended = ? WHERE seq = ?`, state, reason, string(outputs), ended.UnixNano(), seq)
			return err
		}})
	}
}

// Hurry begins to write what Begin and its end were called for, without waiting for it. A nil Store does nothing.
func (s *Store) Hurry() {
	if s != nil {
		s.writer.hurry()
	}
}

// Flush returns when what Begin and its end were called for is written, or was reported as failed. A nil Store does nothing.
func (s *Store) Flush() {
	if s != nil {
		s.writer.flush()
	}
}
