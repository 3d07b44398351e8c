package retention

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// LogSuffix is the suffix of an event log's name.
const LogSuffix = ".jsonl"

// PruneLogs removes the oldest event logs of a folder until the others take at most max bytes. Logs of the IDs in keep are
// kept.
func PruneLogs(dir string, max int64, keep map[string]bool) (removed int, err error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	type log struct {
		path string
		at   time.Time
		size int64
	}
	var old []log
	total := int64(0)
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), LogSuffix)
		fi, err := e.Info()
		if !ok || err != nil {
			continue // not an event log, or removed meanwhile
		}
		total += fi.Size()
		if !keep[id] {
			old = append(old, log{filepath.Join(dir, e.Name()), fi.ModTime(), fi.Size()})
		}
	}
	slices.SortFunc(old, func(a, b log) int { return a.at.Compare(b.at) })
	for _, l := range old {
		if total <= max {
			break
		}
		if err := os.Remove(l.path); err != nil && !os.IsNotExist(err) {
			return removed, err
		}
		total -= l.size
		removed++
	}
	return removed, nil
}
