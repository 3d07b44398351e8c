package db

import (
	"context"
	"database/sql"
	"sync"
)

// Batch combines writes that arrive while another one is made durable into one transaction, so that many at once cost one sync of the disk. Its methods are safe for concurrent
// use.
type Batch struct {
	db *sql.DB

	mu   sync.Mutex
	next *group // nil if nobody waits
	// writing is held while a group is written, and taken before mu.
	writing sync.Mutex
}

// group are the writes of one transaction.
type group struct {
	writes  []*write
	written bool
}

type write struct {
	query string
	args  []any
	err   error
}

// NewBatch creates a Batch.
func NewBatch(d *sql.DB) *Batch { return &Batch{db: d} }

// Exec runs one statement. It is durable on return; the error is this statement's. It does not end with ctx.
func (b *Batch) Exec(ctx context.Context, query string, args ...any) error {
	w := &write{query: query, args: args}
	b.mu.Lock()
	if b.next == nil {
		b.next = &group{}
	}
	g := b.next
	g.writes = append(g.writes, w)
	b.mu.Unlock()
	b.writing.Lock()
	defer b.writing.Unlock()
	if !g.written { // then it is next
		b.mu.Lock()
		b.next = nil
		b.mu.Unlock()
		b.write(context.WithoutCancel(ctx), g.writes)
		g.written = true
	}
	return w.err
}

// write writes a group: together, or, if that fails, one by one.
func (b *Batch) write(ctx context.Context, all []*write) {
	if len(all) > 1 && b.together(ctx, all) == nil {
		return
	}
	for _, w := range all {
		_, w.err = b.db.ExecContext(ctx, w.query, w.args...)
	}
}

func (b *Batch) together(ctx context.Context, all []*write) error {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, w := range all {
		if _, err := tx.ExecContext(ctx, w.query, w.args...); err != nil {
			_ = tx.Rollback()
			return err
		}
	}
	return tx.Commit()
}
