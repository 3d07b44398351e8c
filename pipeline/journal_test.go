package pipeline

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/project"
)

func write(t *testing.T, path string, entries ...Entry) {
	t.Helper()
	j, _, err := OpenJournal(path)
	require.NoError(t, err)
	defer j.Close()
	for _, e := range entries {
		require.NoError(t, j.Append(e))
	}
}

func sample(id project.ID) []Entry {
	return []Entry{
		{Time: time.Unix(1, 0).UTC(), Kind: Accepted, Deployment: id, Facts: &project.Deployment{ID: id, Project: "app"}},
		{Time: time.Unix(2, 0).UTC(), Kind: Begin, Deployment: id, Procedure: "archive"},
		{Time: time.Unix(3, 0).UTC(), Kind: Committing, Deployment: id, Changes: []RefChange{{Repo: project.Code, Change: project.Change{Ref: "refs/heads/master", New: "a"}}}},
	}
}

func TestJournalGivesTheLastDeployment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal", "app.journal")
	write(t, path, append(sample("one"), Entry{Kind: Ended, Deployment: "one", Result: &project.Result{State: project.Live}})...)
	write(t, path, sample("two")...)
	j, got, err := OpenJournal(path)
	require.NoError(t, err)
	defer j.Close()
	require.Equal(t, sample("two"), got)
}

func TestJournalToleratesATornTailAndNothingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.journal")
	write(t, path, sample("one")...)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for cut := last; cut < len(whole); cut++ {
		require.NoError(t, os.WriteFile(path, whole[:cut], 0o600))
		j, got, err := OpenJournal(path)
		require.NoError(t, err)
		require.Len(t, got, 2)
		// What comes next takes the place of the torn entry.
		require.NoError(t, j.Append(sample("one")[2]))
		require.NoError(t, j.Close())
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, whole, data)
	}
	// A tail of garbage of any kind is cut, zeros after a power cut among it.
	for _, tail := range []string{"\x00\x00\x00\x00", "\x00\n\x00\n", "deadbeef {}\n"} {
		require.NoError(t, os.WriteFile(path, append(append([]byte{}, whole...), tail...), 0o600))
		j, got, err := OpenJournal(path)
		require.NoError(t, err)
		require.Len(t, got, 3)
		require.NoError(t, j.Close())
	}
	for i := range last {
		damaged := append([]byte{}, whole...)
		damaged[i] ^= 0x20
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
		_, _, err := OpenJournal(path)
		require.ErrorContains(t, err, "damaged", "byte %d", i)
		data, rerr := os.ReadFile(path)
		require.NoError(t, rerr)
		require.Equal(t, damaged, data, "a damaged journal is left as it is")
	}
}

func TestJournalStartsAnewWhenItIsLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.journal")
	j, _, err := OpenJournal(path)
	require.NoError(t, err)
	defer j.Close()
	for j.size <= maxJournal {
		require.NoError(t, j.Append(Entry{Kind: Begin, Procedure: string(bytes.Repeat([]byte("x"), 64<<10))}))
	}
	require.NoError(t, j.Append(sample("two")[0]))
	_, got, err := OpenJournal(path)
	require.NoError(t, err)
	require.Len(t, got, 1)
	fi, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, fi.Size(), int64(4096))
}

func FuzzReadJournal(f *testing.F) {
	path := filepath.Join(f.TempDir(), "seed.journal")
	j, _, err := OpenJournal(path)
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range sample("one") {
		if err := j.Append(e); err != nil {
			f.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil || len(data) == 0 {
		f.Fatal("no seed", err)
	}
	f.Add(data)
	f.Add(data[:len(data)-3])
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, size, err := readJournal(bytes.NewReader(data))
		if err != nil {
			return
		}
		require.LessOrEqual(t, size, int64(len(data)))
		again, size2, err := readJournal(bytes.NewReader(data[:size]))
		require.NoError(t, err)
		require.Equal(t, size, size2)
		require.Len(t, again, len(entries))
	})
}
