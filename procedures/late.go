package procedures

import (
	"fmt"
	"sync"
	"time"

	"corpus-git/internal/event"
	"corpus-git/internal/humanize"
	"corpus-git/procedures/recipe"
)

// leastLate is the least duration of a step that is reported as unusual: shorter ones vary by chance.
const leastLate = time.Second

// watchStep reports once if a step runs longer than nine of ten past runs. stop must be called when the step has ended; nothing is
// reported after it.
func (e *Env) watchStep(s recipe.Step) (stop func()) {
	usual, ok := e.Usual[timingName(s.Name, "")]
	if !ok {
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
		e.Report.Append(event.Event{Kind: event.Note, Text: fmt.Sprintf("%s takes longer than usual: 9 of 10 past runs took %s or less, half of them %s",
			s.Name, humanize.Seconds(usual.P90), humanize.Seconds(usual.Median))})
	})
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		over = true
	}
}
