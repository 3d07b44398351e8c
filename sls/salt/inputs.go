package salt

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"corpus-git/sls"
	"corpus-git/sls/fileroot"
)

// moduleDirs are the folders of the file roots that saltutil.sync_all reads.
// Source: Salt documentation, "salt.modules.saltutil".
var moduleDirs = [...]string{
	"_beacons", "_clouds", "_engines", "_executors", "_grains", "_log_handlers", "_matchers", "_modules", "_output",
	"_outputters", "_pillar", "_proxy", "_renderers", "_returners", "_sdb", "_serializers", "_states", "_thorium",
	"_tops", "_utils",
}

// inputDigest returns a digest of what a Salt process is made from: its configuration, the pillar, and the custom modules. A
// process is kept as long as the digest stays the same. modules reports whether there are custom modules to sync.
func inputDigest(in *sls.Input, dir string) (digest string, modules bool, err error) {
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
