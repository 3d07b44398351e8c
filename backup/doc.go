// Package backup writes the whole of a server to one file, verifies such files, and restores them into an empty root.
//
// It owns the format: a PAX tar in zstd, which  tar --zstd -xpf  reads:
//
//	backup.json              Head: format, program, when, where
//	projects/NAME/…          git/, project/, pillar/, and with their options archives/ and data/
//	root/salt, root/pillar   the Salt roots of the server
//	state/…                  database, host keys, journals, event logs, generated secrets, hooks, skeletons
//	contents.json            Contents: the projects with their commits, counts, and the digest of all entries before it
//
// A file without contents.json is cut off. The digest covers names, attributes and contents, so one flipped bit is found.
//
// It asks a Server for what only that knows: which projects there are, a moment in which nothing is deployed to one of them, and
// a copy of its database. It never touches a ref, a journal or a live tree.
//
// Invariants: what is written of one project is from one moment, between two deployments of it; the database is copied last, and holds
// of each project the deployments until that moment. Refs are read before objects, so each ref finds its objects. What runs, locks, sockets,
// half-received pushes and caches are left out. Restore writes beside the places of destination, and renames at the end.
//
// A crash leaves of a backup a temporary file beside the one to be, and of a restore folders named layout.RestoreTemp, which
// the next one removes; no name that a server reads is half there.
package backup
