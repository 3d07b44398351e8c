package permissions

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"corpus-git/internal/vfs"
)

// errAsk: an entry can't be judged by what was scanned.
var errAsk = errors.New("not known")

// Satisfied reports whether the entry at path, below the tree, is as its rule says, according to st; where the rule has access control
// lists, which st does not show, it is false.
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

// Part is a part of a tree to be walked: a name with everything below it, or with some of its content. nil is everything.
type Part struct {
	all bool
	sub map[string]*Part
}

// Add adds a path, with all below it.
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

// Has reports whether a path is walked with the part.
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

// at descends to a name; nil, everything, below what is walked completely.
func (p *Part) at(name string) *Part {
	if p == nil || p.all {
		return nil
	}
	if sub := p.sub[name]; sub != nil && !sub.all {
		return sub
	}
	return nil
}

// names returns those in a folder that are walked.
func (p *Part) names(d vfs.Dir) ([]string, error) {
	if p == nil {
		return d.ReadDir(".")
	}
	return slices.Sorted(maps.Keys(p.sub)), nil
}
