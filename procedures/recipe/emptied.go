package recipe

import (
	"io/fs"

	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/layout"
	"corpus-git/procedures/extends"
)

// RefuseEmptied returns fault.Refused if the new commit does not deploy anything and the live one does: the folder .salt is gone, or
// there are no steps where there were some. Both are the files of a commit; live is nil before the first deployment.
func RefuseEmptied(live, comes fs.FS) error {
	if live == nil {
		return nil
	}
	const hint = "if this is intended:  git push -o allow-empty …"
	was, err := In(live)
	if err != nil || was == nil {
		return nil //nolint:nilerr // an error in the live recipe does not matter here
	}
	is, err := In(comes)
	if err != nil {
		return err
	}
	if is == nil {
		return fault.New(fault.Refused, "", "the push has no folder %s, but the live release has one", layout.SaltDir).WithHint("%s", hint)
	}
	n, err := stepCount(was)
	if err != nil || n == 0 {
		return nil //nolint:nilerr // as above
	}
	if some, err := mayHaveSteps(is); err != nil || some {
		return err
	}
	return fault.New(fault.Refused, "", "the push has no steps in %s, but the live release has %s", layout.SaltDir, humanize.Plural(n, "step")).WithHint("%s", hint)
}

// Deploys reports whether a commit has steps, or extends a recipe that may have some: then RefuseEmptied returns nil, whatever is live.
func Deploys(comes fs.FS) bool {
	is, err := In(comes)
	if err != nil || is == nil {
		return false
	}
	some, err := mayHaveSteps(is)
	return err == nil && some
}

// mayHaveSteps reports whether a recipe has steps, or extends one that may have some.
func mayHaveSteps(recipe fs.FS) (bool, error) {
	n, err := stepCount(recipe)
	return n > 0 || Has(recipe, extends.File), err
}

// stepCount counts the steps of a recipe, and returns one file as an example.
func stepCount(recipe fs.FS) (int, error) {
	steps, err := Steps(recipe)
	n := len(steps)
	if Has(recipe, "install.sls") {
		n++
	}
	return n, err
}
