package journal

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
	j, _, err := Open(path)
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
	j, got, err := Open(path)
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
		j, got, err := Open(path)
		require.NoError(t, err)
		require.Len(t, got, 2)
		// The next entry replaces the torn one.
		require.NoError(t, j.Append(sample("one")[2]))
		require.NoError(t, j.Close())
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, whole, data)
	}
	// A tail of garbage of any kind is cut, including zeros after a power cut.
	for _, tail := range []string{"\x00\x00\x00\x00", "\x00\n\x00\n", "deadbeef {}\n"} {
		require.NoError(t, os.WriteFile(path, append(append([]byte{}, whole...), tail...), 0o600))
		j, got, err := Open(path)
		require.NoError(t, err)
		require.Len(t, got, 3)
		require.NoError(t, j.Close())
	}
	// What was not durable by itself (begin archive) is skipped, anything else is not.
	lost := bytes.IndexByte(whole, '\n') + 1
	for i := range last {
		damaged := append([]byte{}, whole...)
		damaged[i] ^= 0x20
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
		j, got, err := Open(path)
		if i >= lost {
			require.NoError(t, err, "byte %d", i)
			require.Equal(t, []Entry{sample("one")[0], sample("one")[2]}, got)
			require.NoError(t, j.Close())
			continue
		}
		require.ErrorContains(t, err, "damaged", "byte %d", i)
		data, rerr := os.ReadFile(path)
		require.NoError(t, rerr)
		require.Equal(t, damaged, data, "a damaged journal is left as it is")
	}
}

// A power cut leaves any part of what was not synced: recovery must decide from what is left as it would from all of it.
func TestJournalAfterAPowerCut(t *testing.T) {
	id := project.ID("one")
	begin := func(name string) Entry { return Entry{Kind: Begin, Deployment: id, Procedure: name} }
	for name, ending := range map[string][]Entry{
		"in a step":               nil,
		"committing":              {{Kind: Committing, Deployment: id}},
		"failed after the move":   {{Kind: Committing, Deployment: id}, {Kind: Failing, Deployment: id, Keep: true}},
		"while it is rolled back": {{Kind: Failing, Deployment: id}, {Kind: RollingBack, Deployment: id}, begin("rollback"), begin("fixperms")},
		"ended":                   {{Kind: Committing, Deployment: id}, {Kind: Ended, Deployment: id}},
		"ready":                   {{Kind: Ready, Deployment: id}},
		"ready, ended":            {{Kind: Ready, Deployment: id}, {Kind: Committing, Deployment: id}, {Kind: Ended, Deployment: id}},
		"ready, failed":           {{Kind: Ready, Deployment: id}, {Kind: Committing, Deployment: id}, {Kind: Failing, Deployment: id}, {Kind: RollingBack, Deployment: id}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.journal")
			entries := append(sample(id)[:2:2], begin("sync"), begin("release-sync"), begin("fixperms"), begin("install"))
			entries = append(entries, ending...)
			write(t, path, entries...)
			whole, err := os.ReadFile(path)
			require.NoError(t, err)
			lines := bytes.SplitAfter(whole, []byte("\n"))
			lines = lines[:len(lines)-1]
			require.Len(t, lines, len(entries))
			decides := func(i int) bool {
				e := entries[i]
				if e.Kind == Committing && entries[i-1].Kind == Ready {
					return false
				}
				return e.Kind != Begin || e.Procedure == "sync"
			}
			for from := range lines {
				for to := from + 1; to <= len(lines); to++ {
					var data []byte
					var want []Entry
					lost := false
					for i, l := range lines {
						if i >= from && i < to {
							data = append(data, make([]byte, len(l))...)
							lost = lost || decides(i)
							continue
						}
						data = append(data, l...)
						want = append(want, entries[i])
					}
					require.NoError(t, os.WriteFile(path, data, 0o600))
					j, got, err := Open(path)
					if lost && to < len(lines) {
						require.ErrorContains(t, err, "damaged", "lines %d to %d", from, to)
						continue
					}
					require.NoError(t, err, "lines %d to %d", from, to)
					require.Len(t, got, len(want))
					require.Equal(t, Changed(want), Changed(got))
					// The next entry is appended to what is left, and is found again.
					require.NoError(t, j.Append(Entry{Kind: Ended, Deployment: id}))
					require.NoError(t, j.Close())
					j, again, err := Open(path)
					require.NoError(t, err)
					require.Len(t, again, len(want)+1)
					require.NoError(t, j.Close())
				}
			}
		})
	}
}

