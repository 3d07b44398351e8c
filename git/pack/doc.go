// Package pack reads, ingests and writes git packs and their indexes.
//
// It owns the file formats of gitformat-pack(5): the pack stream, deltas, the .idx of version 2 and the .rev. It knows nothing of
// repositories, refs or policy: a caller that inspects incoming objects gives the Indexer a Visit function, and a caller that accepts thin
// packs provides the missing bases.
//
//   - Indexer takes a pack from the network in one pass and leaves pack, .idx and .rev in a folder.
//   - Pack is an indexed pack on disk, open for look-ups.
//   - Writer sends the requested objects, with the compressed bytes and deltas that are already in the packs.
//
// Invariants: numbers in a pack, index or delta are checked against the bytes that exist and against Limits before memory is allocated for
// them. Bytes after a pack's trailer are never consumed.
//
// Ingestion takes two passes. One goroutine parses the stream, one writes and hashes it; others compute the names of objects, and resolve
// deltas whose base was just read. A second pass over the pack resolves the other deltas, in parallel, with bounded memory for bases. The
// tables of a pack's objects and large objects are outside of the heap (internal/offheap), and buffers are reused, so that the heap stays
// small.
//
// Concurrency: a Pack, a Cache and a Writer's inputs may be used by any goroutine; an Indexer serves one call at a time and starts Workers
// of its own, which have ended when Index returns. Pack.Close does not block: running calls finish, later ones return ErrClosed.
//
// A crash leaves tmp_pack_* files in the Indexer's folder, and never an .idx without its .pack.
package pack
