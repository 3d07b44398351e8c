package fsck

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/git/object"
)

// alike compares the check of a tree by its difference from another with the check of all of it.
func alike(t *testing.T, base, data []byte) error {
	t.Helper()
	links := func(into map[plumbing.Hash]bool) Callbacks {
		return Callbacks{Link: func(h plumbing.Hash, _ plumbing.ObjectType) { into[h] = true }}
	}
	got, want := map[plumbing.Hash]bool{}, map[plumbing.Hash]bool{}
	if Check(plumbing.TreeObject, someHash, base, links(got)) != nil {
		return nil
	}
	err := Check(plumbing.TreeObject, someHash, data, links(want))
	bounds, got2 := CheckTree(someHash, data, base, TreeBounds(base), links(got))
	require.Equal(t, err == nil, got2 == nil, "%v and %v, of %q after %q", err, got2, data, base)
	if err == nil {
		require.True(t, slices.Equal(TreeBounds(data), bounds))
		for h := range want {
			require.True(t, got[h], "every link is seen")
		}
	}
	return err
}

func TestCheckTreeSeesWhatCheckSees(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	names := []string{"a", "a-", "a-b", "a.b", "a0", "ab", "b", "b.c", "c", ".git", "cc", "d", "e/f", "z"}
	good, bad := 0, 0
	for range 20000 {
		type named struct {
			mode, name string
			hash       byte
		}
		var list []named
		for _, n := range names {
			if n == ".git" || n == "e/f" || rnd.Intn(3) == 0 {
				continue
			}
			list = append(list, named{[]string{"100644", "40000", "120000", "160000"}[rnd.Intn(4)], n, byte(1 + rnd.Intn(3))})
		}
		format := func(list []named) []byte {
			var b bytes.Buffer
			for _, e := range list {
				fmt.Fprintf(&b, "%s %s\x00", e.mode, e.name)
				b.Write(bytes.Repeat([]byte{e.hash}, 20))
			}
			return b.Bytes()
		}
		order := func(list []named) {
			slices.SortFunc(list, func(a, b named) int {
				return object.Compare(&object.Entry{Mode: modeOf(a.mode), Name: []byte(a.name)}, &object.Entry{Mode: modeOf(b.mode), Name: []byte(b.name)})
			})
		}
		order(list)
		next := slices.Clone(list)
		for range 1 + rnd.Intn(3) {
			e := named{[]string{"100644", "40000", "120000"}[rnd.Intn(3)], names[rnd.Intn(len(names))], byte(rnd.Intn(4))}
			switch k := rnd.Intn(len(next) + 1); {
			case rnd.Intn(3) == 0 && k < len(next):
				next = slices.Delete(next, k, k+1)
			case rnd.Intn(2) == 0 && k < len(next):
				next[k].hash = e.hash
			default:
				next = slices.Insert(next, k, e)
			}
		}
		if rnd.Intn(4) > 0 {
			order(next)
		}
		if alike(t, format(list), format(next)) == nil {
			good++
		} else {
			bad++
		}
	}
	require.Greater(t, good, 3000)
	require.Greater(t, bad, 3000)
}

func modeOf(s string) (m uint32) {
	for _, c := range s {
		m = m<<3 | uint32(c-'0')
	}
	return m
}

func FuzzCheckTree(f *testing.F) {
	f.Add(treeOf(line{"100644", "a"}, line{"40000", "b"}), treeOf(line{"100644", "a"}, line{"100644", "aa"}, line{"40000", "b"}))
	f.Add(treeOf(line{"100644", "a"}, line{"100644", "a-b"}), treeOf(line{"100644", "a"}, line{"100644", "a-b"}, line{"40000", "a"}))
	f.Fuzz(func(t *testing.T, base, data []byte) { _ = alike(t, base, data) })
}