// An accepted deployment is durable no sooner than its archive: a power cut may take its entry and leave what announces the archive.
func TestJournalLosesWhatWasNotAccepted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.journal")
	ended := append(sample("one"), Entry{Kind: Ended, Deployment: "one", Result: &project.Result{State: project.Live}})
	write(t, path, ended...)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	j, _, err := Open(path)
	require.NoError(t, err)
	require.NoError(t, j.Write(sample("two")[0]))
	require.NoError(t, j.Append(sample("two")[1]))
	undecided, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, j.Append(Entry{Kind: Begin, Deployment: "two", Procedure: "sync"}))
	require.NoError(t, j.Close())
	decided, err := os.ReadFile(path)
	require.NoError(t, err)
	second := bytes.IndexByte(undecided[len(before):], '\n') + 1
	for from := range second {
		damaged := bytes.Clone(undecided)
		copy(damaged[len(before)+from:], make([]byte, second-from))
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
		j, got, err := Open(path)
		require.NoError(t, err, "from byte %d", from)
		require.False(t, OpenEnded(got))
		require.Equal(t, ended, got)
		// The next entry is distinguished from it.
		require.NoError(t, j.Append(sample("three")[0]))
		require.NoError(t, j.Close())
		j, got, err = Open(path)
		require.NoError(t, err)
		require.Equal(t, sample("three")[:1], got)
		require.NoError(t, j.Close())
		// Once the tree may have changed, the loss is damage.
		require.NoError(t, os.WriteFile(path, append(damaged, decided[len(undecided):]...), 0o600))
		_, _, err = Open(path)
		require.ErrorContains(t, err, "damaged", "from byte %d", from)
	}
}

func TestJournalStartsAnewWhenItIsLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.journal")
	j, _, err := Open(path)
	require.NoError(t, err)
	defer j.Close()
	for j.size <= maxJournal {
		require.NoError(t, j.Append(Entry{Kind: Begin, Procedure: string(bytes.Repeat([]byte("x"), 64<<10))}))
	}
	require.NoError(t, j.Append(sample("two")[0]))
	_, got, err := Open(path)
	require.NoError(t, err)
	require.Len(t, got, 1)
	fi, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, fi.Size(), int64(4096))
}

// A whole journal is parsed from its last deployment on, with the result that parsing all of it has.
func TestJournalParsesTheLastDeploymentOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.journal")
	one := sample("one")
	one[2].Procedure = `"kind":"accepted"` // escaped in JSON
	for _, text := range []string{"", "one", "one two"} {
		if text == "one" {
			write(t, path, append(one, Entry{Kind: Ended, Deployment: "one"})...)
		} else if text != "" {
			write(t, path, append(sample("two"), Entry{Kind: Ended, Deployment: "two", Result: &project.Result{Reason: `{"kind":"accepted"}`}})...)
		}
		data, err := os.ReadFile(path)
		if text != "" {
			require.NoError(t, err)
		}
		at := acceptedIn(t, data)
		require.Equal(t, text == "one two", at > 0)
		all, size, end, err := readJournal(data)
		require.NoError(t, err)
		got, rest, gotEnd, err := readJournal(data[at:])
		require.NoError(t, err)
		require.Equal(t, lastOf(all), got)
		require.Equal(t, size, rest+int64(at))
		require.Equal(t, end, gotEnd)
		for i := range data { // all of it is parsed if a byte of any line is wrong
			damaged := bytes.Clone(data)
			damaged[i] ^= 0x20
			require.Zero(t, acceptedIn(t, damaged), "byte %d", i)
		}
		require.Zero(t, acceptedIn(t, data[:max(len(data)-1, 0)]))
	}
}

func acceptedIn(t *testing.T, data []byte) int {
	t.Helper()
	at, err := lastAccepted(bytes.NewReader(data))
	require.NoError(t, err)
	return int(at)
}

// BenchmarkOpen opens a journal that is about to be started anew.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "app.journal")
	j, _, err := Open(path)
	require.NoError(b, err)
	at := time.Now()
	for j.size <= maxJournal {
		for _, e := range append(sample("one"), Entry{Kind: Ended, Result: &project.Result{Started: at, Ended: at, Timings: make([]project.Timing, 20)}}) {
			e.Time = at
			require.NoError(b, j.Write(e))
		}
	}
	require.NoError(b, j.Close())
	for b.Loop() {
		j, entries, err := Open(path)
		require.NoError(b, err)
		require.Len(b, entries, 4)
		require.NoError(b, j.Close())
	}
}

func FuzzReadJournal(f *testing.F) {
	path := filepath.Join(f.TempDir(), "seed.journal")
	j, _, err := Open(path)
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
		entries, size, end, err := readJournal(data)
		if err != nil {
			return
		}
		require.LessOrEqual(t, size, int64(len(data)))
		again, size2, end2, err := readJournal(data[:size])
		require.NoError(t, err)
		require.Equal(t, size, size2)
		require.Equal(t, end, end2)
		require.Len(t, again, len(entries))
		if at := acceptedIn(t, data); at > 0 {
			last, rest, end3, err := readJournal(data[at:])
			require.NoError(t, err)
			require.Equal(t, lastOf(entries), last)
			require.Equal(t, size, rest+int64(at))
			require.Equal(t, end, end3)
		}
	})
}
