// Package refs keeps the refs of a bare repository on disk, in git's own layout: a real git reads and writes them too.
//
// It owns <repository>/HEAD, refs/ and packed-refs. It never reads objects: an object must be durable before a ref points to it. Formats:
// gitrepository-layout(5), git-pack-refs(1); names: git-check-ref-format(1).
//
//	s := refs.Store{Dir: dir}                      // FS, LockWait have defaults
//	h, err := s.Get("refs/heads/master")           // the zero hash is: no such ref
//	list, err := s.List("refs/heads/")             // in byte order
//	err = s.CompareAndSwap("refs/heads/master", old, new)  // zero old: must not exist; zero new: delete
//	err = s.Update(changes)                        // all of them or none
//	p, err := s.Stage(changes)                     // the same in steps: p.Sync, p.Publish, p.Settle
//	n, err := s.Pack(refs.Packing{Peel: peel})     // into packed-refs
//	name, err := s.Head(); err = s.SetHead("refs/heads/main")
//
// A ref whose file has no valid content (ErrCorrupt) is an error in all of these; ListReadable skips it, as git does.
//
// Errors that a pusher may cause: *NameError (an invalid name), *ConflictError (the ref has another value than the change expects),
// *ClashError (a/b if a exists), *LockedError (the lock is held).
//
// Invariants: a ref is changed under <ref>.lock only, which is created with O_EXCL, and the old value is compared under it; a reader sees
// the old value or the new one. A ref is deleted from packed-refs before its own file, and both under the lock of packed-refs, so that no
// old value reappears.
//
// Concurrency: every method may be called concurrently, and by git beside it. Locks are taken in byte order of the names.
//
// When Update returns the changes are durable. A crash within it leaves each ref at its old or its new value, some possibly changed and
// others not, and *.lock files; SweepLocks removes those, when no other process uses the repository.
package refs
