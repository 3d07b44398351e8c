package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"corpus-git/git/pack"

	"github.com/go-git/go-git/v5/plumbing"
)

// Counts describes a repository's own objects folder, without alternates and quarantines.
type Counts struct {
	// Packs counts packs, Kept those of them that maintenance does not change.
	Packs, Kept int
	PackBytes   int64
	// Objects is the sum of the packs' objects: one that is in two packs counts twice.
	Objects    int
	Loose      int
	LooseBytes int64
	// Left counts files that a crash left: temporary files older than a day, and indexes without a pack.
	Left int
}

// Add adds the counts of another repository.
func (c *Counts) Add(o Counts) {
	c.Packs += o.Packs
	c.Kept += o.Kept
	c.PackBytes += o.PackBytes
	c.Objects += o.Objects
	c.Loose += o.Loose
	c.LooseBytes += o.LooseBytes
	c.Left += o.Left
}

// storedPack is a pack of the repository's own, as maintenance sees it.
type storedPack struct {
	*pack.Pack
	time time.Time
	// kept reports that a file beside the pack excludes it from maintenance: .keep is a user's request, .promisor and .mtimes hold what a
	// pack of ours can't (gitrepository-layout(5), git-pack-objects(1)).
	kept bool
}

// leftAge is the age from which a temporary file counts as a leftover.
const leftAge = 24 * time.Hour

type looseFile struct {
	hash plumbing.Hash
	time time.Time
	size int64
}

// inventory lists what maintenance works on.
type inventory struct {
	packs []storedPack
	loose []looseFile
	left  []string
}

func (v *inventory) counts() Counts {
	c := Counts{Packs: len(v.packs), Loose: len(v.loose), Left: len(v.left)}
	for _, p := range v.packs {
		if p.kept {
			c.Kept++
		}
		c.PackBytes += p.Size()
		c.Objects += p.Count()
	}
	for _, l := range v.loose {
		c.LooseBytes += l.size
	}
	return c
}

func (db *DB) inventory() (*inventory, error) {
	if err := db.main.rescan(); err != nil {
		return nil, err
	}
	v := &inventory{}
	now := db.opt.Now()
	dir := filepath.Join(db.main.dir, "pack")
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	there := map[string]bool{}
	for _, e := range list {
		there[e.Name()] = true
	}
	for _, e := range list {
		base, isIdx := strings.CutSuffix(e.Name(), ".idx")
		switch {
		case isIdx && strings.HasPrefix(base, "pack-") && !there[base+".pack"]:
			// The index is published last and removed last: without a pack it is a leftover.
			v.left = append(v.left, filepath.Join(dir, e.Name()))
		case strings.HasPrefix(e.Name(), "pack-") && (filepath.Ext(e.Name()) == ".pack" || filepath.Ext(e.Name()) == ".rev") && !there[strings.TrimSuffix(e.Name(), filepath.Ext(e.Name()))+".idx"] && older(e, now, leftAge):
			v.left = append(v.left, filepath.Join(dir, e.Name())) // staged by a push that a crash ended
		case strings.HasPrefix(e.Name(), "tmp_") && older(e, now, leftAge):
			v.left = append(v.left, filepath.Join(dir, e.Name()))
		}
	}
	for _, p := range *db.main.packs.Load() {
		st, err := os.Stat(p.Path())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		base := strings.TrimSuffix(filepath.Base(p.Path()), ".pack")
		kept := there[base+".keep"] || there[base+".promisor"] || there[base+".mtimes"]
		v.packs = append(v.packs, storedPack{p, st.ModTime(), kept})
	}
	return v, db.listLoose(v, now)
}

func (db *DB) listLoose(v *inventory, now time.Time) error {
	fans, err := os.ReadDir(db.main.dir)
	if err != nil {
		return err
	}
	for _, fan := range fans {
		if !fan.IsDir() {
			if strings.HasPrefix(fan.Name(), "tmp_obj_") && older(fan, now, leftAge) {
				v.left = append(v.left, filepath.Join(db.main.dir, fan.Name()))
			}
			continue
		}
		if len(fan.Name()) != 2 || strings.Trim(fan.Name(), "0123456789abcdef") != "" {
			continue
		}
		list, err := os.ReadDir(filepath.Join(db.main.dir, fan.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range list {
			if strings.HasPrefix(e.Name(), "tmp_obj_") && older(e, now, leftAge) {
				v.left = append(v.left, filepath.Join(db.main.dir, fan.Name(), e.Name()))
				continue
			}
			if name := fan.Name() + e.Name(); plumbing.IsHash(name) {
				st, err := e.Info()
				if err != nil {
					continue // removed meanwhile
				}
				v.loose = append(v.loose, looseFile{plumbing.NewHash(name), st.ModTime(), st.Size()})
			}
		}
	}
	return nil
}

func older(e fs.DirEntry, now time.Time, age time.Duration) bool {
	st, err := e.Info()
	return err == nil && now.Sub(st.ModTime()) > age
}

// geometricFactor is how many times larger each pack is than all smaller ones together, as in git repack --geometric=2.
const geometricFactor = 2

// rollUp returns how many packs, given their numbers of objects in ascending order, must become one so that each remaining pack holds at
// least geometricFactor times the objects of the next smaller one (git-repack(1), --geometric). An object is then rewritten a logarithmic
// number of times.
func rollUp(counts []int) int {
	if len(counts) < 2 {
		return 0
	}
	n := len(counts) - 1
	for ; n > 0; n-- {
		if counts[n] < geometricFactor*counts[n-1] {
			break
		}
	}
	if n == 0 {
		return 0
	}
	n++ // the larger of the pair that breaks the progression is included
	sum := 0
	for _, c := range counts[:n] {
		sum += c
	}
	for ; n < len(counts) && counts[n] < geometricFactor*sum; n++ {
		sum += counts[n]
	}
	return n
}
