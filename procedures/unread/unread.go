// Package unread finds the keys of a configuration that no file reads. When in doubt a key counts as read.
package unread

import (
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/sls/makina"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Of returns the keys in found that nothing in the two commits reads. texts are the files of the recipe.
func Of(found []project.Unread, code, pillar fs.FS, texts []string) []project.Unread {
	r := newReaders(code, texts)
	left := slices.DeleteFunc(slices.Clone(found), r.reads)
	if len(left) > 0 {
		r.widen(code, pillar)
	}
	return slices.DeleteFunc(left, r.reads)
}

// readers are the files that may read a key of cfg.
type readers struct {
	words map[string]bool
	texts []string
	// whole: something reads all of data, or all of cfg.
	whole bool
}

// readsWhole matches what reads a mapping as a whole: a loop, a filter, an argument.
var readsWhole = regexp.MustCompile(`\b(data|cfg|ms_project)\b['"]?[\])]*\s*(\||\)|,|%\}|\}\}|\.(items|iteritems|keys|values|copy|update)\()`)

// Limits on what is searched for readers.
const (
	maxReaders     = 32 << 20
	maxReaderFiles = 5000
)

// newReaders searches the recipe, without PILLAR.sample.
func newReaders(code fs.FS, texts []string) *readers {
	r := &readers{words: map[string]bool{}}
	sample := ""
	if b, err := fs.ReadFile(code, path.Join(layout.SaltDir, layout.PillarSample)); err == nil {
		sample = string(b)
	}
	for _, text := range texts {
		if text == sample {
			r.references(text)
			continue
		}
		r.add(text)
		r.whole = r.whole || readsWhole.MatchString(text)
	}
	return r
}

// widen also searches the rest of the commit, the files that replace makina-states, and references in values.
func (r *readers) widen(code, pillar fs.FS) {
	left, files := int64(maxReaders), maxReaderFiles
	walk := func(tree fs.FS, skip string, take func(string)) {
		if tree == nil {
			return
		}
		_ = fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil
			case d.IsDir() && (p == skip || d.Name() == ".git"):
				return fs.SkipDir
			case !d.Type().IsRegular():
				return nil
			}
			fi, err := d.Info()
			if files--; err != nil || fi.Size() > 1<<20 {
				return nil
			}
			if left -= fi.Size(); left < 0 || files < 0 {
				r.whole, left, files = true, 0, 0
				return fs.SkipAll
			}
			if text, err := fs.ReadFile(tree, p); err == nil {
				take(string(text))
			}
			return nil
		})
	}
	walk(code, layout.SaltDir, r.add)
	walk(makina.Root().FS, "", r.add)
	walk(pillar, "", r.references)
}

// reads reports whether one of the files may read a key.
func (r *readers) reads(u project.Unread) bool {
	return u.Keys[0] == "data" && u.Near == "" && r.whole || r.read(u.Keys[len(u.Keys)-1])
}

// add adds the words of a text that may read keys.
func (r *readers) add(text string) {
	r.texts = append(r.texts, text)
	for word := range strings.FieldsFuncSeq(text, notWord) {
		r.words[word] = true
	}
}

func notWord(c rune) bool { return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) }

var referenced = regexp.MustCompile(`\{[A-Za-z0-9_.-]+\}`)

// references adds the {key} references in values.
func (r *readers) references(text string) {
	for _, key := range referenced.FindAllString(text, -1) {
		r.words[strings.Trim(key, "{}")] = true
	}
}

// read reports whether a key is in one of the files.
func (r *readers) read(key string) bool {
	if !strings.ContainsFunc(key, notWord) {
		return r.words[key]
	}
	for _, text := range r.texts {
		if strings.Contains(text, key) {
			return true
		}
	}
	return r.words[key]
}
