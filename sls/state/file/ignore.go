package file

import (
	"slices"
	"strings"
	"unicode"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/difflib"
)

// ignoreRules is what file.managed ignores when it decides whether new content is a change for requisites. The file is
// written anyway. Source: Salt documentation, file.managed, ignore_ordering, ignore_whitespace and
// ignore_comment_characters; salt/utils/stringutils.py, get_conditional_diff.
type ignoreRules struct {
	asked    bool
	whole    bool // nothing can be ignored: any difference counts
	space    bool
	comments []string
}

func readIgnoreRules(c *core.Call) ignoreRules {
	var ig ignoreRules
	comments, _ := c.Value("ignore_comment_characters")
	ig.space = c.Bool("ignore_whitespace", false)
	order := c.Bool("ignore_ordering", false)
	ig.asked = ig.space || order || py.Truth(comments)
	switch x := comments.(type) {
	case string:
		ig.comments = []string{x}
	case *py.List:
		for _, it := range x.Items() {
			ig.comments = append(ig.comments, py.Str(it))
		}
	}
	ig.whole = !ig.space && !order && len(ig.comments) == 0
	return ig
}

// isChange reports whether a new content is a change.
func (ig ignoreRules) isChange(old, new []byte) bool {
	if !ig.asked || core.IsBinary(old) || core.IsBinary(new) {
		return true
	}
	diff := difflib.Unified(difflib.Lines(old), difflib.Lines(new), "\n")
	if ig.whole {
		return len(diff) > 0
	}
	var adds, subs []string
	for _, line := range diff {
		if strings.HasPrefix(line, "+++") || strings.HasPrefix(line, "---") || line[0] != '+' && line[0] != '-' {
			continue
		}
		text := line[1:]
		for _, mark := range ig.comments {
			text, _, _ = strings.Cut(text, mark)
		}
		if ig.space {
			text = strings.TrimFunc(text, pySpace)
		}
		switch {
		case text == "":
		case line[0] == '+':
			adds = append(adds, text)
		default:
			subs = append(subs, text)
		}
	}
	slices.Sort(adds)
	slices.Sort(subs)
	return !slices.Equal(adds, subs)
}

// pySpace reports whether str.strip removes a character.
func pySpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }
