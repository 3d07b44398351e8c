package upgrade

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"corpus-git/bundle/program"
	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
)

// What Note.State can be.
const (
	trying = "trying"
	good   = "good"
	failed = "failed"
)

// Note says which program is to run.
type Note struct {
	// Program is the SHA-256 of the program that was sent, Replaces that of the one that received it.
	Program  string `json:"program"`
	Replaces string `json:"replaces"`
	State    string `json:"state"`
	// Reason says why a trial failed.
	Reason string `json:"reason,omitempty"`
}

// Programs is the folder of programs that a hub has sent.
type Programs struct {
	Dir string
	FS  vfs.FS
	// Own is the SHA-256 of the program that runs.
	Own string
	// startLimit replaces the constant of that name; 0 means that.
	startLimit time.Duration

	mu sync.Mutex
	// why says why the last trial failed, also if that could not be recorded.
	why string
}

// Open reads which program this process is.
func Open(dir string) (*Programs, error) {
	own, err := digest("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	return &Programs{Dir: dir, FS: vfs.OS{}, Own: own}, nil
}

// digest returns the SHA-256 of a file, in hexadecimal.
func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func (p *Programs) note() string { return filepath.Join(p.Dir, "note.json") }

// path is where a program is: its own name in a folder that its digest names.
func (p *Programs) path(sum string) string { return filepath.Join(p.Dir, sum, "corpus-git") }

func (p *Programs) read() (n Note, err error) {
	text, err := os.ReadFile(p.note())
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err != nil {
		return n, fmt.Errorf("%s: %w", p.note(), err)
	}
	return n, nil
}

func (p *Programs) write(n Note) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return vfs.WriteFileAtomic(p.FS, p.note(), append(text, '\n'), 0o600)
}

// Chosen returns the program to run in place of this one, "" for this one. It is called once, at the start: a trial that a crash interrupted
// counts as failed then, and so does a program that is damaged.
func (p *Programs) Chosen() (path string, err error) {
	n, err := p.read()
	if err != nil {
		return "", err
	}
	switch {
	case n.State == trying && n.Replaces == p.Own:
		p.fail(n, "the machine, or the agent, was stopped during the trial")
		return "", nil
	case n.State != good || n.Replaces != p.Own || n.Program == p.Own:
		return "", nil
	}
	switch sum, err := digest(p.path(n.Program)); {
	case err != nil:
		p.fail(n, err.Error())
		return "", nil
	case sum != n.Program: // it would not start, or worse
		p.fail(n, "the file of the program that was sent is damaged")
		return "", nil
	}
	return p.path(n.Program), nil
}

// Failed says why the last program that was sent was not kept, "" if it was.
func (p *Programs) Failed() string {
	p.mu.Lock()
	why := p.why
	p.mu.Unlock()
	if why != "" {
		return why
	}
	n, err := p.read()
	if err != nil || n.State != failed || n.Replaces != p.Own {
		return ""
	}
	return n.Reason
}

// fail records that a trial failed. If that cannot be written, as on a full disk, this program runs nevertheless: the note still says trying, which the next start
// takes for a failure, too.
func (p *Programs) fail(n Note, reason string) {
	n.State, n.Reason = failed, reason
	if err := p.write(n); err != nil {
		reason += "; and this was not recorded: " + err.Error()
	}
	p.failedBecause(reason)
}

func (p *Programs) failedBecause(reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.why = reason
}

// Confirm records that this program has reached the hub, if it is on trial. Durable on return.
func (p *Programs) Confirm() error {
	n, err := p.read()
	if err != nil || n.State != trying || n.Program != p.Own {
		return err
	}
	n.State = good
	return p.write(n)
}

const (
	// startLimit is how long a program that was sent may take to say its version.
	startLimit = 20 * time.Second
	// newPrefix begins the names of folders that Take writes.
	newPrefix = ".new-"
)

// Take stores a program that a hub sends, and records that it is to be tried. It is run once, to print its version: one that fails to is
// fault.Refused. Durable on return.
func (p *Programs) Take(ctx context.Context, in *bufio.Reader, trusted func(ssh.PublicKey) error) error {
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return err
	}
	if err := p.sweep(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(p.Dir, newPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "corpus-git")
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	m, err := program.Read(in, trusted, f)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); vfs.IsFull(err) {
		return fault.New(fault.Busy, "", "the disk is full: %w", err).WithHint("free some space there, and try again")
	} else if err != nil {
		return err
	}
	if m.SHA256 == p.Own {
		return fault.New(fault.Refused, "", "it runs this program already")
	}
	if said, err := p.version(ctx, file); err != nil {
		return fault.New(fault.Refused, "", "the program does not run here: %w %s", err, printable.Text(printable.Shorten(said, 200)))
	}
	if err := errors.Join(vfs.SyncDir(p.FS, dir), p.clear(m.SHA256)); err != nil {
		return err
	}
	if err := os.Rename(dir, filepath.Dir(p.path(m.SHA256))); err != nil {
		return err
	}
	if err := vfs.SyncDir(p.FS, p.Dir); err != nil {
		return err
	}
	if err := p.write(Note{Program: m.SHA256, Replaces: p.Own, State: trying}); err != nil {
		return err
	}
	p.failedBecause("") // of an earlier one
	return nil
}

