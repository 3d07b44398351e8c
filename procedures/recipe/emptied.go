package recipe

import (
	"io/fs"

	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/layout"
)

// RefuseEmptied is fault.Refused where what comes does no longer deploy anything and what is live does: the folder .salt is gone, or there are no steps where
// there were some. Both are the files of a commit; live is nil before the first deployment.
func RefuseEmptied(live, comes fs.FS) error {
	if live == nil {
		return nil
	}
	const hint = "if that is meant:  git push -o allow-empty …"
	was, err := In(live)
	if err != nil || was == nil {
		return nil //nolint:nilerr // what is live is not what is judged
	}
	is, err := In(comes)
	if err != nil {
		return err
	}
	if is == nil {
		return fault.New(fault.Refused, "", "the push has no folder %s, and what is live has one", layout.SaltDir).WithHint("%s", hint)
	}
	n, err := stepCount(was)
	if err != nil || n == 0 {
		return nil //nolint:nilerr // as above
	}
	if left, err := stepCount(is); err != nil || left > 0 {
		return err
	}
	return fault.New(fault.Refused, "", "the push has no steps in %s, and what is live has %s", layout.SaltDir, humanize.Plural(n, "step")).WithHint("%s", hint)
}

// stepCount counts the steps of a recipe, and a file that stands for all of them.
func stepCount(recipe fs.FS) (int, error) {
	steps, err := Steps(recipe)
	n := len(steps)
	if Has(recipe, "install.sls") {
		n++
	}
	return n, err
}
