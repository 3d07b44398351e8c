package notify

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/project/config"
)

// State is the state of a delivery.
type State string

// The states of deliveries.
const (
	Waiting   State = "waiting"
	Delivered State = "delivered"
	// GivenUp is a delivery that failed notify.attempts times, or permanently.
	GivenUp State = "given up"
)

// Delivery is one notification for one sink.
type Delivery struct {
	// ID is the ID of the notification.
	ID      string       `json:"id"`
	Sink    string       `json:"sink"`
	Event   string       `json:"event"`
	Project project.Name `json:"project,omitempty"`
	// At is the time of the event.
	At       time.Time `json:"at"`
	State    State     `json:"state"`
	Attempts int       `json:"attempts"`
	// Next is when the next attempt is due, for pending ones; Last is when the last one ended.
	Next *time.Time `json:"next,omitempty"`
	Last *time.Time `json:"last,omitempty"`
	// Error is why the last attempt failed.
	Error string `json:"error,omitempty"`
}

// Counts are the numbers of deliveries in each state.
type Counts struct {
	Waiting, Delivered, GivenUp int64
	// Oldest is the time of the oldest pending one; zero if none is pending.
	Oldest time.Time
}

// Outbox holds the pending and finished deliveries. All methods are safe for concurrent use.
type Outbox struct {
	db    *sql.DB
	sinks func() []config.Sink
	envs  func() project.Environments
	now   func() time.Time
	wake  chan struct{}
}

// Open prepares the tables. sinks returns those of the current configuration; envs the server's environments.
func Open(ctx context.Context, d *sql.DB, sinks func() []config.Sink, envs func() project.Environments, now func() time.Time) (*Outbox, error) {
	err := db.Migrate(ctx, d, "notify", []string{
		`CREATE TABLE notifications (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at INTEGER NOT NULL, event TEXT NOT NULL, project TEXT NOT NULL, body TEXT NOT NULL)`,
		`CREATE TABLE deliveries (seq INTEGER PRIMARY KEY, notification INTEGER NOT NULL REFERENCES notifications(seq) ON DELETE CASCADE, sink TEXT NOT NULL, state TEXT NOT NULL,
			attempts INTEGER NOT NULL, next INTEGER NOT NULL, last INTEGER NOT NULL, error TEXT NOT NULL, UNIQUE (notification, sink))`,
		`CREATE INDEX deliveries_waiting ON deliveries(sink, next) WHERE state = 'waiting'`,
		`CREATE INDEX deliveries_state ON deliveries(state, last)`,
	})
	return &Outbox{db: d, sinks: sinks, envs: envs, now: now, wake: make(chan struct{}, 1)}, err
}

// Add writes a notification for every sink that accepts it, into the transaction tx; none if no sink does. The same ID is added once.
// The worker runs after the transaction: the database has one connection, which its query waits for (db.Open).
func (o *Outbox) Add(ctx context.Context, tx db.Execer, n project.Notification) error {
	var to []string
	for _, s := range o.sinks() {
		if o.takes(s, n) {
			to = append(to, s.Name)
		}
	}
	return o.add(ctx, tx, n, to)
}

