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
	// Argv is the program and its arguments; the program is looked up in Env's PATH if it has no slash.
	Argv []string
	// Dir is the working directory; it must exist. With a Credential it may be one that the user can't reach.
	Dir string
	// Env is the whole environment, KEY=VALUE.
	Env []string
	// Stdin may be nil.
	Stdin io.Reader
	// Stdout and Stderr receive the output as it is written; nil discards it. If both are the same
	// comparable writer, the order in which the process wrote is kept.
	Stdout, Stderr io.Writer
	// Terminal, if not nil, is the command's standard input, output and error, and becomes its controlling terminal; Stdin, Stdout and Stderr are not used.
	Terminal *os.File
	// Credential switches user and groups; only root can. Nil keeps ours.
	Credential *syscall.Credential
	// Umask, if not nil, is set for the command.
	Umask *int
	// Grace is the time between SIGTERM and SIGKILL of the group when ctx ends; 0 means DefaultGrace.
	Grace time.Duration
}

// DefaultGrace is how long a group may take to end after SIGTERM.
const DefaultGrace = 5 * time.Second

// Status is how a command ended.
type Status struct {
	// Exit is the exit status; 128+n if signal n ended it, as in shells.
	Exit   int
	Signal syscall.Signal
}

// Commander runs commands; tests replace it.
type Commander interface {
	// Run starts c and waits for it. A command that ran and exited non-zero is a Status, not an
	// error. When ctx ends, the whole session is ended and ctx's cause is the error. Output
	// that background children still hold open is waited for no longer than a second; what they write later is
	// read and dropped.
	Run(ctx context.Context, c Cmd) (Status, error)
}

// OS is the real Commander.
type OS struct {
	// Notes is a folder in which each command is recorded while it runs, so that Reap finds it after a crash; "" records none.
	Notes string
	// Boot is the result of Boot, so that it is not read for each command; "" reads it.
	Boot string
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
	path, err := LookPath(c.Argv[0], c.Dir, c.Env)
	if err != nil {
		return Status{}, err
	}
	cmd := command(c, path)
	n := openNote(o.Notes, o.Boot)
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
	leader, lives := statOf("/proc", cmd.Process.Pid)
	if lives { // otherwise it has ended and has not been waited for yet
		n.started(cmd.Process.Pid, leader.start)
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		grace := c.Grace
		if grace == 0 {
			grace = DefaultGrace
		}
		endGroup(cmd.Process.Pid, leader.start, grace)
	})
	err = cmd.Wait()
	written := out.finish()
	if !stop() {
		<-ended
	}
	if cause := context.Cause(ctx); cause != nil {
		// End processes of the group that outlived their leader.
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

// command returns the child process of c, whose program is path, without its environment.
func command(c Cmd, path string) *exec.Cmd {
	argv := c.Argv
	if c.Umask != nil {
		// umask(2) applies to the whole process, so a shell sets it in the child.
		argv = append([]string{"sh", "-c", fmt.Sprintf(`umask %04o && exec "$0" "$@"`, *c.Umask&0o777), path}, c.Argv[1:]...)
		path = "/bin/sh"
	}
	cmd := &exec.Cmd{
		Path: path, Args: argv, Dir: c.Dir, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr,
		WaitDelay: outputWait, // of the input
		// Pdeathsig ends the leader if the server is killed before the note has the process. The signal depends on the parent thread, not
		// the process: no goroutine here ends while it is locked to its thread.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Credential: c.Credential, Pdeathsig: syscall.SIGKILL},
	}
	if c.Terminal != nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Terminal, c.Terminal, c.Terminal
		cmd.SysProcAttr.Setctty = true // of descriptor 0
	}
	return cmd
}

// checkDir returns an error if the working directory is not a directory.
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

// start starts a command. The kernel would change the directory as the command's user, which fails below a directory that is closed to that
// user. So a thread changes there first, and the command is started from it. The thread lives until leave is called, because the command is
// killed when it ends.
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
		if unix.Gettid() == os.Getpid() { // the first thread is what others see of this process: its directory must not change
			go from()
			<-left
			runtime.UnlockOSThread()
			return
		}
		// Never unlocked, because the thread is in another directory: it ends with this goroutine.
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

// endGroup ends the group with SIGTERM, waits until no process of the session lives (the leader's end is not enough), and after grace kills
// it.
func endGroup(leader int, start uint64, grace time.Duration) {
	_ = syscall.Kill(-leader, syscall.SIGTERM)
	for deadline := time.Now().Add(grace); time.Now().Before(deadline); time.Sleep(livePause) {
		if left, err := sessionPIDs("/proc", leader, start); err == nil && len(left) == 0 {
			return
		}
	}
	_ = syscall.Kill(-leader, syscall.SIGKILL)
}

// livePause is the interval at which endGroup checks.
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

// LookPath finds a program as execvp(3) does, in the PATH of env and not in ours.
func LookPath(name, dir string, env []string) (string, error) {
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
