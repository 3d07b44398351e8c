package event

import (
	"slices"
	"sync"
	"time"
)

// Opened are logs that were opened through it. It knows which may have changed, so that nobody has to look at the others. A nil *Opened opens logs, and knows none.
// All methods are safe for concurrent use.
type Opened struct {
	mu   sync.Mutex
	logs map[string]*Log // by path
	over []string        // that had ended when they were named last
}

// Create is Create; Written names the log until it has ended.
func (o *Opened) Create(path string, now func() time.Time, redact Redactor) (*Log, error) {
	log, err := Create(path, now, redact)
	if err != nil || o == nil {
		return log, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.logs == nil {
		o.logs = map[string]*Log{}
	}
	o.logs[path] = log
	return log, nil
}

// Written returns the paths of the logs to which something may have been appended since the last call, in byte order. A log that has ended is named by two calls more: it may be removed right after its end.
func (o *Opened) Written() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.over
	o.over = nil
	for path, log := range o.logs {
		if log.hasEnded() { // before it is read: then nothing is appended after
			delete(o.logs, path)
			o.over = append(o.over, path)
		}
		out = append(out, path)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (l *Log) hasEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}