func (o *Outbox) add(ctx context.Context, tx db.Execer, n project.Notification, to []string) error {
	if len(to) == 0 {
		return nil
	}
	n.Version = 1
	if n.At.IsZero() {
		n.At = o.now()
	}
	body, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO notifications(id, at, event, project, body) VALUES (?,?,?,?,?) ON CONFLICT(id) DO NOTHING`,
		n.ID, n.At.UnixNano(), n.Event, string(n.Project), string(body)); err != nil {
		return err
	}
	for _, sink := range to {
		if _, err := tx.ExecContext(ctx, `INSERT INTO deliveries(notification, sink, state, attempts, next, last, error)
			SELECT seq, ?2, 'waiting', 0, ?3, 0, '' FROM notifications WHERE id = ?1 ON CONFLICT(notification, sink) DO NOTHING`,
			n.ID, sink, o.now().UnixNano()); err != nil {
			return err
		}
	}
	o.wakeUp()
	return nil
}

// AddNow adds notifications in their own transaction, for events without a record. They are durable on return.
func (o *Outbox) AddNow(ctx context.Context, list ...project.Notification) error {
	tx, err := o.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, n := range list {
		if err := o.Add(ctx, tx, n); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// wakeUp makes the worker check for due deliveries.
func (o *Outbox) wakeUp() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// takes reports whether a sink's filters accept a notification. One that is not about a project passes only if there is no filter of
// projects or environments.
func (o *Outbox) takes(s config.Sink, n project.Notification) bool {
	if len(s.Projects) > 0 && !slices.ContainsFunc(s.Projects, func(glob string) bool {
		ok, err := path.Match(glob, string(n.Project))
		return err == nil && ok && n.Project != ""
	}) {
		return false
	}
	if len(s.Environments) > 0 && !slices.Contains(s.Environments, n.Environment) {
		class, err := o.envs().Class(n.Environment)
		if n.Environment == "" || err != nil || !slices.Contains(s.Environments, class) {
			return false
		}
	}
	converge := n.Converge != nil && slices.Contains(s.Events, project.EventConverge)
	check := n.Event == project.CheckFailed || n.Event == project.CheckSucceeded
	if len(s.Events) > 0 && !slices.Contains(s.Events, n.Event) && !converge && !(check && slices.Contains(s.Events, project.EventChecks)) {
		return false
	}
	return len(s.Verdicts) == 0 || slices.Contains(s.Verdicts, n.Verdict())
}

// Test adds a notification for one sink, whatever its filters are, and returns its ID. It is durable on return.
func (o *Outbox) Test(ctx context.Context, sink string, by project.Pusher) (string, error) {
	if err := o.known(sink); err != nil {
		return "", err
	}
	n := project.Notification{ID: "test_" + string(project.NewID()), Event: project.EventTest, By: &by}
	if err := o.add(ctx, o.db, n, []string{sink}); err != nil {
		return "", err
	}
	return n.ID, nil
}

func (o *Outbox) known(sink string) error {
	var names []string
	for _, s := range o.sinks() {
		names = append(names, s.Name)
	}
	if slices.Contains(names, sink) {
		return nil
	}
	err := fault.New(fault.Usage, "", "there is no sink %q", sink)
	if len(names) == 0 {
		return err.WithHint("the configuration has none; see docs/notifications.md")
	}
	return err.WithHint("the configuration has: %s", fmt.Sprint(names))
}

const deliveryColumns = `SELECT n.id, d.sink, n.event, n.project, n.at, d.state, d.attempts, d.next, d.last, d.error FROM deliveries d JOIN notifications n ON n.seq = d.notification `

func scanDelivery(row interface{ Scan(...any) error }) (d Delivery, err error) {
	var at, next, last int64
	if err := row.Scan(&d.ID, &d.Sink, &d.Event, &d.Project, &at, &d.State, &d.Attempts, &next, &last, &d.Error); err != nil {
		return d, err
	}
	d.At = time.Unix(0, at)
	if d.State == Waiting {
		t := time.Unix(0, next)
		d.Next = &t
	}
	if last > 0 {
		t := time.Unix(0, last)
		d.Last = &t
	}
	return d, nil
}

// List returns the newest deliveries first, at most limit; state "" means all, project "" too.
func (o *Outbox) List(ctx context.Context, name project.Name, state State, limit int) ([]Delivery, error) {
	rows, err := o.db.QueryContext(ctx, deliveryColumns+`WHERE (?1 = '' OR n.project = ?1) AND (?2 = '' OR d.state = ?2) ORDER BY d.seq DESC LIMIT ?3`, string(name), string(state), limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []Delivery{}
	for rows.Next() {
		d, err := scanDelivery(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, rows.Err()
}

// Get returns the delivery of a notification to a sink.
func (o *Outbox) Get(ctx context.Context, id, sink string) (Delivery, error) {
	d, err := scanDelivery(o.db.QueryRowContext(ctx, deliveryColumns+`WHERE n.id = ? AND d.sink = ?`, id, sink))
	if errors.Is(err, sql.ErrNoRows) {
		err = fault.New(fault.Usage, "", "no notification %s goes to %s", id, sink).WithHint("corpus-git notify list  lists them")
	}
	return d, err
}

// Retry makes deliveries that were given up or are pending due immediately: those of one notification, or for "" all. It returns their
// number.
func (o *Outbox) Retry(ctx context.Context, id string) (int64, error) {
	res, err := o.db.ExecContext(ctx, `UPDATE deliveries SET state = 'waiting', attempts = 0, next = ?2
		WHERE state <> 'delivered' AND (?1 = '' OR notification = (SELECT seq FROM notifications WHERE id = ?1))`, id, o.now().UnixNano())
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	if err == nil && n == 0 && id != "" {
		var there bool
		err = o.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM notifications WHERE id = ?)`, id).Scan(&there)
		if err == nil && !there {
			err = fault.New(fault.Usage, "", "there is no notification %s", id).WithHint("corpus-git notify list  lists them")
		}
	}
	o.wakeUp()
	return n, err
}

// Count counts the deliveries in a database; none if it has no outbox yet.
func Count(ctx context.Context, d *sql.DB) (c Counts, err error) {
	var oldest int64
	var there bool
	err = d.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'deliveries')`).Scan(&there)
	if err != nil || !there {
		return c, err
	}
	err = d.QueryRowContext(ctx, `SELECT count(*) FILTER (WHERE d.state = 'waiting'), count(*) FILTER (WHERE d.state = 'delivered'), count(*) FILTER (WHERE d.state = 'given up'),
		coalesce(min(n.at) FILTER (WHERE d.state = 'waiting'), 0) FROM deliveries d JOIN notifications n ON n.seq = d.notification`).Scan(&c.Waiting, &c.Delivered, &c.GivenUp, &oldest)
	if oldest > 0 {
		c.Oldest = time.Unix(0, oldest)
	}
	return c, err
}

// Prune removes what was delivered or given up before a time, and the oldest deliveries beyond limit: first delivered, then given up, then
// pending ones. A zero time, and a limit of 0, mean no limit. It returns the number removed.
func (o *Outbox) Prune(ctx context.Context, before time.Time, limit int) (n int64, err error) {
	del := func(query string, args ...any) {
		if err != nil {
			return
		}
		var res sql.Result
		if res, err = o.db.ExecContext(ctx, query, args...); err == nil {
			var k int64
			k, err = res.RowsAffected()
			n += k
		}
	}
	if !before.IsZero() {
		del(`DELETE FROM deliveries WHERE state <> 'waiting' AND last < ?`, before.UnixNano())
	}
	if limit > 0 {
		del(`DELETE FROM deliveries WHERE seq IN (SELECT seq FROM deliveries
			ORDER BY CASE state WHEN 'delivered' THEN 0 WHEN 'given up' THEN 1 ELSE 2 END, seq LIMIT max(0, (SELECT count(*) FROM deliveries) - ?))`, limit)
	}
	if err == nil && n > 0 {
		_, err = o.db.ExecContext(ctx, `DELETE FROM notifications WHERE seq NOT IN (SELECT notification FROM deliveries)`)
	}
	return n, err
}
