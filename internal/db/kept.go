package db

import (
	"context"
	"database/sql/driver"
	"strings"
)

// maxKept is the number of parsed statements that a connection keeps; a push runs about fifty different ones.
const maxKept = 128

// keeping opens connections that keep the statements they have parsed: parsing takes longer than most statements run, and the same few run in
// each push.
type keeping struct{ driver.Connector }

// Connect implements driver.Connector.
func (k keeping) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := k.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{sqliteConn: c.(sqliteConn), kept: map[string]*kept{}}, nil
}

// sqliteConn is what a connection of modernc.org/sqlite implements.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// conn is a connection that keeps its statements. Package database/sql makes one call at a time, also of its rows.
type conn struct {
	sqliteConn
	kept map[string]*kept // by their text
	uses uint64
}

// kept is a parsed statement. SQLite parses it again when a table has changed (sqlite3_prepare_v2).
type kept struct {
	driver.Stmt
	busy bool   // its rows are being read
	used uint64 // the number of its last use
}

// keeps reports whether a statement is kept. Others may do something when they are parsed, as a PRAGMA does.
func keeps(query string) bool {
	query = strings.TrimLeft(query, " \t\n")
	for _, verb := range []string{"SELECT ", "INSERT ", "UPDATE ", "DELETE ", "WITH "} {
		if strings.HasPrefix(query, verb) {
			return true
		}
	}
	return false
}

// statement returns the parsed statement, nil if it is not kept or its rows are being read.
func (c *conn) statement(ctx context.Context, query string) (*kept, error) {
	if !keeps(query) {
		return nil, nil
	}
	k := c.kept[query]
	if k == nil {
		s, err := c.PrepareContext(ctx, query)
		if err != nil {
			return nil, err
		}
		if len(c.kept) >= maxKept {
			c.dropOldest()
		}
		k = &kept{Stmt: s}
		c.kept[query] = k
	}
	if k.busy {
		return nil, nil
	}
	c.uses++
	k.used = c.uses
	return k, nil
}

// dropOldest drops the statement that was not used for longest.
func (c *conn) dropOldest() {
	oldest := ""
	for query, k := range c.kept {
		if !k.busy && (oldest == "" || k.used < c.kept[oldest].used) {
			oldest = query
		}
	}
	c.drop(oldest)
}

// drop forgets a statement, for instance one that has failed: its error was returned, so that of closing it tells nothing new.
func (c *conn) drop(query string) {
	if k := c.kept[query]; k != nil {
		delete(c.kept, query)
		_ = k.Close()
	}
}

// short is the context with which a kept statement runs. They are short, and one that has begun ends: for a context that can end, the driver starts a goroutine for each statement. A context
// that has ended starts none, and package database/sql closes the rows of one that ends.
func short(ctx context.Context) (context.Context, error) {
	return context.WithoutCancel(ctx), ctx.Err()
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	k, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	if k == nil {
		return c.sqliteConn.ExecContext(ctx, query, args)
	}
	if ctx, err = short(ctx); err != nil {
		return nil, err
	}
	r, err := k.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
	if err != nil {
		c.drop(query)
	}
	return r, err
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	k, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	if k == nil {
		return c.sqliteConn.QueryContext(ctx, query, args)
	}
	if ctx, err = short(ctx); err != nil {
		return nil, err
	}
	r, err := k.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	if err != nil {
		c.drop(query)
		return nil, err
	}
	k.busy = true
	return &rows{Rows: r, conn: c, query: query, of: k}, nil
}

// Close implements driver.Conn.
func (c *conn) Close() error {
	for query := range c.kept {
		c.drop(query)
	}
	return c.sqliteConn.Close()
}

// rows are the rows of a kept statement, which is free again when they are closed.
type rows struct {
	driver.Rows
	conn  *conn
	query string
	of    *kept
}

// Close implements driver.Rows.
func (r *rows) Close() error {
	err := r.Rows.Close()
	r.of.busy = false
	if err != nil && r.conn.kept[r.query] == r.of {
		r.conn.drop(r.query)
	}
	return err
}
