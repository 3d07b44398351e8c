package procedures

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"corpus-git/archive"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
)

// synced is what is known of the trees right after release-sync: what the archive's walk saw of them, and which files were written since. With it
// the permissions that come next need not look at each file again (ADR 13).
type synced struct {
	look *archive.Look
	// touched are the paths that were written in each tree, by the tree's name.
	touched map[string][]string
}

// takeSynced gives what release-sync left, once, where it is fresh enough and nothing else ran.
func (e *Env) takeSynced() *synced {
	s := e.synced
	e.synced = nil
	if s == nil || !e.fresh(s.look) {
		return nil
	}
	return s
}

// errAsk: an entry can't be judged by what was seen.
var errAsk = errors.New("not known")

// partOf gives the part of a tree that has to be walked, and how many entries outside of it are right by what was seen. It is nil, and
// the whole tree must be walked, where anything is wrong or not known.
func (s *synced) partOf(t permTree) (part *permPart, right int64) {
	if s == nil || (t.name != layout.ArchivedTree && t.name != layout.ArchivedPillar) {
		return nil, 0
	}
	touched, told := s.touched[t.name]
	if !told {
		return nil, 0
	}
	part = &permPart{}
	part.add(".git") // the checkout writes there as it likes
	for _, p := range touched {
		part.add(p)
	}
	for path, e := range s.look.Tree(t.name) {
		if (!e.IsDir() && !e.IsRegular()) || part.has(path) {
			continue
		}
		node, rule := t.rules, t.rules.rule
		if t.rules.sub != nil {
			for el := range strings.SplitSeq(path, "/") {
				node, rule = node.at(el, rule)
			}
		}
		want, err := rule.want(path[strings.LastIndexByte(path, '/')+1:], vfs.Stat{Mode: e.Mode, UID: e.UID, GID: e.GID}, func() ([]vfs.Xattr, error) { return nil, errAsk })
		if err != nil || !want.nothing() {
			return nil, 0
		}
		right++
	}
	return part, right
}

// permPart is a part of a tree: a name with all below it, or with some of what lies in it. nil is everything.
type permPart struct {
	all bool
	sub map[string]*permPart
}

func (p *permPart) add(path string) {
	for el := range strings.SplitSeq(path, "/") {
		if p.sub == nil {
			p.sub = map[string]*permPart{}
		}
		if p.sub[el] == nil {
			p.sub[el] = &permPart{}
		}
		p = p.sub[el]
	}
	p.all = true
}

// has reports whether a path is walked with the part.
func (p *permPart) has(path string) bool {
	for el := range strings.SplitSeq(path, "/") {
		if p.all {
			return true
		}
		if p = p.sub[el]; p == nil {
			return false
		}
	}
	return true
}

// at goes one name down; nil, everything, below what is walked whole.
func (p *permPart) at(name string) *permPart {
	if p == nil || p.all {
		return nil
	}
	if sub := p.sub[name]; sub != nil && !sub.all {
		return sub
	}
	return nil
}

// names are those in a folder that are walked.
func (p *permPart) names(d vfs.Dir) ([]string, error) {
	if p == nil {
		return d.ReadDir(".")
	}
	return slices.Sorted(maps.Keys(p.sub)), nil
}
