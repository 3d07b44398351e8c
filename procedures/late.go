package procedures

import (
	"fmt"
	"sync"
	"time"

	"corpus-git/internal/event"
	"corpus-git/internal/humanize"
	"corpus-git/procedures/recipe"
)

// leastLate is the least duration of a step that is reported as unusual, and leastRuns the number of past runs that say what is usual: shorter and
// fewer ones vary by chance.
const (
	leastLate = time.Second
	leastRuns = 3
)

// watchStep reports once if a step runs longer than nine of the last ten runs, or than all of them if there are fewer. stop must be called when the step has ended; nothing is
// reported after it.
func (e *Env) watchStep(s recipe.Step) (stop func()) {
	usual, ok := e.Usual[timingName(s.Name, "")]
	if !ok || usual.Runs < leastRuns {
		return func() {}
	}
	var mu sync.Mutex
	over := false
	timer := time.AfterFunc(max(usual.P90, leastLate), func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		e.Report.Append(event.Event{Kind: event.Note, Text: fmt.Sprintf("%s takes longer than usual: of the last %d runs half took %s or less, %s",
			s.Name, usual.Runs, humanize.Seconds(usual.Median), usual.Upper())})
	})
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		over = true
	}
}
