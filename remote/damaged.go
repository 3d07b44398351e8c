package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// noGreeting is why a program that was started has not said anything.
type noGreeting struct{ err error }

func (e *noGreeting) Error() string { return e.err.Error() }

func (e *noGreeting) Unwrap() error { return e.err }

// damaged removes the program there if it is not what was copied, and returns the type of machine then; otherwise err, for which a session has not begun.
func (n *Node) damaged(ctx context.Context, err error) (missing string, _ error) {
	var lost *ConnectionError
	if errors.As(err, &lost) || ctx.Err() != nil {
		return "", err
	}
	said, verr := n.Host.output(ctx, []string{"sh", "-c", fmt.Sprintf(verify, n.Release.Sum)}, nil)
	if missing, ok := strings.CutPrefix(said, missingMark); ok && verr == nil {
		return strings.TrimSpace(missing), nil
	}
	return "", err
}
