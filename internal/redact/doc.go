// Package redact hides the values of a pillar in everything that a deployment prints, logs or records.
//
// It owns: which values of a pillar are secret, the forms in which a value may appear (as it is, wrapped over
// lines, escaped, URL-encoded, base64, hexadecimal, in UTF-16), and finding them in texts and in streams.
//
// It never touches: files, the network, the pillar itself. It knows no project and no deployment.
//
// Invariants: a Redactor that was not made by New or None hides everything, so a forgotten wiring is seen at once
// and leaks nothing. A match that is spread over several writes is found; so is one that line breaks run through.
// Where matches overlap, all they cover is hidden under one label. A label never holds a secret. What a stream
// still holds back is bounded.
//
// Not hidden, by decision: numbers, booleans, null; values under MinBytes bytes or with fewer than 4 characters that
// are not blank; values that stand in the pushed code; what the pillar lists in redact_show.
//
// Concurrency: a Redactor is safe for use by several goroutines, Extend included; a Writer belongs to one.
// Nothing here outlives the process: after a crash, what a Writer held back is lost, not leaked.
package redact
