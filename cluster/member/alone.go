package member

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"corpus-git/cluster"
	"corpus-git/fleet/broker"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
)

// Alone makes this machine a server without others, with the state that it has: the other hubs are lost, or never start again. trees is called before the machine is no hub any more, for what a hub
// that leads does first. It returns which hub this was, and the configuration of the NATS server beside it, which has no log any more. The server does not run, and the NATS server must not: it would
// write to the log while that is removed. It can be run again after it was ended at any point. Durable on return.
func Alone(ctx context.Context, state layout.State, trees func() error) (own Member, config string, err error) {
	self, there, err := LoadSelf(state)
	if err != nil {
		return own, "", err
	}
	l, err := Load(state)
	if err != nil {
		return own, "", err
	}
	at := l.Find(self.Name)
	if !there || !l.Formed || at < 0 {
		return own, "", fault.New(fault.Refused, "", "this machine is not one of several hubs that share their state").WithHint("corpus-git hub list")
	}
	own = l.Hubs[at]
	if err := cluster.Whole(state); err != nil {
		return own, "", fault.New(fault.Refused, "", "%w", err).WithHint("run this on another hub, or restore a backup:  corpus-git restore FILE")
	}
	if listens(ctx, own.NATS) {
		return own, "", fault.New(fault.Refused, "", "the NATS server beside this hub, %s, is running", own.NATS).WithHint("stop it, and run this again")
	}
	if err := trees(); err != nil {
		return own, "", err
	}
	if config, err = broker.ConfigureAlone(state.NATS(), own.NATS); err != nil {
		return own, config, err
	}
	if err := vfs.RemoveAll(vfs.OS{}, state.JetStream()); err != nil {
		return own, config, err
	}
	// What it has was not left by a server that ended in order, whatever this machine did last as one.
	for _, path := range []string{state.Clean(), state.ClusterSelf()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return own, config, err
		}
		if err := errors.Join(vfs.SyncDir(vfs.OS{}, state.Path()), vfs.SyncDir(vfs.OS{}, state.Cluster())); err != nil {
			return own, config, err
		}
	}
	return own, config, vfs.RemoveAll(vfs.OS{}, state.Cluster())
}

// listens reports whether something accepts connections at the address of a NATS server, tls://HOST:PORT.
func listens(ctx context.Context, address string) bool {
	d := net.Dialer{Timeout: 2 * time.Second}
	c, err := d.DialContext(ctx, "tcp", strings.TrimPrefix(address, "tls://"))
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}
