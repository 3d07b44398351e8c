package event

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Redactor hides secrets in a text. It is called for every text of every event.
type Redactor interface{ String(s string) string }

// Log is the event log of one deployment: one file of JSON lines, one writer, many followers.
// All methods are safe for concurrent use.
type Log struct {
	path string
	now  func() time.Time

	mu     sync.Mutex
	file   *os.File
	redact Redactor
	seq    uint64
	size   int64
	ended  bool // nothing is appended any more
	closed bool
	grown  chan struct{} // closed and replaced whenever size or ended changes
	over   chan struct{} // closed with ended
	err    error
	bound  bound
}

// Create opens path for appending; an incomplete last line, left by a crash, is truncated, and numbering continues. redact must not be nil.
// The caller closes the log.
func Create(path string, now func() time.Time, redact Redactor) (*Log, error) {
	if redact == nil {
		return nil, errors.New("event log without a redactor")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	seq, size, err := scan(f)
	if err == nil {
		err = f.Truncate(size)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("event log %s: %w", path, err)
	}
	return &Log{path: path, now: now, file: f, redact: redact, seq: seq, size: size, grown: make(chan struct{}), over: make(chan struct{})}, nil
}

// scan finds the last whole event and where it ends.
func scan(f *os.File) (seq uint64, size int64, err error) {
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return 0, 0, err // a new log, as nearly always
	}
	r := bufio.NewReaderSize(f, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return seq, size, nil
		}
		if err != nil {
			return 0, 0, err
		}
		var e Event
		if json.Unmarshal(line, &e) != nil {
			return seq, size, nil
		}
		seq, size = e.Seq, size+int64(len(line))
	}
}

// Append cleans, redacts, numbers and writes e, and wakes the followers. It returns the event's number, 0 if the log is so long that e
// is kept back (see Limit). A write error is kept and returned by Sync and Close; it never stops a deployment. When Append returns, the
// event survives a crash of this process, and a crash of the machine after the next Sync.
func (l *Log) Append(e Event) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return 0
	}
	e.Lines = l.cleanLines(e.Lines)
	for _, s := range []*string{&e.Text, &e.State, &e.Step} {
		*s = finish(l.redact.String(Scrub(*s)))
	}
	if e.Time.IsZero() {
		e.Time = l.now()
	}
	if l.bound.holds(l.size, e) {
		if say, ok := l.bound.add(e); ok {
			l.write(say)
		}
		return 0
	}
	l.release()
	return l.write(e)
}

// write numbers an event and writes it.
func (l *Log) write(e Event) uint64 {
	e.Seq = l.seq + 1
	if e.Time.IsZero() {
		e.Time = l.now()
	}
	data, err := json.Marshal(e)
	if err == nil {
		_, err = l.file.Write(append(data, '\n'))
	}
	if err != nil {
		if l.err == nil {
			l.err = fmt.Errorf("event log %s: %w", l.path, err)
		}
		_ = l.file.Truncate(l.size)
		return 0
	}
	l.seq = e.Seq
	l.size += int64(len(data)) + 1
	l.wake()
	return e.Seq
}

// release writes the events that were kept back.
func (l *Log) release() {
	for _, e := range l.bound.take() {
		l.write(e)
	}
}

// maxLinesBytes limits the lines under one event, in bytes.
const maxLinesBytes = 1 << 20

// cleanLines redacts the lines as one text, because a secret may span several, and cleans each. If there are too many, the last ones are kept.
func (l *Log) cleanLines(lines []string) []string {
	if len(lines) == 0 {
		return nil
	}
	from, size := len(lines), 0
	for from > 0 && len(lines)-from < MaxLines && size+min(len(lines[from-1]), MaxLine) <= maxLinesBytes {
		from--
		size += min(len(lines[from]), MaxLine)
	}
	var out []string
	if from > 0 {
		out, lines = append(out, fmt.Sprintf("(%d lines left out)", from)), lines[from:]
	}
	scrubbed := make([]string, len(lines))
	for i, s := range lines {
		scrubbed[i] = Scrub(s)
	}
	for s := range strings.SplitSeq(l.redact.String(strings.Join(scrubbed, "\n")), "\n") {
		out = append(out, finish(s))
	}
	return out
}

