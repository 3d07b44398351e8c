package procedures

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/event"
	"corpus-git/internal/redact"
)

// reported keeps what was reported.
type reported struct {
	mu   sync.Mutex
	list []event.Event
}

func (r *reported) Append(e event.Event) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, e)
	return uint64(len(r.list))
}

// TestTwoStreamsAtOnce: a command writes its two streams at the same time. Once that ended the server with "concurrent map writes".
func TestTwoStreamsAtOnce(t *testing.T) {
	var got reported
	e := &Env{Report: &got, Prepared: &Prepared{Redactor: redact.None()}}
	const rounds, lines = 2000, 3
	for i := range rounds {
		out := e.outputs(NameInstall)
		var both sync.WaitGroup
		begin := make(chan struct{})
		for _, stream := range []string{"stdout", "stderr"} {
			both.Go(func() {
				<-begin
				for n := range lines {
					out.write(fmt.Sprint("state", i), stream, fmt.Sprint(n))
				}
			})
		}
		close(begin)
		both.Wait()
		out.close()
	}
	require.Len(t, got.list, 2*rounds*lines)
	of := map[string]int{}
	for _, e := range got.list {
		of[e.Stream]++
	}
	require.Equal(t, map[string]int{"stdout": rounds * lines, "stderr": rounds * lines}, of)
}
