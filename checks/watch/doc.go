// Package watch runs the checks of live releases that have an interval, each time it has passed.
//
// It owns when a periodic check runs, the history of what came back, and that a change is notified once. How a check runs,
// which are due and how somebody is told is given to it (Config). It never runs a check while a deployment of its project
// does, and decides nothing else: a check that fails rolls nothing back.
//
// The history is in the database: one row for each period in which a check gave the same answer, at most keep of them for
// each check. The row of a change is durable before the change is notified, and says whether it was; how often and when a check
// ran last is written once a minute, and at the end.
//
// A crash loses at most that minute of counts. A notification that it cut off is sent again at the next start.
package watch
