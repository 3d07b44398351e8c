package event

import (
	"fmt"

	"corpus-git/internal/humanize"
)

// bound limits the size of a log: what commands print, and single states, are written up to half of the limit. After that only the last of
// them are kept, in memory, and written before the next event that is always written: a failure, an end, the verdict. A crash loses what is
// kept.
type bound struct {
	limit   int64
	last    []Event // in order
	bytes   int64   // of last
	left    int64   // how many events were dropped since the last release
	size    int64   // and their bytes
	written int64   // what was released so far
	told    bool
}

const (
	// lastMost is how much of the last is kept in memory, lastLeast when the limit is used up.
	lastMost, lastLeast = 1 << 20, 16 << 10
)

// Limit limits the log to about so many bytes: the first half and the last are kept of what commands print, and events report
// what was dropped. 0 sets no limit.
func (l *Log) Limit(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bound.limit = bytes
}

// holds reports whether an event is kept back: size is that of the log.
func (b *bound) holds(size int64, e Event) bool {
	switch e.Kind {
	case Output, StateStart, StateDone:
		return b.limit > 0 && size-b.written > b.limit/2
	}
	return false
}

// room returns how much is kept.
func (b *bound) room() int64 {
	return max(min(lastMost, b.limit/2-b.written), lastLeast)
}

// add keeps an event, and drops the oldest ones. The first time it returns an event that reports this.
func (b *bound) add(e Event) (say Event, ok bool) {
	b.last = append(b.last, e)
	b.bytes += weight(e)
	for b.bytes > b.room() && len(b.last) > 0 {
		w := weight(b.last[0])
		b.last[0] = Event{}
		b.last, b.bytes, b.left, b.size = b.last[1:], b.bytes-w, b.left+1, b.size+w
	}
	if b.told {
		return Event{}, false
	}
	b.told = true
	return Event{Kind: Note, Text: fmt.Sprintf("the log has reached %s: of what is printed from here on the last lines are kept (limits.max_log_bytes)", humanize.Bytes(b.limit/2))}, true
}

// take returns and forgets what was kept, with an event that reports what was dropped.
func (b *bound) take() []Event {
	if len(b.last) == 0 && b.left == 0 {
		return nil
	}
	var out []Event
	if b.left > 0 {
		out = append(out, Event{Kind: Note, Text: fmt.Sprintf("%s left out, %s; the last ones:", humanize.Plural(b.left, "event"), humanize.Bytes(b.size))})
	}
	out = append(out, b.last...)
	b.written += b.bytes
	b.last, b.bytes, b.left, b.size = nil, 0, 0, 0
	return out
}

// weight returns about how much an event takes in a log.
func weight(e Event) int64 {
	n := 200 + len(e.Text) + len(e.State) + len(e.Step) + len(e.Function)
	for _, l := range e.Lines {
		n += len(l) + 3
	}
	return int64(n)
}
