package session

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"corpus-git/git/fsck"
	"corpus-git/git/object"
	"corpus-git/git/pack"
	"corpus-git/git/refs"
	"corpus-git/git/store"
	"corpus-git/internal/diskfull"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// Classify sets the kind and hint of errors from the rooms below. Unknown errors stay internal.
func Classify(err error) error {
	var fe *fault.Error
	if err == nil || errors.As(err, &fe) {
		return err
	}
	var (
		bad      *fsck.Error
		limit    *pack.LimitError
		base     *pack.MissingBaseError
		missing  *store.MissingError
		shallow  *store.ShallowError
		conflict *refs.ConflictError
		symbolic *refs.SymbolicError
		clash    *refs.ClashError
		locked   *refs.LockedError
		name     *refs.NameError
		wrong    *object.WrongTypeError
	)
	switch {
	case diskfull.Is(err):
		return diskfull.Explain(syscall.ENOSPC) // internal detail
	case errors.As(err, &shallow):
		return fault.New(fault.Refused, "", "%w", err).WithHint("your clone has only a part of the history; get the rest, then push again:  git fetch --unshallow")
	case errors.As(err, &bad):
		return fault.New(fault.Refused, "", "%w", err).WithHint("git fsck  shows it in your clone too; rewrite the commit that added it (git rebase), then push again")
	case errors.As(err, &limit) && limit.Name == "ObjectBytes":
		return fault.New(fault.Refused, "", "%w", err).WithHint("git ls-tree -lr COMMIT  shows the sizes of files; an administrator can raise  limits.%s  in the server's configuration", limitKey(limit.Name))
	case errors.As(err, &limit) && limit.Name == "Checked":
		return fault.New(fault.Refused, "", "%w", err).WithHint("git cat-file -s COMMIT  prints the size of a commit; rewrite it with a shorter message")
	case errors.As(err, &limit):
		return fault.New(fault.Refused, "", "%w", err).WithHint("an administrator can raise  limits.%s  in the server's configuration", limitKey(limit.Name))
	case errors.As(err, &base), errors.As(err, &missing):
		return fault.New(fault.Refused, "", "the push is not complete: %w", err).WithHint("check your clone with  git fsck ; if it is complete, push with  --no-thin")
	case errors.Is(err, object.ErrCorrupt):
		return fault.New(fault.Refused, "", "the pack is damaged: %w", err).WithHint("push again; if the error persists, check your clone with  git fsck")
	case errors.Is(err, refs.ErrCorrupt):
		return fault.New(fault.Failed, "", "reference broken: %w", err).WithHint("an administrator has to repair it (corpus-git doctor shows it); you can push other refs")
	case errors.As(err, &symbolic):
		return fault.New(fault.Refused, "", "%w", err).WithHint("push to that one; whoever runs the server can remove the symbolic ref:  git symbolic-ref --delete %s", symbolic.Name)
	case errors.As(err, &conflict):
		return fault.New(fault.Refused, "", "%w", err).WithHint("another push moved it:  git fetch  first, then push again")
	case errors.As(err, &locked):
		return fault.New(fault.Busy, "", "%w", err).WithHint("push again later")
	case errors.As(err, &clash), errors.As(err, &name), errors.As(err, &wrong):
		return fault.New(fault.Refused, "", "%w", err)
	}
	return err
}

// limitKey returns the key of a pack's limit in the server's configuration.
func limitKey(name string) string {
	switch name {
	case "PackBytes":
		return "max_pack_bytes"
	case "Objects":
		return "max_objects"
	case "ObjectBytes":
		return "max_object_bytes"
	case "DeltaBytes":
		return "max_delta_bytes"
	case "DeltaDepth":
		return "max_delta_depth"
	case "Ratio":
		return "max_inflate_ratio"
	case "Memory":
		return "max_delta_memory"
	case "DeltaTotal":
		return "max_delta_total"
	case "TotalBytes":
		return "max_total_bytes"
	}
	return name
}

// Explain turns an error into the events that show it: the message with its position, the line of the file with a caret, the hint. The text
// of an internal error is not shown; ref finds it in the server's log.
func Explain(err error, ref string) []event.Event {
	if fault.KindOf(err) == fault.Internal {
		return []event.Event{
			{Kind: event.Failure, Status: event.Bad, Text: "internal server error; this is not your fault"},
			{Kind: event.Hint, Text: fmt.Sprintf("an administrator can find it in the server's log under  %s", ref)},
		}
	}
	first, rest, _ := strings.Cut(err.Error(), "\n")
	e := event.Event{Kind: event.Failure, Status: event.Bad, Text: event.Clean(first)}
	if rest != "" {
		for l := range strings.SplitSeq(strings.TrimRight(rest, "\n"), "\n") {
			e.Lines = append(e.Lines, event.Clean(l))
		}
	}
	if p, ok := fault.PosOf(err); ok && p.Text != "" {
		text := event.Clean(p.Text)
		e.Lines = append(e.Lines, "| "+text)
		if p.Col > 0 {
			e.Lines = append(e.Lines, "| "+printable.Caret(p.Text, p.Col))
		}
	}
	out := []event.Event{e}
	if h := fault.HintOf(err); h != "" {
		out = append(out, event.Event{Kind: event.Hint, Text: event.Clean(h)})
	}
	return out
}

// oneLine returns an error as the reason of a rejected ref: git prints it in parentheses.
func oneLine(err error) string {
	if fault.KindOf(err) == fault.Internal {
		return "server error"
	}
	return reasonText(err.Error(), "")
}

// maxReason limits a rejected ref to a line or two.
const maxReason = 160

// reasonText returns a text in one line, followed by end, which is never shortened.
func reasonText(s, end string) string {
	s = printable.Line(event.StripColour(strings.Join(strings.Fields(s), " ")))
	return printable.Shorten(s, maxReason-len(end)) + end
}
