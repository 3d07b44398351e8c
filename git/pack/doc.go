// Package pack reads, ingests and writes git packs and their indexes.
//
// It owns the file formats of gitformat-pack(5): the pack stream, deltas, the .idx of version 2 and the .rev.
// It knows nothing of repositories, refs or policy: who wants to see the objects of an incoming pack gives an
// Indexer a Visit function, and who wants a thin pack completed gives it the missing bases.
//
//   - Indexer takes a pack from the network in one pass and leaves pack, .idx and .rev in a folder.
//   - Pack is an indexed pack on disk, open for look-ups.
//   - Writer sends the requested objects, with the compressed bytes and deltas that are in the packs already.
//
// Invariants: no number in a pack, index or delta is trusted: each is checked against the bytes that are there and
// against Limits before memory is taken for it. Bytes after a pack's trailer are never consumed.
//
// An ingestion has two passes. One goroutine parses the stream, one writes and hashes it; the others compute the names of objects, and resolve
// deltas whose base was just read. The other deltas are resolved in a second pass over the pack, in parallel, with bounded memory for
// bases. The tables of a pack's objects and large objects are outside of the heap (internal/offheap), and buffers are reused:
// the heap stays small.
//
// Concurrency: a Pack, a Cache and a Writer's inputs serve any number of goroutines; an Indexer serves one call at a
// time and starts Workers goroutines of its own, all ended when Index returns. Pack.Close waits for nobody: readers
// that are under way finish first, later ones get ErrClosed.
//
// A crash leaves tmp_pack_* files in the Indexer's folder and never a .idx without its .pack.
package pack
