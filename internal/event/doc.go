// Package event stores the events of a deployment: durable, ordered, for any number of followers.
//
// It owns the Event type, the Log of one deployment (JSON lines on disk, one
// writer, any number of followers) and Console, which turns events into the
// lines that people read. The pusher, the log command, the web page and the
// bots are all followers of the same log, so they all see the same deployment.
//
// It decides nothing and imports no room. Invariants: Seq counts from 1 without gaps; an event is cleaned (escape sequences except colours,
// control bytes, invalid UTF-8, over-long lines) and redacted before it is written or followed; invisible characters are removed before
// secrets are searched for; a log has a limit (Limit), and its first part and its last lines are kept; a slow or vanished follower never
// slows a writer, because followers read the file and are only notified that it grew. A crash leaves at most an incomplete last line, which
// reading drops and opening for append truncates.
package event
