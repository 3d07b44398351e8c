// Package watch runs the periodic checks of live releases.
//
// It owns when a periodic check runs, the history of results, and that each change is notified once. Config provides how a check runs,
// which checks there are and how to notify. It never runs a check during a deployment of its project, and decides nothing else: a failed
// check rolls nothing back.
//
// The history is in the database: one row for each period in which a check had the same result, at most keep of them for each check. The
// row of a change is durable before the change is notified, and records whether it was; the number of runs and the time of the last one are
// written once a minute, and at the end.
//
// A crash loses at most that minute of counts. A notification that it interrupted is sent again at the next start.
package watch
