package pack

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
)

// Memory limits what all ingestions together hold of large objects while they resolve deltas. Calls that find too little free wait, first
// come, first served. It is safe for concurrent use; nil has no limit.
type Memory struct {
	limit int64

	mu      sync.Mutex
	used    int64
	waiting []*claim // oldest first
}

type claim struct {
	bytes int64
	ready chan struct{} // closed when the memory is granted
}

// NewMemory returns a Memory with a limit in bytes; 0 means a quarter of the memory of the machine, or of this process's cgroup (cgroup v2,
// memory.max).
func NewMemory(limit int64) *Memory {
	if limit <= 0 {
		limit = machineMemory() / 4
	}
	return &Memory{limit: limit}
}

// take waits for n bytes. It returns a *LimitError if n exceeds the limit. A caller that holds some must not take more: two could wait
// for each other.
func (m *Memory) take(ctx context.Context, n int64) (release func(), err error) {
	if m == nil {
		return func() {}, nil
	}
	if n > m.limit {
		return nil, &LimitError{Name: "Memory", Limit: m.limit, Got: n}
	}
	c := &claim{n, make(chan struct{})}
	m.mu.Lock()
	m.waiting = append(m.waiting, c)
	m.serve()
	m.mu.Unlock()
	var once sync.Once
	release = func() {
		once.Do(func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			for i, w := range m.waiting {
				if w == c { // it was never granted
					m.waiting = append(m.waiting[:i:i], m.waiting[i+1:]...)
					m.serve()
					return
				}
			}
			m.used -= n
			m.serve()
		})
	}
	select {
	case <-c.ready:
		return release, nil
	case <-ctx.Done():
		release()
		return nil, ctx.Err()
	}
}

// serve grants free memory in the order of arrival. m.mu is held.
func (m *Memory) serve() {
	for len(m.waiting) > 0 && m.used+m.waiting[0].bytes <= m.limit {
		c := m.waiting[0]
		m.waiting = m.waiting[1:]
		m.used += c.bytes
		close(c.ready)
	}
}

// machineMemory returns the machine's memory, or the cgroup's limit if that is less: 4 GiB if neither is known.
func machineMemory() int64 {
	most := int64(0)
	if data, err := os.ReadFile("/proc/meminfo"); err == nil { // proc_meminfo(5)
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" {
				if kib, err := strconv.ParseInt(f[1], 10, 64); err == nil {
					most = kib << 10
				}
			}
		}
	}
	if most == 0 {
		most = 4 << 30
	}
	data, err := os.ReadFile("/proc/self/cgroup") // cgroups(7): the line of version 2 is 0::/path
	if err != nil {
		return most
	}
	for line := range strings.Lines(string(data)) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		for ok && strings.HasPrefix(path, "/") {
			if text, err := os.ReadFile("/sys/fs/cgroup" + path + "/memory.max"); err == nil {
				if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
					most = min(most, n)
				}
			}
			path = path[:strings.LastIndexByte(path, '/')]
		}
	}
	return most
}
