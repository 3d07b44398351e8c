// Package status defines the JSON documents that describe the projects of this machine, which the commands print with --json and the HTTP
// API serves, and the Source that fills them from the other rooms.
//
// It owns the schema: every document has a field "version", now 1, which changes
// only when the meaning of a field changes or a field is removed; fields may be added. docs/json.md
// lists them. It never changes anything and holds no state; a Source is safe for
// concurrent use when its parts are.
package status
