// Package store is the object database of a bare repository on disk, in git's own layout: a real git reads and writes it too.
//
// It owns <repository>/objects: packs, loose objects, alternates, and the quarantines in which pushed objects stay until they are
// published. It never touches refs (package refs) and knows no protocol. Formats: gitrepository-layout(5).
//
// # Use
//
//	err := store.Init(dir)                        // once: an empty bare repository
//	db, err := store.Open(dir, store.Options{})   // one handle per repository, for all goroutines
//	defer db.Close()
//
//	typ, data, err := db.Get(hash)                // store.ErrNotFound if it does not exist
//	typ, size, err := db.Header(hash)
//	obj, err := db.Stream(hash)                   // large blobs; obj.Close()
//	commit, err := object.ReadHead(db, hash)      // parsed; Get, ReadTag, Peel likewise
//
//	q, err := db.NewQuarantine(id)                // a push: objects/incoming-<id>
//	defer q.Discard()                             // does nothing after Migrate
//	res, err := q.Ingest(ctx, bufioReader, store.IngestOptions{})        // the pack, checked object by object
//	err = q.Connected(ctx, store.Connect{Tips: news, Refs: olds, Shallow: shallows})
//	_, data, err = q.Get(hash)                    // q reads what was pushed and what was there
//	err = q.Migrate()                             // durable and visible in db; then move the refs
//
//	p, off, ok, err := db.Locate(hash)            // its pack and offset, for callers that follow deltas themselves
//	id, err := store.WritePack(ctx, w, db, hashes, store.PackOptions{OfsDelta: true}) // for a fetch
//
//	m, err := db.Maintain(ctx, store.Repack{ID: id, Packs: 20})   // many packs become few; Prune removes what nothing refers to
//
// Refusals are *fsck.Error (an invalid object), *pack.LimitError, pack.ErrCorrupt, *MissingError and *ShallowError.
//
// Invariants: an object is visible in a DB only when all of it is durable; a pack is published before its index and never changes, and is
// removed after its replacement is durable; what Get returns is shared and must not be changed.
//
// Concurrency: every method of DB and Quarantine may be called concurrently, except Ingest, which one goroutine calls at a time.
// Readers never wait for writers.
//
// A crash leaves folders objects/incoming-*, which the next Open removes, and tmp_obj_* files, which git prune removes too. When Migrate
// returns its result is durable; an interrupted Migrate is completed by calling it again (DB.Quarantine), or undone by Discard, which
// leaves at most packs that nothing refers to.
package store
