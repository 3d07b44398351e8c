package archive_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"corpus-git/archive"
)

// expired is a site whose oldest archive has expired, in a process that looks after archives.
func expired(t *testing.T) *site {
	s := newSite(t)
	s.today = true
	s.s.Tend()
	exotic(t, s.live(""))
	for n, content := range map[string]string{
		"long": strings.Repeat("long ", 30_000), "grows": "1", "was hollow": "", "gets-hollow": strings.Repeat("x", 100_000), "mode": "m", "noted": "n", "same": "s", "backed-up": "old",
	} {
		s.write(n, content)
	}
	f, err := os.Create(s.live("was hollow"))
	require.NoError(t, err)
	require.NoError(t, f.Truncate(1<<20))
	require.NoError(t, f.Close())
	_ = unix.Setxattr(s.live("noted"), "user.note", []byte("gone later"), 0)
	settle()
	s.good()
	s.good()
	require.True(t, s.rotate(archive.Policy{Keep: 1}).Recycled)
	require.Positive(t, s.s.Spare())
	require.DirExists(t, s.next())
	return s
}

func (s *site) next() string { return filepath.Join(s.p.Archives(), ".tmp-next-spare") }

// change changes the live tree in each way that a file of the same name can be changed.
func (s *site) change() {
	s.write("long", "short")
	s.write("grows", strings.Repeat("content\n", 10_000))
	s.write("was hollow", strings.Repeat("y", 100_000))
	f, err := os.Create(s.live("gets-hollow"))
	require.NoError(s.t, err)
	_, err = f.WriteAt([]byte("end"), 1<<20)
	require.NoError(s.t, err)
	require.NoError(s.t, f.Close())
	require.NoError(s.t, os.Chmod(s.live("mode"), 0o4711))
	s.write("backed-up", "new")
	s.write("plain", "no attributes, no owner")
	_ = unix.Removexattr(s.live("noted"), "user.note")
	_ = unix.Setxattr(s.live("grows"), "user.note", []byte("new"), 0)
	require.NoError(s.t, os.Remove(s.live("hard1")))
	s.write("hard1", "alone")
	require.NoError(s.t, os.Remove(s.live("link")))
	s.write("link", "a file")
	require.NoError(s.t, os.Remove(s.live("fifo")))
	s.write("fifo", "a file")
	settle()
}

// The files of an expired tree are written to where they are, by Prepare or by the archive itself, and the archive is exact. A backup made of hard links keeps its content.
func TestAnExpiredTreeIsWrittenTo(t *testing.T) {
	for name, prepare := range map[string]func(*site) (bool, error){
		"prepared":       func(s *site) (bool, error) { return s.s.Prepare(context.Background(), archive.Policy{Keep: 1}) },
		"compacted":      func(s *site) (bool, error) { return s.compact(archive.Policy{Keep: 1}).Spared, nil },
		"by the archive": nil,
	} {
		t.Run(name, func(t *testing.T) {
			s := expired(t)
			backup := filepath.Join(s.p.Archives(), "backup")
			require.NoError(t, os.Link(filepath.Join(s.next(), "project/backed-up"), backup))
			before := inodes(t, s.next())
			for ino, p := range before {
				if st, err := os.Lstat(p); err != nil || !st.Mode().IsRegular() {
					delete(before, ino)
					continue
				}
				f, err := os.Open(p) // so that no other file gets its number
				require.NoError(t, err)
				defer func() { _ = f.Close() }()
			}
			s.change()
			if prepare != nil {
				made, err := prepare(s)
				require.NoError(t, err)
				require.True(t, made)
				require.Positive(t, s.s.Spare())
				require.NoDirExists(t, s.next())
			}
			a := s.make()
			s.requireExact(a)
			require.Equal(t, prepare != nil, a.Made.Copied == 0)
			after := map[string]bool{}
			for ino, p := range inodes(t, a.Path) {
				if _, ok := before[ino]; ok {
					after[strings.TrimPrefix(p, a.Path+"/")] = true
				}
			}
			for _, n := range []string{"manifest", "deployment.json", "project/long", "project/grows", "project/was hollow", "project/mode", "project/noted", "project/same", "project/plain"} {
				require.True(t, after[n], n)
			}
			for _, n := range []string{"project/gets-hollow", "project/backed-up"} {
				require.False(t, after[n], n)
			}
			kept, err := os.ReadFile(backup)
			require.NoError(t, err)
			require.Equal(t, "old", string(kept))
			require.NoError(t, os.Remove(backup))
			require.NoError(t, s.s.SetVerdict(a.ID, archive.Good))
			s.requireNoLeftovers()
		})
	}
}

// A process that looks after no archives leaves a spare tree that the next one finds; the incomplete one of a process that ended is removed.
func TestAnExpiredTreeOfAnEarlierProcess(t *testing.T) {
	s := expired(t)
	s.use(archive.Config{Reserve: noReserve})
	require.NoError(t, s.s.Sweep())
	require.NoError(t, s.s.Wait())
	s.requireNoLeftovers()
	require.Zero(t, s.s.Spare())
	s.good()
	require.True(t, s.rotate(archive.Policy{Keep: 1}).Recycled)
	require.Positive(t, s.s.Spare())
}

// What a hook put into an archive does not become part of the spare tree.
func TestAnExpiredArchiveWithADump(t *testing.T) {
	s := newSite(t)
	s.s.Tend()
	s.write("a", "1")
	settle()
	a := s.good()
	require.NoError(t, os.WriteFile(filepath.Join(a.Path, "dump"), []byte("d"), 0o600))
	s.good()
	require.True(t, s.rotate(archive.Policy{Keep: 1}).Recycled)
	require.Positive(t, s.s.Spare())
	b := s.make()
	s.requireExact(b)
	require.NoFileExists(t, filepath.Join(b.Path, "dump"))
}

// A limit of size counts the expired tree, before and after it is complete, and removes it.
func TestAnExpiredTreeBeyondTheLimit(t *testing.T) {
	for name, run := range map[string]func(*site) error{
		"prepare": func(s *site) error {
			_, err := s.s.Prepare(context.Background(), archive.Policy{Keep: 1, MaxBytes: 1})
			return err
		},
		"compact": func(s *site) error {
			_, err := s.s.Compact(context.Background(), archive.Policy{Keep: 1, MaxBytes: 1})
			return err
		},
		"squeeze": func(s *site) error {
			_, err := s.s.Rotate(archive.Policy{Keep: 1, Squeeze: true})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := expired(t)
			require.NoError(t, run(s))
			require.NoError(t, s.s.Wait())
			require.NoDirExists(t, s.next())
			require.Zero(t, s.s.Spare())
			s.requireExact(s.make())
		})
	}
}
