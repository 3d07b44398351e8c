package archive_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/archive"
	"corpus-git/layout"
)

// BenchmarkArchive makes the first archive of a tree, further ones after changes of 1 % of it, and rolls back.
// CORPUS_BENCH_FILES is the number of files of 12 kB (2000), CORPUS_BENCH_DIR the file system to use.
func BenchmarkArchive(b *testing.B) {
	files, _ := strconv.Atoi(os.Getenv("CORPUS_BENCH_FILES"))
	if files == 0 {
		files = 2000
	}
	dir, err := os.MkdirTemp(os.Getenv("CORPUS_BENCH_DIR"), "bench")
	require.NoError(b, err)
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := layout.Root(dir).Project("app")
	name := func(i int) string { return filepath.Join(p.Live(), fmt.Sprintf("d%d/s%d/f%d", i%97, i%1009, i)) }
	content := make([]byte, 12_000)
	for i := range files {
		require.NoError(b, os.MkdirAll(filepath.Dir(name(i)), 0o755))
		require.NoError(b, os.WriteFile(name(i), append(content, name(i)...), 0o644))
	}
	time.Sleep(100 * time.Millisecond)
	s := archive.New(p, archive.Config{Reserve: noReserve})
	n := 0
	mk := func(b *testing.B) archive.Archive {
		n++
		a, err := s.Make(context.Background(), archive.MakeRequest{Facts: archive.Facts{
			ID: fmt.Sprintf("%08d-0000-4000-8000-000000000000", n), At: time.Unix(int64(1_700_000_000+n), 0),
		}})
		require.NoError(b, err)
		require.NoError(b, s.SetVerdict(a.ID, archive.Good))
		return a
	}
	pause := func(b *testing.B, f func()) { b.StopTimer(); f(); b.StartTimer() }
	clear := func() {
		_, err := s.Rotate(archive.Policy{Keep: 1, Squeeze: true})
		require.NoError(b, err)
	}
	touch := func() {
		for i := n; i < files; i += 100 {
			require.NoError(b, os.WriteFile(name(i), append(content, strconv.Itoa(n)...), 0o644))
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			mk(b)
			pause(b, clear)
		}
	})
	b.Run("next", func(b *testing.B) {
		mk(b)
		for b.Loop() {
			pause(b, func() {
				_, err := s.Rotate(archive.Policy{Keep: 1})
				require.NoError(b, err)
				require.NoError(b, s.Wait())
				touch()
			})
			mk(b)
		}
	})
	b.Run("rollback", func(b *testing.B) {
		for b.Loop() {
			var a archive.Archive
			pause(b, func() { clear(); touch(); a = mk(b); touch() })
			_, err := s.Rollback(context.Background(), a.ID)
			require.NoError(b, err)
		}
	})
}
