package event_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/event"
	"corpus-git/internal/redact"
)

// Logs are named as long as something may be appended to them, and once more: their files may be removed right after the end.
func TestOpened(t *testing.T) {
	var o event.Opened
	dir := t.TempDir()
	open := func(name string) (string, *event.Log) {
		p := filepath.Join(dir, name)
		log, err := o.Create(p, time.Now, redact.New(nil))
		require.NoError(t, err)
		return p, log
	}
	require.Empty(t, o.Written())
	b, bl := open("b")
	a, al := open("a")
	for range 3 {
		require.Equal(t, []string{a, b}, o.Written())
	}
	al.End()
	require.Equal(t, []string{a, b}, o.Written())
	require.Equal(t, []string{a, b}, o.Written())
	require.Equal(t, []string{b}, o.Written())
	_, again := open("a")
	require.Equal(t, []string{a, b}, o.Written())
	require.NoError(t, al.Close())
	require.NoError(t, again.Close())
	require.NoError(t, bl.Close())
	require.Equal(t, []string{a, b}, o.Written())
	_, again = open("a") // before it was named twice
	require.Equal(t, []string{a, b}, o.Written())
	require.Equal(t, []string{a}, o.Written())
	require.NoError(t, again.Close())

	var none *event.Opened
	log, err := none.Create(filepath.Join(dir, "c"), time.Now, redact.New(nil))
	require.NoError(t, err)
	require.NoError(t, log.Close())
}
