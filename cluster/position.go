package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"corpus-git/cluster/wal"
	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
)

// position is what a hub knows of its place in the log. It is replaced atomically.
type position struct {
	// Applied is the number of the last message whose batch this hub's state has.
	Applied uint64 `json:"applied"`
	// Epoch is that of the last leadership that this hub knows.
	Epoch uint64 `json:"epoch"`
	// Until is the number up to which the log must be applied for a copy to be whole.
	Until uint64 `json:"until,omitempty"`
	// Led means that this hub leads, or led and did not end cleanly: its state may be ahead of the log.
	Led bool `json:"led,omitempty"`
	// Copy means that this hub's state is of no use until it has a copy of the leader's.
	Copy bool `json:"copy,omitempty"`
}

// usable reports whether the log continues this hub's state.
func (p position) usable() bool { return !p.Led && !p.Copy }

// Whole returns fault.Refused if the state of this machine is a part of a copy, which is of no use without the hub that was copied. The server does not run.
func Whole(state layout.State) error {
	c := &Cluster{c: Config{State: state}}
	p, err := c.readPosition()
	if err == nil && (p.Copy || p.Applied < p.Until) {
		err = fault.New(fault.Refused, "", "this machine has a part of a copy of another hub's state only")
	}
	return err
}

// readPosition returns the position; a hub that has none has to copy, unless it is the founder.
func (c *Cluster) readPosition() (p position, err error) {
	b, err := vfs.ReadFile(vfs.OS{}, c.c.State.ClusterPosition())
	if errors.Is(err, fs.ErrNotExist) {
		return position{Copy: !c.c.Founder, Led: c.c.Founder}, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		return p, fault.New(fault.Internal, "position in the log of the hubs", "%s: %w", c.c.State.ClusterPosition(), err).
			WithHint("remove the file: this hub then copies the state of the hub that leads")
	}
	return p, nil
}

// setPosition records the position, durably.
func (c *Cluster) setPosition(p position) error {
	b, err := json.Marshal(p)
	if err == nil {
		err = vfs.MkdirAll(vfs.OS{}, c.c.State.Cluster(), 0o700)
	}
	if err == nil {
		err = vfs.WriteFileAtomic(vfs.OS{}, c.c.State.ClusterPosition(), append(b, '\n'), 0o600)
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pos = p
	return nil
}

func (c *Cluster) position() position {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pos
}

// settleDatabase moves what a write-ahead log contains into the database, which nobody has open: it is left by a process that was killed.
func (c *Cluster) settleDatabase(ctx context.Context) error {
	path := c.c.State.Database()
	if _, err := os.Stat(path + wal.Suffix); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	d, err := db.Open(ctx, path)
	if err != nil {
		return err
	}
	return d.Close()
}
