package undo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/vfs"
)

// A log that another process continues before each state is the same as one that is written at once, and undoes the same.
func TestReopen(t *testing.T) {
	journal := func(again bool) (text string, rep Report) {
		root, err := filepath.EvalSymlinks(t.TempDir())
		require.NoError(t, err)
		f := vfs.OS{}
		etc(t, f, root)
		before := tree(t, f, root)
		m := Machine{FS: f, Boot: "1"}
		dir := root + "/state/undo"
		l, err := New(m, dir, root+"/srv/app")
		require.NoError(t, err)
		require.NoError(t, l.Manual("executable 000_first"))
		for i, c := range changes(f, root) {
			if again {
				require.NoError(t, l.Keep())
				require.NoError(t, l.Close())
				cut, err := os.OpenFile(filepath.Join(dir, journalFile), os.O_APPEND|os.O_WRONLY, 0)
				require.NoError(t, err)
				_, err = cut.WriteString(`{"seq": 99, "ki`)
				require.NoError(t, err)
				require.NoError(t, cut.Close())
				l, err = Reopen(m, dir, root+"/srv/app")
				require.NoError(t, err)
			}
			l.Enter(State{Step: "010_web", ID: fmt.Sprint(i)})
			require.NoError(t, c(l))
			require.NoError(t, l.After(context.Background()))
		}
		require.NoError(t, l.Close())
		recs, err := readRecords(f, dir)
		require.NoError(t, err)
		for _, r := range recs {
			text += fmt.Sprintln(r.Kind, r.State, filepath.Base(string(r.Path)), r.What)
		}
		rep, err = Undo(t.Context(), m, dir)
		require.NoError(t, err)
		require.NoError(t, Drop(f, dir))
		require.Equal(t, before, tree(t, f, root))
		for i := range rep.Undone {
			rep.Undone[i].Name = filepath.Base(rep.Undone[i].Name)
		}
		rep.Unchanged = nil // their paths differ
		_, err = Reopen(m, dir)
		require.NoError(t, err, "nothing was recorded")
		return text, rep
	}
	one, rep := journal(false)
	more, again := journal(true)
	require.Equal(t, one, more)
	require.Equal(t, rep, again)
	require.Len(t, rep.Manual, 1)
}

// What has been undone is not continued.
func TestReopenUndone(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	etc(t, vfs.OS{}, root)
	m := Machine{FS: vfs.OS{}, Boot: "1"}
	require.NoError(t, run(vfs.OS{}, m, root))
	_, err = Undo(t.Context(), m, root+"/state/undo")
	require.NoError(t, err)
	_, err = Reopen(m, root+"/state/undo")
	require.ErrorContains(t, err, "it has been undone")
}
