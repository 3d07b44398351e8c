// Package underway records the projects in which work is in progress, so that a start after a crash examines only those: its cost depends
// on what was running, not on the number of projects.
//
// It owns the folder of notes in the state directory: an empty file, named after the project, for each project with work in progress that a
// crash would leave incomplete. Begin is called before such work. The package never examines a project: what has to be repaired is decided
// from the journal and the files.
//
// Invariants: a note is durable before its work begins, and is removed after the work has ended; it may stay longer, or reappear after a
// power cut, since its removal is not synced: a project is then examined needlessly. A note of the state's last owner stays until Settled
// reports that its project was recovered. If there is no folder, or a full examination did not finish, every project must be examined, as
// at the first start of a version that keeps notes.
//
// Markers are safe for concurrent use; one process owns the state. A crash leaves markers behind, as intended.
package underway
