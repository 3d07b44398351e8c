// Package backup writes a whole server to one file, verifies such files, and restores them into an empty root.
//
// It owns the format: a PAX tar in zstd, which  tar --zstd -xpf  reads:
//
//	backup.json              Head: format, program, when, where
//	projects/NAME/…          git/, project/, pillar/, and with their options archives/ and data/
//	root/salt, root/pillar   the Salt roots of the server
//	state/…                  database, host keys, journals, event logs, generated secrets, hooks, skeletons
//	contents.json            Contents: the projects with their commits, counts, and the digest of all entries before it
//
// A file without contents.json is truncated. The digest covers names, attributes and contents, so a single flipped bit is detected.
//
// It asks a Server for what only the server can provide: the list of projects, a moment without a deployment of one of them, and a copy of
// its database. It never changes a ref, a journal or a live tree.
//
// Invariants: all data of one project is from one moment, between two of its deployments; the database is copied last, and contains the
// deployments of each project up to that moment. Refs are read before objects, so that each ref's objects are included. Running processes,
// locks, sockets, partly received pushes and caches are omitted. Restore writes next to the destinations, and renames at the end.
//
// A crash leaves a temporary file next to the backup being written, and folders named layout.RestoreTemp from a restore, which the next
// restore removes; what a server reads is never incomplete.
package backup
