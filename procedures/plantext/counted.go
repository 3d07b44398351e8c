package plantext

import (
	"fmt"
	"strings"

	"corpus-git/internal/humanize"
	"corpus-git/procedures/recipe"
	"corpus-git/sls"
)

// SaltRunner is the name of the runner that hands steps to Salt.
const SaltRunner = "salt-call"

// Counted returns what a step did, in words.
func Counted(res *sls.StepResult, s recipe.Step) string {
	if s.Script {
		return "exit status 0"
	}
	right, changed, _ := res.Counts()
	text := humanize.Plural(len(res.States), "state")
	var parts []string
	if right > 0 {
		parts = append(parts, fmt.Sprintf("%d unchanged", right))
	}
	if changed > 0 {
		parts = append(parts, fmt.Sprintf("%d changed", changed))
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	if res.Runner == SaltRunner || s.Tool != "" {
		text += " (" + res.Runner + ")"
	}
	return text
}