// version runs a program to say its version. What it has started ends with it.
func (p *Programs) version(ctx context.Context, file string) (string, error) {
	limit := cmp.Or(p.startLimit, startLimit)
	ctx, end := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not print its version within %s", limit))
	defer end()
	for {
		var out bytes.Buffer
		s, err := execx.OS{}.Run(ctx, execx.Cmd{Argv: []string{file, "version"}, Env: os.Environ(), Stdout: &out, Stderr: &out, Grace: time.Second})
		var at *fs.PathError
		switch {
		case errors.Is(err, syscall.ETXTBSY) && ctx.Err() == nil: // another goroutine was starting a command while the file was open: see golang/go issue 22315
			time.Sleep(10 * time.Millisecond)
			continue
		case errors.As(err, &at): // the path is that of a temporary copy
			err = at.Err
		case err == nil && s.Signal != 0:
			err = fmt.Errorf("signal: %s", s.Signal)
		case err == nil && s.Exit != 0:
			err = fmt.Errorf("exit status %d", s.Exit)
		}
		return strings.TrimSpace(out.String()), err
	}
}

// sweep removes what interrupted calls of Take have left.
func (p *Programs) sweep() error {
	return p.remove(func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), newPrefix) })
}

// clear removes all unneeded programs.
func (p *Programs) clear(coming string) error {
	return p.remove(func(e fs.DirEntry) bool {
		return e.IsDir() && e.Name() != p.Own && !strings.HasPrefix(e.Name(), ".") || e.Name() == coming
	})
}

// remove removes some of what is in the folder.
func (p *Programs) remove(some func(fs.DirEntry) bool) error {
	entries, err := os.ReadDir(p.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if some(e) {
			if err := os.RemoveAll(filepath.Join(p.Dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Trial is how a new program is tried.
type Trial struct {
	// Args are those of this process without its name, Env its environment.
	Args, Env      []string
	Stdout, Stderr io.Writer
	// Timeout is how long it may take to reach the hub.
	Timeout time.Duration
	// Signals are passed on.
	Signals <-chan os.Signal
	// Connected is called when it has reached the hub; it may be nil.
	Connected func()
}

// askEvery is the interval of checks whether the program has reached the hub.
const askEvery = 50 * time.Millisecond

// ErrStopped means that this process was stopped while a program was on trial.
var ErrStopped = errors.New("stopped during a trial")

// Try runs the received program as a child, and returns when it has ended: came reports that it had reached the hub, and that its end is
// this process's. One that had not is ended, and recorded as failed. The child ends with this process.
func (p *Programs) Try(t Trial) (came bool, end error) {
	n, err := p.read()
	if err != nil {
		return false, err
	}
	if n.State != trying {
		return false, errors.New("no program is on trial")
	}
	c := exec.Command(p.path(n.Program), t.Args...)
	c.Env, c.Stdout, c.Stderr = t.Env, t.Stdout, t.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	ended, started := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // Pdeathsig is sent when the thread ends that started the child: prctl(2)
		defer runtime.UnlockOSThread()
		err := c.Start()
		started <- err
		if err == nil {
			ended <- c.Wait()
		}
	}()
	if err := <-started; err != nil {
		p.fail(n, err.Error())
		return false, nil
	}
	late := time.NewTimer(t.Timeout)
	defer late.Stop()
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	reason, stopped := "", false
	for {
		select {
		case err := <-ended:
			if stopped && !came {
				p.fail(n, "the agent was stopped during the trial")
				return false, ErrStopped
			}
			if now, rerr := p.read(); rerr == nil && now.State == good {
				return true, err
			}
			if reason == "" {
				reason = "it ended before it reached the hub: " + c.ProcessState.String()
			}
			p.fail(n, reason)
			return false, nil
		case sig := <-t.Signals:
			stopped = true
			_ = c.Process.Signal(sig)
		case <-late.C:
			if !came {
				reason = fmt.Sprintf("it did not reach the hub within %s", t.Timeout)
				_ = c.Process.Kill()
			}
		case <-tick.C:
			if now, err := p.read(); !came && err == nil && now.State == good {
				came = true
				tick.Stop()
				if t.Connected != nil {
					t.Connected()
				}
			}
		}
	}
}