func (l *Log) wake() {
	close(l.grown)
	l.grown = make(chan struct{})
}

// Sync makes what was appended durable, and returns the first write error.
func (l *Log) Sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return l.err
	}
	return errors.Join(l.err, l.file.Sync())
}

// End ends the followers once they have read all of the log, and refuses further events; Close makes it durable. Idempotent.
func (l *Log) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

func (l *Log) end() {
	if l.ended {
		return
	}
	l.release()
	l.finish()
}

// finish ends the followers.
func (l *Log) finish() {
	l.ended = true
	close(l.over)
	l.wake()
}

// Close makes the log durable and ends its followers once they have read all of it. Idempotent.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return l.err
	}
	if l.ended {
		// Outside of the lock: others may need the log meanwhile.
		l.closed = true
		l.mu.Unlock()
		err := errors.Join(l.file.Sync(), l.file.Close())
		l.mu.Lock()
		l.err = errors.Join(l.err, err)
		return l.err
	}
	l.release()
	l.err = errors.Join(l.err, l.file.Sync(), l.file.Close())
	l.closed = true
	l.finish()
	return l.err
}

// pace is how long a follower waits for further events after it was woken, unless the log ends. Nobody sees the difference, and each event of a small
// deployment would wake the session, the client's ssh and its git, on the processors that the steps need.
const pace = 20 * time.Millisecond

// Follow yields the events after seq, old ones first, then new ones, until the log is
// closed, ctx ends (the error is yielded last) or the caller breaks out of the loop. New ones are yielded at most 20 ms late.
func (l *Log) Follow(ctx context.Context, seq uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f, err := os.Open(l.path)
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer f.Close()
		var off int64
		for {
			l.mu.Lock()
			size, ended, grown := l.size, l.ended, l.grown
			l.mu.Unlock()
			if off < size {
				for e, err := range decode(io.NewSectionReader(f, off, size-off), size-off) {
					if err != nil {
						yield(Event{}, err)
						return
					}
					if ctx.Err() != nil {
						yield(Event{}, ctx.Err())
						return
					}
					if e.Seq > seq && !yield(e, nil) {
						return
					}
				}
				off = size
				continue
			}
			if ended {
				return
			}
			select {
			case <-ctx.Done():
				yield(Event{}, ctx.Err())
				return
			case <-grown:
			}
			more := time.NewTimer(pace)
			select {
			case <-ctx.Done():
			case <-l.over:
			case <-more.C:
			}
			more.Stop()
		}
	}
}

// lastBytes is more than the last event of a log takes: a verdict is one line.
const lastBytes = 64 << 10

// Last returns the last event of a log that has no writer, without reading all of it; ok is false if there is none. An event longer than 64
// KiB is not found.
func Last(path string) (e Event, ok bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return e, false, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return e, false, err
	}
	tail, err := io.ReadAll(io.NewSectionReader(f, max(0, st.Size()-lastBytes), lastBytes))
	if err != nil {
		return e, false, err
	}
	end := bytes.LastIndexByte(tail, '\n')
	if end < 0 {
		return e, false, nil
	}
	line := tail[bytes.LastIndexByte(tail[:end], '\n')+1 : end]
	return e, json.Unmarshal(line, &e) == nil, nil
}

// Read yields the events after seq of a log that has no writer. An incomplete last line is dropped. A missing file yields fs.ErrNotExist.
func Read(path string, seq uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("event log %s: %w", filepath.Base(path), fs.ErrNotExist)
			}
			yield(Event{}, err)
			return
		}
		defer f.Close()
		for e, err := range decode(f, maxBuffer) {
			if err != nil {
				yield(Event{}, err)
				return
			}
			if e.Seq > seq && !yield(e, nil) {
				return
			}
		}
	}
}

// maxBuffer is how much of a log is read at once, at most.
const maxBuffer = 32 << 10

// decode yields the events in r, of which there are about size bytes.
func decode(r io.Reader, size int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		br := bufio.NewReaderSize(r, int(min(size, maxBuffer)))
		for {
			line, err := br.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
			var e Event
			if err := parse(bytes.TrimSpace(line), &e); err != nil {
				yield(Event{}, fmt.Errorf("event log: %w", err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}
