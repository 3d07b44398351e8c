package undo

// Repaired reports whether older logs, newest first, contain everything that a log has recorded: each path is again what the newest of them
// that records it left there, and each action is one of theirs. Undoing the older ones then undoes all of it. An empty log is not repaired.
func Repaired(m Machine, dir string, older []string) (bool, error) {
	_, list, err := open(m, dir)
	if err != nil || len(list) == 0 {
		return false, err
	}
	left, acted := map[text]*Node{}, map[[2]string]bool{}
	for _, d := range older {
		_, before, err := open(m, d)
		if err != nil {
			return false, err
		}
		for _, c := range before {
			switch {
			case c.Kind == kindAction && !c.last():
				acted[[2]string{c.Action.Noun, c.Action.Name}] = true
			case c.Kind == kindBefore && left[c.Path] == nil && c.after != nil:
				left[c.Path] = c.after
			}
		}
	}
	for _, c := range list {
		switch {
		case c.Kind == kindManual || c.last():
		case c.Kind == kindAction:
			if !acted[[2]string{c.Action.Noun, c.Action.Name}] {
				return false, nil
			}
		case left[c.Path] == nil || c.after == nil || !c.after.same(*left[c.Path]):
			return false, nil
		}
	}
	return true, nil
}
