package testutil

import "corpus-git/internal/event"

// Events returns one event of each kind, every text of which is text.
func Events(text string) []event.Event {
	kinds := []event.Kind{event.Head, event.Waiting, event.Note, event.ProcedureStart, event.ProcedureDone, event.StepStart, event.StepDone, event.StateStart, event.StateDone,
		event.Output, event.Failure, event.Plan, event.Hint, event.Verdict}
	out := make([]event.Event, len(kinds))
	for i, k := range kinds {
		out[i] = event.Event{Seq: uint64(i + 1), Kind: k, Lines: []string{""}, N: 1, Of: 1} //nolint:gosec // a handful
		Fill(&out[i], text)
	}
	return out
}
