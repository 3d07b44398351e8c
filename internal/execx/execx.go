package execx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Cmd describes one command.
type Cmd struct {
	// Argv is the program and its arguments; the program is looked up in Env's PATH when it has no slash.
	Argv []string
	// Dir is the working directory; it must exist. With a Credential it may be one that the user cannot reach.
	Dir string
	// Env is the whole environment, KEY=VALUE.
	Env []string
	// Stdin may be nil.
	Stdin io.Reader
	// Stdout and Stderr receive the output as it comes; nil discards. Where both are the same
	// comparable writer, the order in which the process wrote is kept.
	Stdout, Stderr io.Writer
	// Credential switches user and groups; only root can. Nil keeps ours.
	Credential *syscall.Credential
	// Umask, where not nil, is set for the command.
	Umask *int
	// Grace is the time between SIGTERM and SIGKILL of the group when ctx ends; 0 means DefaultGrace.
	Grace time.Duration
}

// DefaultGrace is how long a group may take to end after SIGTERM.
const DefaultGrace = 5 * time.Second

// Status is how a command ended.
type Status struct {
	// Exit is the exit status; 128+n when signal n ended it, as shells have it.
	Exit   int
	Signal syscall.Signal
}

// Commander runs commands. The interface is the seam for tests.
type Commander interface {
	// Run starts c and waits for it. A command that ran and exited non-zero is a Status, not an
	// error. When ctx ends the whole session is ended and ctx's cause is the error. Output
	// that background children still hold open is waited for no longer than a second; what they write later is
	// read and dropped.
	Run(ctx context.Context, c Cmd) (Status, error)
}

// OS is the real Commander.
type OS struct {
	// Notes is a folder in which each command is noted while it runs, so that Reap finds it after a crash; "" notes none.
	Notes string
}

var _ Commander = OS{}

// Run implements Commander.
func (o OS) Run(ctx context.Context, c Cmd) (Status, error) {
	if len(c.Argv) == 0 {
		return Status{}, errors.New("no command")
	}
	if err := context.Cause(ctx); err != nil {
		return Status{}, err
	}
	if err := checkDir(c.Dir); err != nil {
		return Status{}, err
	}
	path, err := lookPath(c.Argv[0], c.Dir, c.Env)
	if err != nil {
		return Status{}, err
	}
	argv := c.Argv
	if c.Umask != nil {
		// umask(2) belongs to the whole process, so a shell sets it in the child.
		argv = append([]string{"sh", "-c", fmt.Sprintf(`umask %04o && exec "$0" "$@"`, *c.Umask&0o777), path}, c.Argv[1:]...)
		path = "/bin/sh"
	}
	cmd := &exec.Cmd{
		Path: path, Args: argv, Dir: c.Dir, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr,
		WaitDelay: outputWait, // of the input
		// Pdeathsig ends the leader with the server, should that be killed before the note has the process. The signal is
		// that of a thread, not of the process: no goroutine here ends while it is locked to its thread.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Credential: c.Credential, Pdeathsig: syscall.SIGKILL},
	}
	n := openNote(o.Notes)
	defer func() { n.close() }()
	cmd.Env = append(append([]string{}, c.Env...), n.env()...)
	out, err := pipeOutputs(cmd)
	if err != nil {
		return Status{}, err
	}
	leave, err := start(cmd)
	if err != nil {
		out.abandon()
		return Status{}, err
	}
	out.begin()
	defer leave()
	n.started(cmd.Process.Pid)
	leader, _ := statOf("/proc", cmd.Process.Pid)
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-done:
		case <-ctx.Done():
			grace := c.Grace
			if grace == 0 {
				grace = DefaultGrace
			}
			endGroup(cmd.Process.Pid, leader.start, grace)
		}
	}()
	err = cmd.Wait()
	written := out.finish()
	close(done)
	<-ended
	if cause := context.Cause(ctx); cause != nil {
		// Whatever of the group outlived its leader goes too.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		endSession(cmd.Process.Pid, leader.start)
		return status(cmd.ProcessState), cause
	}
	if err == nil {
		err = written
	}
	var exit *exec.ExitError
	switch {
	case err == nil, errors.As(err, &exit), errors.Is(err, exec.ErrWaitDelay):
		return status(cmd.ProcessState), nil
	}
	return status(cmd.ProcessState), err
}

// checkDir is an error where a working directory is none.
func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	fi, err := os.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("working directory: %w", err)
	case !fi.IsDir():
		return fmt.Errorf("working directory %s: %w", dir, syscall.ENOTDIR)
	}
	return nil
}

// start starts a command. The kernel changes the directory as whoever the command runs as by then; where that is another
// user, a directory below one that is closed to him would be refused. So a thread of its own goes there first, which
// the command's process is made from. It lives until leave is called, because the command is killed when it ends.
func start(cmd *exec.Cmd) (leave func(), err error) {
	if cmd.Dir == "" || cmd.SysProcAttr.Credential == nil {
		return func() {}, cmd.Start()
	}
	dir := cmd.Dir
	cmd.Dir = ""
	started, left := make(chan error), make(chan struct{})
	var from func()
	from = func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() { // the first thread is what others see of this process: it stays where it is
			go from()
			<-left
			runtime.UnlockOSThread()
			return
		}
		// Never unlocked, as no other goroutine may get a thread that is elsewhere: it ends with this one.
		err := unix.Unshare(unix.CLONE_FS)
		if err == nil {
			err = unix.Chdir(dir)
		}
		if err != nil {
			err = &fs.PathError{Op: "chdir", Path: dir, Err: err}
		} else {
			err = cmd.Start()
		}
		started <- err
		<-left
	}
	go from()
	leave = func() { close(left) }
	if err := <-started; err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// endGroup asks the group to end, waits until no process of the session lives, the leader's end alone is not that, and makes the group end
// after grace.
func endGroup(leader int, start uint64, grace time.Duration) {
	_ = syscall.Kill(-leader, syscall.SIGTERM)
	for deadline := time.Now().Add(grace); time.Now().Before(deadline); time.Sleep(livePause) {
		if left, err := sessionPIDs("/proc", leader, start); err == nil && len(left) == 0 {
			return
		}
	}
	_ = syscall.Kill(-leader, syscall.SIGKILL)
}

// livePause is how long endGroup waits between two looks.
const livePause = 10 * time.Millisecond

func status(ps *os.ProcessState) Status {
	if ps == nil {
		return Status{Exit: -1}
	}
	if ws, ok := ps.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Status{Exit: 128 + int(ws.Signal()), Signal: ws.Signal()}
	}
	return Status{Exit: ps.ExitCode()}
}

// lookPath finds a program as execvp(3) does, in the PATH of env and not in ours.
func lookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for d := range strings.SplitSeq(path, ":") {
		if !strings.HasPrefix(d, "/") {
			continue
		}
		p := d + "/" + name
		if fi, err := os.Stat(p); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s: %w in PATH %s", name, exec.ErrNotFound, path)
}
