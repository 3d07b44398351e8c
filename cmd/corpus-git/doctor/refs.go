package doctor

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"corpus-git/git/refs"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/layout"
	"corpus-git/receive"
)

// refs finds refs with missing objects, which make clones of their repository fail.
func (d Doctor) refs(ctx context.Context, add adder, root layout.Root) {
	dirs, _ := filepath.Glob(filepath.Join(root.Projects(), "*", "git", "*.git"))
	bad := 0
	for _, dir := range dirs {
		broken, err := receive.BrokenRefs(ctx, dir)
		if err != nil {
			bad++
			add("refs", "failed", "", "%s: %v", dir, err)
		}
		bad += len(broken)
		for _, b := range broken {
			hint := "push it again from a complete clone, or delete it:  git push REMOTE --delete " + printable.Word(b.Name)
			if strings.HasPrefix(b.Name, "refs/corpus/") {
				hint = "push its objects again from a complete clone, or restore the repository from a backup"
			}
			if errors.Is(b.Err, refs.ErrCorrupt) {
				hint = "write the correct commit into  " + filepath.Join(dir, b.Name) + "  , or remove that file and push the ref again"
			}
			add("refs", "failed", hint, "%s, %s: %v", dir, printable.Line(b.Name), b.Err)
		}
	}
	if bad == 0 {
		add("refs", "ok", "", "the objects of all refs exist, in %s", humanize.Plural(len(dirs), "repository", "repositories"))
	}
}
