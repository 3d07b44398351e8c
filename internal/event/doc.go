// Package event keeps what a deployment says: durable, ordered, followed by many.
//
// It owns the Event type, the Log of one deployment (JSON lines on disk, one
// writer, any number of followers) and Console, which turns events into the
// lines that people read. The pusher, the log command, the web page and the
// bots are all followers of the same log, so they all see the same deployment.
//
// It never decides anything and knows no room. Invariants: Seq counts from 1
// without gaps; an event is cleaned (escape sequences but colours, control
// bytes, invalid UTF-8, over-long lines) and redacted before it is written or
// seen by anybody; what is not seen goes before secrets are looked for; a log has a
// limit (Limit), its first part and its last lines are kept; a slow or vanished follower never slows a writer, because
// followers read the file and are only told that it grew. A crash leaves at
// worst a torn last line, which reading drops and opening for append cuts off.
package event
