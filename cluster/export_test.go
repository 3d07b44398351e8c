package cluster

import "context"

// Shorten shortens the log as the leader does from time to time, and returns the number of the first message that is left.
func (l *Leader) Shorten(ctx context.Context) (first uint64, err error) {
	s, err := l.c.log.State(ctx)
	if err != nil {
		return 0, err
	}
	l.shorten(ctx, s)
	s, err = l.c.log.State(ctx)
	return s.First, err
}
