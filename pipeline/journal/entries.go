package journal

import "corpus-git/procedures/resume"

// Place says where a deployment stopped, ignoring what recoveries began.
func Place(entries []Entry) string {
	if f := First(entries, Failing); f != nil {
		if f.Result != nil && f.Result.Reason != "" {
			return "after it had " + f.Result.Reason
		}
		return "after it had failed"
	}
	last, in := Entry{}, Entry{}
	for _, e := range entries {
		if e.Kind == RollingBack {
			break
		}
		switch last = e; e.Kind {
		case Begin:
			in = e
		case Waited: // the procedure goes on
			last = in
		}
	}
	switch {
	case last.Kind == Begin:
		return "in " + last.Procedure
	case last.Kind == Ready:
		return "before the branch moved"
	case last.Kind == Waiting && last.Paused != nil:
		return "while " + last.Paused.Step + " waited for " + last.Paused.Wait
	}
	return "before it began"
}

// First returns the first entry of a kind, nil if there is none.
func First(entries []Entry, kind Kind) *Entry {
	for i := range entries {
		if entries[i].Kind == kind {
			return &entries[i]
		}
	}
	return nil
}

// Keeps reports whether the deployment failed and stays in place.
func Keeps(entries []Entry) bool {
	f := First(entries, Failing)
	return f != nil && f.Keep
}

// PausedAt returns where a deployment waits that a later process may continue, nil if it does not wait.
func PausedAt(entries []Entry) *resume.Paused {
	if len(entries) == 0 || entries[len(entries)-1].Kind != Waiting {
		return nil
	}
	return entries[len(entries)-1].Paused
}
