package saltproc

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"corpus-git/sls"
	"corpus-git/sls/fileroot"
)

// moduleDirs are the folders of the file roots that saltutil.sync_all looks at.
// Source: Salt documentation, "salt.modules.saltutil".
var moduleDirs = [...]string{
	"_beacons", "_clouds", "_engines", "_executors", "_grains", "_log_handlers", "_matchers", "_modules", "_output",
	"_outputters", "_pillar", "_proxy", "_renderers", "_returners", "_sdb", "_serializers", "_states", "_thorium",
	"_tops", "_utils",
}

// onDisk gives an input whose file roots all lie on disk. A root that does not, such as the tree of a pushed commit
// while it is planned, is copied below dir, each time anew.
func onDisk(in *sls.Input, dir string) (*sls.Input, error) {
	out := *in
	out.Roots = append(fileroot.Roots(nil), in.Roots...)
	for i, r := range out.Roots {
		if r.Dir != "" {
			continue
		}
		to := filepath.Join(dir, "trees", strconv.Itoa(i))
		if err := os.RemoveAll(to); err != nil {
			return nil, err
		}
		if err := copyTree(r.FS, to); err != nil {
			return nil, fmt.Errorf("copy the file root %s: %w", r.Mount, err)
		}
		out.Roots[i].Dir = to
	}
	return &out, nil
}

func copyTree(from fs.FS, to string) error {
	return fs.WalkDir(from, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := fs.Stat(from, p) // follows links
		if errors.Is(err, fs.ErrNotExist) && p != "." {
			return nil // a link to nowhere: Salt does not see it either
		}
		if err != nil {
			return err
		}
		at := filepath.Join(to, filepath.FromSlash(p))
		switch {
		case st.IsDir() && d.IsDir():
			return os.MkdirAll(at, 0o700)
		case st.Mode().IsRegular():
			return copyFile(from, p, at, st.Mode().Perm())
		}
		return nil
	})
}

func copyFile(from fs.FS, p, to string, mode fs.FileMode) (err error) {
	r, err := from.Open(p)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if _, err := io.Copy(w, r); err != nil {
		return err
	}
	return w.Chmod(mode | 0o400) // mode: keep copies it
}

// basis is a digest of what a Salt process is made from: its configuration, the pillar, and the custom modules. A
// process lives as long as it stays the same. modules tells whether there are any to sync.
func basis(in *sls.Input, dir string) (digest string, modules bool, err error) {
	h := sha256.New()
	put := func(name string, data []byte) { fmt.Fprintf(h, "%q %d\n%s", name, len(data), data) }
	for _, name := range []string{"conf/minion", "pillar/top.sls", "pillar/corpus.sls"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", false, err
		}
		put(name, data)
	}
	for _, name := range moduleDirs {
		err := in.Roots.Walk(name, func(rel string, f fileroot.File, d fs.DirEntry) error {
			if d.IsDir() {
				return nil
			}
			modules = true
			data, err := f.Read()
			if err != nil {
				data = []byte(err.Error())
			}
			put(name+"/"+rel, data)
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", false, err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), modules, nil
}
