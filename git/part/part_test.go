package part_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/git/object"
	"corpus-git/git/part"
	"corpus-git/git/store"
	"corpus-git/git/tree"
)

// commit makes a commit of files, by their paths; a text that begins with -> is a link.
func commit(t *testing.T, m *part.Memory, files map[string]string) plumbing.Hash {
	var dir func(prefix string) plumbing.Hash
	dir = func(prefix string) plumbing.Hash {
		items := map[string]tree.Item{}
		for name, text := range files {
			rest, ok := strings.CutPrefix(name, prefix)
			if !ok {
				continue
			}
			if first, _, below := strings.Cut(rest, "/"); below {
				if _, done := items[first]; !done {
					items[first] = tree.Item{Name: first, Mode: object.ModeTree, Hash: dir(prefix + first + "/")}
				}
				continue
			}
			mode := uint32(0o100644)
			if to, ok := strings.CutPrefix(text, "->"); ok {
				text, mode = to, object.ModeSymlink
			}
			h, err := m.Put(plumbing.BlobObject, []byte(text))
			require.NoError(t, err)
			items[rest] = tree.Item{Name: rest, Mode: mode, Hash: h}
		}
		list := make([]tree.Item, 0, len(items))
		for _, i := range items {
			list = append(list, i)
		}
		slices.SortFunc(list, func(a, b tree.Item) int { return object.CompareNames(a.Name, a.Mode, b.Name, b.Mode) })
		var out bytes.Buffer
		for _, i := range list {
			fmt.Fprintf(&out, "%o %s\x00", i.Mode, i.Name)
			out.Write(i.Hash[:])
		}
		h, err := m.Put(plumbing.TreeObject, out.Bytes())
		require.NoError(t, err)
		return h
	}
	h, err := m.Put(plumbing.CommitObject, fmt.Appendf(nil, "tree %s\nparent %s\nauthor A <a@x> 1000000000 +0000\ncommitter C <c@x> 1000000001 +0100\n\nOne\n", dir(""), strings.Repeat("1", 40)))
	require.NoError(t, err)
	return h
}

// seen lists what can be read below a folder of a commit, links followed.
func seen(t *testing.T, objs store.Reader, of plumbing.Hash, folder string) (out []string) {
	all, err := tree.FS(t.Context(), objs, of, "")
	require.NoError(t, err)
	var walk func(p string, depth int)
	walk = func(p string, depth int) {
		st, err := fs.Stat(all, p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			out = append(out, p+" is not there")
			return
		case err != nil && strings.Contains(err.Error(), "too many"):
			out = append(out, p+" is a loop")
			return
		}
		require.NoError(t, err, p)
		if !st.IsDir() {
			text, err := fs.ReadFile(all, p)
			require.NoError(t, err)
			out = append(out, p+" "+string(text))
			return
		}
		list, err := fs.ReadDir(all, p)
		require.NoError(t, err)
		for _, e := range list {
			at := p + "/" + e.Name()
			if e.Type()&fs.ModeSymlink != 0 {
				to, err := fs.ReadLink(all, at)
				require.NoError(t, err)
				if out = append(out, at+" -> "+to); depth > 2 || strings.Trim(to, "./") == "" {
					continue // the top, or a loop
				}
				walk(at, depth+1)
				continue
			}
			walk(at, depth)
		}
	}
	walk(folder, 0)
	return out
}

// files lists the paths of files and links of a commit.
func files(t *testing.T, objs store.Reader, of plumbing.Hash) string {
	all, err := tree.FS(t.Context(), objs, of, "")
	require.NoError(t, err)
	var out []string
	require.NoError(t, fs.WalkDir(all, ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, p)
		}
		return err
	}))
	return strings.Join(out, " ")
}

// A part shows the same files below the folder as the commit, and has nothing that these do not need.
func TestNeeded(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a folder":           {map[string]string{".salt/a": "A", ".salt/b/c": "C", "secret": "no", ".saltier": "no"}, ".salt/a .salt/b/c"},
		"links in it":        {map[string]string{".salt/a": "->b/c", ".salt/b/c": "C", ".salt/b/d": "->../a", "secret": "no"}, ".salt/a .salt/b/c .salt/b/d"},
		"a file elsewhere":   {map[string]string{".salt/a": "->../lib/x", "lib/x": "X", "lib/y": "no"}, ".salt/a lib/x"},
		"a folder elsewhere": {map[string]string{".salt/a": "->../lib/x", "lib/x/1": "1", "lib/x/2": "->../y", "lib/y": "Y", "lib/z": "no"}, ".salt/a lib/x/1 lib/x/2 lib/y"},
		"by other links":     {map[string]string{".salt/a": "->../one/x", "one": "->two", "two/x": "->../three", "three/t": "T", "two/y": "no"}, ".salt/a one three/t two/x"},
		"through a folder":   {map[string]string{".salt/a": "->../lib/../x", "lib/y": "no", "x": "X"}, ".salt/a x"},
		"the top":            {map[string]string{".salt/a": "->..", ".salt/b": "->../.", "secret": "no"}, ".salt/a .salt/b"},
		"out of the commit":  {map[string]string{".salt/a": "->../../x", ".salt/b": "->/etc/passwd", "x": "no", "etc/passwd": "no"}, ".salt/a .salt/b"},
		"nowhere":            {map[string]string{".salt/a": "->../x/y", ".salt/b": "->c", "x": "no"}, ".salt/a .salt/b"},
		"a loop":             {map[string]string{".salt/a": "->../b", "b": "->.salt/a", ".salt/c": "->c"}, ".salt/a .salt/c b"},
		"itself a link":      {map[string]string{".salt": "->deploy/salt", "deploy/salt/a": "->../x", "deploy/x": "X", "deploy/y": "no"}, ".salt deploy/salt/a deploy/x"},
		"not there":          {map[string]string{"x": "no"}, ""},
		"a file":             {map[string]string{".salt": "S", "x": "no"}, ".salt"},
	} {
		t.Run(name, func(t *testing.T) {
			var whole, made part.Memory
			of := commit(t, &whole, c.files)
			share, err := part.Needed(t.Context(), &whole, of, ".salt")
			require.NoError(t, err)
			h, err := part.Make(&whole, of, share, made.Put)
			require.NoError(t, err)
			both := store.Union{&made, &whole}
			require.Equal(t, c.want, files(t, both, h))
			require.Equal(t, seen(t, &whole, of, ".salt"), seen(t, both, h, ".salt"))
			again, err := part.Make(&whole, of, share, made.Put)
			require.NoError(t, err)
			require.Equal(t, h, again)
			_, text, err := made.Get(h)
			require.NoError(t, err)
			require.Regexp(t, `^tree [0-9a-f]{40}\nauthor A <a@x> 1000000000 \+0000\ncommitter C <c@x> 1000000001 \+0100\n\nPart of `+of.String()+`\n$`, string(text))
		})
	}
}

func TestMakeByPath(t *testing.T) {
	var m part.Memory
	of := commit(t, &m, map[string]string{"init.sls": "i", "roles/web.sls": "w", "roles/db.sls": "d", "nodes/a.sls": "a"})
	h, err := part.Make(&m, of, func(p string) part.Share {
		return map[string]part.Share{"init.sls": part.Whole, "roles": part.Some, "roles/web.sls": part.Whole, "nodes": part.Some}[p]
	}, m.Put)
	require.NoError(t, err)
	require.Equal(t, "init.sls roles/web.sls", files(t, &m, h))
}
