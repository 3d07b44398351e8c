package execx

import (
	"io"
	"os"
	"os/exec"
	"reflect"
	"sync"
	"time"
)

// outputWait is how long Run waits for output that a command's children hold open when the command itself has ended.
const outputWait = time.Second

// output reads a pipe that a command writes to. A daemonized child keeps the pipe, and SIGPIPE would end it at its next write if the
// pipe were closed: what it writes after Run has returned is read and discarded, until it closes the pipe or ends.
type output struct {
	r, w *os.File
	done chan struct{}

	mu  sync.Mutex
	to  io.Writer
	err error // of to
}

// outputs are the pipes of one command.
type outputs []*output

// pipeOutputs gives cmd pipes in place of writers that are not files.
func pipeOutputs(cmd *exec.Cmd) (outputs, error) {
	var all outputs
	same := sameWriter(cmd.Stdout, cmd.Stderr)
	for _, to := range []*io.Writer{&cmd.Stdout, &cmd.Stderr} {
		if same && to == &cmd.Stderr {
			cmd.Stderr = cmd.Stdout
			break
		}
		if _, file := (*to).(*os.File); *to == nil || file {
			continue
		}
		r, w, err := os.Pipe()
		if err != nil {
			all.abandon()
			return nil, err
		}
		all = append(all, &output{r: r, w: w, done: make(chan struct{}), to: *to})
		*to = w
	}
	return all, nil
}

// sameWriter reports whether two writers are equal and comparable.
func sameWriter(a, b io.Writer) bool {
	return a != nil && b != nil && reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}

// abandon closes the pipes of a command that did not start.
func (all outputs) abandon() {
	for _, o := range all {
		_ = o.r.Close()
		_ = o.w.Close()
	}
}

// begin reads what the started command writes.
func (all outputs) begin() {
	for _, o := range all {
		_ = o.w.Close()
		go o.copy()
	}
}

func (o *output) copy() {
	defer close(o.done)
	defer func() { _ = o.r.Close() }()
	buf := make([]byte, 2<<10) // most commands write little
	for {
		n, err := o.r.Read(buf)
		if n > 0 && !o.write(buf[:n]) || err != nil {
			return
		}
		if n == len(buf) && n < 32<<10 {
			buf = make([]byte, 2*n)
		}
	}
}

func (o *output) write(p []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.to.Write(p); err != nil {
		o.err = err
		return false
	}
	return true
}

// finish waits for the last of the output, outputWait at most; the writers are not used after it. The error is the first of a writer.
func (all outputs) finish() error {
	limit := time.NewTimer(outputWait)
	defer limit.Stop()
	late := false
	var first error
	for _, o := range all {
		if !late {
			select {
			case <-o.done:
			case <-limit.C:
				late = true
			}
		}
		o.mu.Lock()
		o.to = io.Discard
		if first == nil {
			first = o.err
		}
		o.mu.Unlock()
	}
	return first
}
