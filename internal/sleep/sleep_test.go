package sleep_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/sleep"
)

func TestFor(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	require.NoError(t, sleep.For(ctx, time.Millisecond))
	require.NoError(t, sleep.For(ctx, 0))
	require.NoError(t, sleep.For(ctx, -time.Second))
	why := errors.New("enough")
	go end(why)
	require.ErrorIs(t, sleep.For(ctx, time.Hour), why)
	require.ErrorIs(t, sleep.For(ctx, time.Hour), why)
	require.ErrorIs(t, sleep.For(ctx, 0), why)
}
