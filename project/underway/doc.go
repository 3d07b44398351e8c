// Package underway notes in which projects something is under way, so that a start after a crash looks at those and at no
// others: its cost grows with what was going on, not with the number of projects.
//
// It owns the folder of notes in the state directory: an empty file for each project in which something goes on that a
// crash would leave half done, named after the project. Who is about to do such a thing calls Begin first. It never looks
// into a project and decides nothing about one: what has to be fixed there is said by the journal and by what lies there.
//
// Invariants: a note is durable before what it announces begins, and is removed after that has ended; it may stay longer, or come
// back after a power cut, since its removal is not synced: then something is looked at that needs nothing. A note that the last
// owner of the state left stays until Settled says that its project was recovered. Where there is no folder, or a full
// look was begun and did not end, every project is to be looked at: that is so at the first start of a version that keeps
// notes.
//
// Markers are safe for concurrent use; one process owns the state. A crash leaves markers, which is what they are for.
package underway
