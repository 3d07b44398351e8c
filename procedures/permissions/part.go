package permissions

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"corpus-git/internal/vfs"
)

// errAsk means that the scan is not enough to check an entry.
var errAsk = errors.New("not known")

// Satisfied reports whether the entry at path, below the tree, is as its rule says, according to st; if the rule has access control
// lists, which st does not show, it returns false.
func (t Tree) Satisfied(path string, st vfs.Stat) bool {
	n, rule := t.rules, t.rules.rule
	if t.rules.sub != nil {
		for el := range strings.SplitSeq(path, "/") {
			n, rule = n.at(el, rule)
		}
	}
	want, err := rule.want(path[strings.LastIndexByte(path, '/')+1:], st, func() ([]vfs.Xattr, error) { return nil, errAsk })
	return err == nil && want.nothing()
}

// Part is a part of a tree to be walked: a name with everything below it, or with some of its content. nil means everything.
type Part struct {
	all bool
	sub map[string]*Part
}

// Add adds a path and everything below it.
func (p *Part) Add(path string) {
	for el := range strings.SplitSeq(path, "/") {
		if p.sub == nil {
			p.sub = map[string]*Part{}
		}
		if p.sub[el] == nil {
			p.sub[el] = &Part{}
		}
		p = p.sub[el]
	}
	p.all = true
}

// Has reports whether a path is part of the walk.
func (p *Part) Has(path string) bool {
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

// at descends to a name; nil, which means everything, below a path that is walked completely.
func (p *Part) at(name string) *Part {
	if p == nil || p.all {
		return nil
	}
	if sub := p.sub[name]; sub != nil && !sub.all {
		return sub
	}
	return nil
}

// names returns the names in a folder that are walked.
func (p *Part) names(d vfs.Dir) ([]string, error) {
	if p == nil {
		return d.ReadDir(".")
	}
	return slices.Sorted(maps.Keys(p.sub)), nil
}
