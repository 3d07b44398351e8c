package changed

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// mapped opens a file, maps it and writes to the mapping.
func mapped(path string) (over func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err == nil {
		b[0] = 'T'
	}
	return func() error { return unix.Munmap(b) }, errors.Join(err, f.Close())
}

// BeginAll names content that was written, and what is gone, besides all that Begin does.
func TestWhatIsWrittenOrGone(t *testing.T) {
	const several = "several names"
	for name, c := range map[string]struct {
		before func(in, out string) error
		do     func(in, out string) error
		want   []string
		why    string
	}{
		"nothing":     {do: func(string, string) error { return nil }},
		"read":        {do: func(in, _ string) error { _, err := os.ReadFile(in + "/a"); return err }},
		"written":     {do: func(in, _ string) error { return os.WriteFile(in+"/sub/f", []byte("other"), 0o644) }, want: []string{"sub/f"}},
		"truncated":   {do: func(in, _ string) error { return os.Truncate(in+"/sub/f", 1) }, want: []string{"sub/f"}},
		"a mode":      {do: func(in, _ string) error { return os.Chmod(in+"/a", 0o600) }, want: []string{"a"}},
		"new":         {do: func(in, _ string) error { return os.WriteFile(in+"/sub/new", []byte("x"), 0o600) }, want: []string{"sub/new"}},
		"removed":     {do: func(in, _ string) error { return os.Remove(in + "/sub/f") }, want: []string{"sub/f"}},
		"moved out":   {do: func(in, out string) error { return os.Rename(in+"/sub", out+"/sub") }, want: []string{"sub"}},
		"moved":       {do: func(in, _ string) error { return os.Rename(in+"/sub/f", in+"/g") }, want: []string{"sub/f", "g"}},
		"all removed": {do: func(in, _ string) error { return errors.Join(os.RemoveAll(in+"/sub"), os.RemoveAll(in+"/other")) }, want: []string{"sub", "other"}},
		"removed, in a folder that is moved": {do: func(in, _ string) error {
			return errors.Join(os.Remove(in+"/sub/f"), os.Rename(in+"/sub", in+"/other/sub"))
		}, want: []string{"other/sub/f", "other/sub", "sub"}},
		"written by a mapping that has ended": {do: func(in, _ string) error {
			over, err := mapped(in + "/a")
			if err != nil {
				return err
			}
			return over()
		}, want: []string{"a"}},
		"written by a descriptor from before": {
			before: func(in, out string) error { return os.Link(in+"/b", out+"/b") },
			do: func(_, out string) error {
				return errors.Join(os.WriteFile(out+"/b", []byte("x"), 0o600), os.Remove(out+"/b"))
			},
			want: []string{"b"},
		},
		"written by a name outside": {
			before: func(in, out string) error { return os.Link(in+"/b", out+"/b") },
			do:     func(_, out string) error { return os.WriteFile(out+"/b", []byte("x"), 0o600) },
			why:    several,
		},
		"elsewhere": {do: func(_, out string) error {
			return errors.Join(os.WriteFile(out+"/x", []byte("y"), 0o600), os.RemoveAll(out+"/box"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				in, out := world(t)
				if c.before != nil {
					require.NoError(t, c.before(in, out))
				}
				w, err := New(1).BeginAll(in)
				if err != nil {
					require.ErrorIs(t, err, ErrUnknown)
					return
				}
				defer w.Close()
				inodes := inodesOf(t, in)
				require.NoError(t, c.do(in, out))
				var got []string
				if err = w.End(); elsewhere(err) {
					continue
				}
				if err == nil {
					got, err = w.In(in, slices.Values(inodes))
				}
				if c.why != "" {
					require.ErrorContains(t, err, c.why)
					return
				}
				require.NoError(t, err)
				for _, p := range c.want {
					require.Contains(t, got, p)
				}
				if c.want == nil {
					require.Empty(t, got)
				}
				return
			}
			t.Skip("the machine is too busy to tell")
		})
	}
}
