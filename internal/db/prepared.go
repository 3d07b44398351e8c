package db

import (
	"context"
	"database/sql"
	"sync"
)

// Prepared is a query that runs often: it is parsed at its first use, which takes longer than most queries run. Its methods are safe for concurrent use; it needs no closing before its database.
type Prepared struct {
	db    *sql.DB
	query string

	mu   sync.Mutex
	stmt *sql.Stmt
}

// NewPrepared creates a Prepared.
func NewPrepared(d *sql.DB, query string) *Prepared { return &Prepared{db: d, query: query} }

// Row runs the query for one row and calls scan with it: sql.ErrNoRows if there is none.
func (p *Prepared) Row(ctx context.Context, scan func(*sql.Row) error, args ...any) error {
	stmt, err := p.prepare(ctx)
	if err != nil {
		return err
	}
	return scan(stmt.QueryRowContext(ctx, args...))
}

func (p *Prepared) prepare(ctx context.Context) (_ *sql.Stmt, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stmt == nil {
		p.stmt, err = p.db.PrepareContext(ctx, p.query)
	}
	return p.stmt, err
}
