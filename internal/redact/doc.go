// Package redact hides the values of a pillar in everything that a deployment prints, logs or records.
//
// It owns: which values of a pillar are secret, the forms in which a value may appear (as it is, wrapped over
// lines, escaped, URL-encoded, base64, hexadecimal, in UTF-16), and finding them in texts and in streams.
//
// It never touches files, the network, or the pillar itself. It knows no project and no deployment.
//
// Invariants: a Redactor that was not made by New or None hides everything, so that forgotten wiring is noticed and leaks nothing. A match
// that spans several writes or line breaks is found. If matches overlap, all of them are hidden under one label. A label never contains
// a secret. What a stream holds back is bounded.
//
// Not hidden, by decision: numbers, booleans, null; values under MinBytes bytes or with fewer than 4 characters that
// are not blank; values that are in the pushed code; what the pillar lists in redact_show.
//
// Concurrency: a Redactor is safe for use by several goroutines, Extend included; a Writer belongs to one.
// Nothing here outlives the process: after a crash, what a Writer held back is lost, not leaked.
package redact
