package cluster

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"corpus-git/layout"
	"corpus-git/project"
)

// Hub is one server of a cluster.
type Hub struct {
	Name string `json:"name"`
	SSH  string `json:"ssh"`            // HOST:PORT where the other hubs reach its ssh server
	HTTP string `json:"http,omitempty"` // likewise of its web listener
	NATS string `json:"nats"`           // tls://HOST:PORT of the NATS server beside it
}

// Config describes this hub's part in a cluster.
type Config struct {
	Self Hub
	// Hubs are all of them, Self included.
	Hubs []Hub
	// Connect connects to the hubs' account on any of the NATS servers, the own one first.
	Connect func(opts ...nats.Option) (*nats.Conn, error)
	Root    layout.Root
	State   layout.State
	// Founder means that this hub's state is the cluster's first.
	Founder bool
	Log     zerolog.Logger
}

// ErrLost means that another hub leads.
var ErrLost = errors.New("another hub leads")

// What a hub does, in Status.
const (
	Leads       = "leads"
	Follows     = "follows"
	Copies      = "copies"
	Unreachable = "unreachable"
)

// Status is what is known of one hub.
type Status struct {
	Name string `json:"name"`
	// Does is Leads, Follows, Copies or Unreachable.
	Does string `json:"does"`
	// Applied is the number of the last message of the log that it has applied, Behind how many there are after it.
	Applied uint64 `json:"applied"`
	Behind  uint64 `json:"behind"`
	// Seen is when it was last heard; zero if never.
	Seen time.Time `json:"seen"`
}

// Cluster is this hub's part in a cluster. Its methods are safe for concurrent use.
type Cluster struct{ c Config }

var errNotBuilt = errors.New("not built yet")

// Open connects to the NATS servers and creates the log if it is missing, for which it waits until all three respond or ctx ends. The caller calls Close.
func Open(ctx context.Context, c Config) (*Cluster, error) { return &Cluster{c}, errNotBuilt }

// Follow applies the log to this hub's state until this hub leads, and returns its epoch, which is greater than all earlier ones. It copies the leader's state first if this hub's may differ.
// The database must not be open, and nothing else may write to the state.
func (c *Cluster) Follow(ctx context.Context) (epoch uint64, err error) { return 0, errNotBuilt }

// Leader returns the hub that leads, as was heard last; ok is false if none was heard recently.
func (c *Cluster) Leader() (h Hub, epoch uint64, ok bool) { return Hub{}, 0, false }

// Lead begins to ship this hub's changes, after Follow has returned. It must be called before anything of the state is opened: what changes from then on is shipped.
func (c *Cluster) Lead(ctx context.Context) (*Leader, error) { return nil, errNotBuilt }

// Status returns what is known of each hub, in the order of Config.Hubs.
func (c *Cluster) Status(ctx context.Context) ([]Status, error) { return nil, errNotBuilt }

// Close disconnects.
func (c *Cluster) Close() error { return nil }

// Leader ships this hub's changes to the log. Its methods are safe for concurrent use.
type Leader struct{}

// Database tells which database is shipped with the files. It was opened with db.Options{Replicated: true}.
func (l *Leader) Database(d *sql.DB) {}

// Barrier ships what has changed in the database, in the state of the server and in a project, "" for all projects. It is on the disks of a majority on return. ErrLost means that another hub leads:
// then nothing more may be acknowledged or ordered.
func (l *Leader) Barrier(ctx context.Context, name project.Name) error { return errNotBuilt }

// Lost is closed when this hub no longer leads.
func (l *Leader) Lost() <-chan struct{} { return nil }

// Epoch returns the number of this leadership.
func (l *Leader) Epoch() uint64 { return 0 }

// Close ships everything and marks the position clean, so that this hub can follow without a copy. Nothing may write to the state any more; the database may be open or closed.
func (l *Leader) Close(ctx context.Context) error { return errNotBuilt }
