package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/cmd/corpus-git/hubs"
	"corpus-git/internal/db"
	"corpus-git/pipeline/journal"
	"corpus-git/procedures"
	"corpus-git/project"
	"corpus-git/project/config"
	"corpus-git/web"
)

// options of openCore.
type options struct {
	cfg   *config.Config
	log   zerolog.Logger
	env   []string
	who   string // for the lock
	wait  time.Duration
	onEnd func(project.Record)
	// boundary is called where pipeline.Config.Boundary is; nil does nothing.
	boundary func(point string)
	// boot is Process.Boot.
	boot string
	// lead is this hub's leadership; nil without other hubs.
	lead *hubs.Lead
}

// shares returns pipeline.Config.Boundary: every entry is shared but those that announce no change, and Ready, which another one follows before a ref moves.
func (o options) shares() func(project.Name, string) {
	return func(name project.Name, point string) {
		if point != string(journal.Accepted) && point != string(journal.Ready) && point != "begin "+procedures.NameArchive {
			o.lead.Share(name)
		}
		o.reached(point)
	}
}

// reached calls boundary if there is one.
func (o options) reached(point string) {
	if o.boundary != nil {
		o.boundary(point)
	}
}

// upkeepEvery is the interval of upkeep without deployments, since failed archives expire by age.
const upkeepEvery = time.Hour

// upkeepQuiet is how long a project must be idle before its archives are packed.
const upkeepQuiet = 2 * time.Second

// upkeepQuiet returns upkeepQuiet, or 0 in tests that stop the process at boundaries, where packing is always due.
func (o options) upkeepQuiet() time.Duration {
	if o.boundary != nil {
		return 0
	}
	return upkeepQuiet
}

// packAtOnce is archive.Config.AtOnce: its default, or 1 in tests that stop the process at boundaries.
func (o options) packAtOnce() int64 {
	if o.boundary != nil {
		return 1
	}
	return 0
}

// schemas returns what hubs.Config.Schemas is: it opens the rooms of a server on an empty state, and looks at the database.
func schemas(cfg *config.Config) func(ctx context.Context) (map[string]int, error) {
	return func(ctx context.Context) (rooms map[string]int, err error) {
		dir, err := os.MkdirTemp("", "corpus-git-")
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		empty := *cfg
		empty.Root, empty.StateDir = filepath.Join(dir, "root"), filepath.Join(dir, "state")
		c, err := openCore(ctx, options{cfg: &empty, log: zerolog.Nop(), who: "corpus-git"})
		if err != nil {
			return nil, err
		}
		_, err = web.OpenSessions(ctx, c.db, time.Now)
		if err == nil {
			rooms, _, err = db.Schemas(ctx, c.db)
		}
		return rooms, errors.Join(err, c.close())
	}
}
