package receive

import (
	"context"

	"corpus-git/git/tree"
	"corpus-git/project"
)

// Subjects returns the subject and the author of commits. Commits that the repository does not have, or no longer has, are
// omitted.
func (r *Repository) Subjects(ctx context.Context, commits []project.Commit) (map[project.Commit]project.Subject, error) {
	out := map[project.Commit]project.Subject{}
	err := r.with(ctx, func(o *opened) error {
		rd, err := r.all.reader(o, nil)
		if err != nil {
			return err
		}
		for _, c := range commits {
			if _, done := out[c]; done || c == "" {
				continue
			}
			if has, err := rd.Has(hashOf(c)); err != nil {
				return err
			} else if !has {
				continue
			}
			facts, err := tree.Describe(rd, hashOf(c))
			if err != nil {
				return err
			}
			out[c] = project.Subject{Text: facts.Subject, Author: facts.Author.Name}
		}
		return nil
	})
	return out, err
}
