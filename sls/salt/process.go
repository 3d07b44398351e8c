package salt

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/sls/host"
)

//go:embed driver.py
var driver []byte

// process is one running driver. It belongs to the goroutine that holds the session.
type process struct {
	// answers receives the data of both pipes, in the order of each.
	answers chan answer
	// gone is closed when the process has ended and all its answers were sent.
	gone   chan struct{}
	status execx.Status
	err    error

	cancel   context.CancelCauseFunc
	requests *os.File
	tail     *execx.Tail
	pid      int
	steps    int
}

// processSpec is how a process is started.
type processSpec struct {
	host *host.Host
	// python is the interpreter with its flags, bin is salt-call.
	python []string
	bin    string
	// dir is the session's directory, configured.
	dir string
	// modules reports that there are custom modules to sync.
	modules bool
}

// tailSize is the size of the end of Salt's log that an error may quote from, in bytes.
const tailSize = 16 << 10

// startProcess starts the driver; the first answers report whether it works. It runs until stop or kill, whatever happens
// to ctx.
func startProcess(ctx context.Context, sp processSpec) (*process, error) {
	program := filepath.Join(sp.dir, "driver.py")
	if err := os.WriteFile(program, driver, 0o600); err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	p := &process{
		answers: make(chan answer, 64), gone: make(chan struct{}), cancel: cancel, requests: w,
		tail: &execx.Tail{Max: tailSize},
	}
	send := func(a answer) {
		select {
		case p.answers <- a:
		case <-own.Done():
		}
	}
	log := execx.NewLines(func(l string) {
		if !strings.Contains(l, mark) {
			_, _ = p.tail.Write([]byte(l + "\n"))
		}
		send(answer{Kind: logged, Line: l})
	})
	out := &splitter{emit: func(line []byte) {
		if a, ok := parseAnswer(line); ok {
			send(a)
		} else {
			_, _ = log.Write(append(line[:len(line):len(line)], '\n'))
		}
	}}
	sync := "no"
	if sp.modules {
		sync = "sync"
	}
	argv := append(append([]string{}, sp.python...), program, sp.bin, filepath.Join(sp.dir, "conf"), sync)
	go func() {
		defer close(p.gone)
		p.status, p.err = sp.host.Exec.Run(own, execx.Cmd{
			Argv: argv, Dir: "/", Env: sp.host.Environ, Stdin: r, Stdout: out, Stderr: log,
		})
		_, _ = r.Close(), log.Close()
	}()
	return p, nil
}

// mark is the prefix of the line of standard error that ends a step: the ASCII record separator.
const mark = "\x1e"

// next returns the next answer; ok is false if there will be none. An error is that of ctx, and means that the process has
// ended.
func (p *process) next(ctx context.Context) (a answer, ok bool, err error) {
	select {
	case a := <-p.answers:
		return a, true, nil
	default:
	}
	select {
	case a := <-p.answers:
		return a, true, nil
	case <-ctx.Done():
		cause := context.Cause(ctx)
		p.kill(cause)
		return answer{}, false, cause
	case <-p.gone:
		select { // answers that arrived before it ended
		case a := <-p.answers:
			return a, true, nil
		default:
			return answer{}, false, nil
		}
	}
}

// errNoSalt reports that an interpreter has no Salt.
var errNoSalt = errors.New("this Python has no Salt")

// waitReady waits until the minion is created.
func (p *process) waitReady(ctx context.Context, line func(string)) error {
	for {
		a, ok, err := p.next(ctx)
		if err != nil {
			return err
		}
		if !ok {
			return p.exitError("start Salt", "the Salt process ended before it ran anything")
		}
		switch a.Kind {
		case hello:
			p.pid = a.PID
		case ready:
			return nil
		case logged:
			line(a.Line)
		case fatal:
			p.stop()
			if a.Why == "import" {
				return fmt.Errorf("%w: %s", errNoSalt, a.Text)
			}
			return p.exitError("start Salt", a.Text)
		}
	}
}

// ask sends a step.
func (p *process) ask(r request) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	p.steps++
	_, err = p.requests.Write(append(data, '\n'))
	return err
}

// exitError describes the end of the process, with the end of Salt's log.
func (p *process) exitError(op, what string) error {
	p.reap()
	text := what
	switch {
	case p.err != nil:
		text += ": " + p.err.Error()
	case p.status.Signal != 0:
		text += fmt.Sprintf(" (killed by signal %d)", int(p.status.Signal))
	default:
		text += fmt.Sprintf(" (exit status %d)", p.status.Exit)
	}
	return fault.New(fault.Internal, op, "%s%s", text, p.logged())
}

// logged returns the end of Salt's log as the end of an error's text.
func (p *process) logged() string {
	l := strings.Split(strings.TrimRight(p.tail.String(), "\n"), "\n")
	if len(l) == 1 && l[0] == "" {
		return ""
	}
	return "; the end of its log:\n" + strings.Join(l[max(0, len(l)-10):], "\n")
}

// grace is how long an idle driver may take to end.
const grace = 10 * time.Second

// stop lets an idle process end, and kills it if it does not. What a step left running in the background keeps running, as
// after salt-call.
func (p *process) stop() {
	_ = p.requests.Close()
	t := time.NewTimer(grace)
	defer t.Stop()
	for {
		select {
		case <-p.answers:
		case <-p.gone:
			p.cancel(nil)
			return
		case <-t.C:
			p.kill(errors.New("the Salt process did not end"))
			return
		}
	}
}

// kill ends the process with its whole group.
func (p *process) kill(cause error) {
	p.cancel(cause)
	<-p.gone
	_ = p.requests.Close()
}

// reap kills what is left of the group of a process that ended by itself.
func (p *process) reap() {
	<-p.gone
	if p.pid > 1 {
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	}
	p.cancel(nil)
	_ = p.requests.Close()
}

// alive reports whether the process can take a step.
func (p *process) alive() bool {
	select {
	case <-p.gone:
		return false
	default:
		return true
	}
}
