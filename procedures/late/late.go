// Package late says once that a step takes longer than it usually does. It owns one timer for each step, and stores nothing.
package late

import (
	"fmt"
	"sync"
	"time"

	"corpus-git/internal/humanize"
	"corpus-git/project"
)

// least is the least duration of a step that is reported as unusual, and leastRuns the number of past runs that say what is usual: shorter and
// fewer ones vary by chance.
const (
	least     = time.Second
	leastRuns = 3
)

// Watch calls report once if a step runs longer than nine of the last ten runs, or than all of them if there are fewer. stop must be called when
// the step has ended; nothing is reported after it.
func Watch(step string, usual project.Estimate, report func(text string)) (stop func()) {
	if usual.Runs < leastRuns {
		return func() {}
	}
	var mu sync.Mutex
	over := false
	timer := time.AfterFunc(max(usual.P90, least), func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		report(fmt.Sprintf("%s takes longer than usual: of the last %d runs half took %s or less, %s", step, usual.Runs, humanize.Seconds(usual.Median), usual.Upper()))
	})
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		over = true
	}
}
