package machines

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"corpus-git/bundle/program"
	"corpus-git/fleet"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/remote"
)

// Times of an upgrade.
const (
	// upgradeTimeout is how long a node may take to reconnect, with the new program or the old one.
	upgradeTimeout = 4 * time.Minute
	askAgain       = 500 * time.Millisecond
)

// Upgrade replaces the program of a node's agent by the one in in, or for nil by this one, and returns what the node runs once it has
// reconnected with it. A node that returned to its old program is fault.Failed, with the reason.
func (f *Fleet) Upgrade(ctx context.Context, name string, in io.Reader) (release string, err error) {
	n, err := f.Get(ctx, name)
	if err != nil {
		return "", err
	}
	if !n.Agent {
		return "", fault.New(fault.Refused, "node upgrade", "%s is reached by ssh: it gets this server's program with the next deployment", name)
	}
	file, what, err := f.program(in)
	if err != nil {
		return "", err
	}
	defer file.Close()
	node := f.reach(n)
	node.Any = true
	if _, err := node.Open(ctx, ""); err != nil {
		return "", err
	}
	defer node.Close()
	if node.Hello.Program == what.Sum {
		return "", fault.New(fault.Refused, "node upgrade", "%s runs that program already", name)
	}
	if node.Hello.Program == "" {
		return "", fault.New(fault.Refused, "node upgrade", "the corpus-git %s of %s cannot be upgraded from here", printable.Text(node.Hello.Release), name).WithHint("install the release on that machine, and restart its service")
	}
	signer, err := f.Signer()
	if err != nil {
		return "", err
	}
	err = node.Upgrade(ctx, func(_ context.Context, w io.Writer) error {
		return program.Write(w, program.Manifest{SHA256: what.Sum, Bytes: what.Size, System: program.System(what.Arch)}, file, signer)
	})
	var lost *remote.ConnectionError
	if err != nil && !errors.As(err, &lost) { // lost: the agent may have ended to start it
		return "", err
	}
	_ = node.Close()
	return f.back(ctx, n, what.Sum)
}

// program returns a copy of the program that in holds, or this one.
func (f *Fleet) program(in io.Reader) (file *os.File, what remote.Release, err error) {
	if in == nil {
		if what, err = thisProgram(); err != nil {
			return nil, what, err
		}
		file, err = os.Open(what.Path)
		return file, what, err
	}
	if file, err = os.CreateTemp(f.State.Path(), ".program-*"); err != nil {
		return nil, what, err
	}
	if _, err = io.Copy(file, in); err == nil {
		what, err = remote.ReadRelease(file.Name())
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err = errors.Join(err, os.Remove(filepath.Clean(file.Name()))); err != nil {
		return nil, what, errors.Join(err, file.Close())
	}
	return file, what, nil
}

// back waits until a node reconnects with a program.
func (f *Fleet) back(ctx context.Context, n fleet.Node, sum string) (release string, err error) {
	limit, end := context.WithTimeout(ctx, upgradeTimeout)
	defer end()
	said := ""
	for {
		f.drop(n.Name, true) // streams that were offered before have the old facts
		node := f.reach(n)
		node.Any = true
		_, err := node.Open(limit, "")
		_ = node.Close()
		switch {
		case err == nil && node.Hello.Program == sum:
			return node.Hello.Release, nil
		case err == nil && node.Hello.Failed != "":
			return "", fault.New(fault.Failed, "node upgrade", "%s went back to corpus-git %s: %s", n.Name, printable.Text(node.Hello.Release), printable.Text(node.Hello.Failed)).
				WithHint("its log says more:  journalctl -u corpus-git-agent  there")
		case err != nil:
			said = ": " + err.Error()
		}
		select {
		case <-time.After(askAgain):
		case <-limit.Done():
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			return "", fault.New(fault.Failed, "node upgrade", "%s has not come back with the program within %s%s", n.Name, upgradeTimeout, said)
		}
	}
}

// thisProgram reads the program that runs.
func thisProgram() (remote.Release, error) {
	path, err := os.Executable()
	if err != nil {
		return remote.Release{}, err
	}
	return remote.ReadRelease(path)
}
