package receive

import (
	"context"
	"errors"

	"corpus-git/git/object"
	"corpus-git/project"
	"corpus-git/project/demands"
	"corpus-git/receive/signed"
)

// Signed verifies the signature of a commit, or of its tag if tag is given: the tag's signature counts if it is good. Objects in in, which may be nil, are
// used too.
func (r *Repository) Signed(ctx context.Context, v *signed.Verifier, tag, commit project.Commit, in project.Incoming, what signed.For) (s demands.Signature, err error) {
	err = r.with(ctx, func(o *opened) error {
		rd, err := r.all.reader(o, in)
		if err != nil {
			return err
		}
		verify := func(c project.Commit) error {
			t, data, err := rd.Get(hashOf(c))
			if err == nil {
				s, err = v.Object(ctx, hashOf(c), t, data, what)
			}
			return err
		}
		if tag == "" {
			return verify(commit)
		}
		end, _, err := object.Peel(rd, hashOf(tag))
		if err != nil || end != hashOf(commit) {
			return errors.Join(err, verify(commit))
		}
		terr := verify(tag)
		if terr == nil {
			return nil
		}
		if err := verify(commit); err != nil {
			return terr
		}
		return nil
	})
	return s, err
}
