package project

// History limits the records of a project's deployments. Zero sets no limit.
type History struct {
	Deployments int   // records
	LogBytes    int64 // of all event logs together
	UndoLogs    int   // kept undo logs of deployments that went live
}

// Pruned counts what was removed to satisfy a History.
type Pruned struct{ Deployments, Logs, UndoLogs int }
