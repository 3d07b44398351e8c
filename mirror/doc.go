// Package mirror keeps copies of repositories and files of other servers for machines that do not reach those.
//
// It owns the list of what is copied (repos.yaml), the file that pins it (repos.lock, beside the list), a folder with the copies, and the HTTP
// server from which others read them. It never decides what a project deploys, and runs no program but gpg(1), for signatures of that kind, and apt-get(8), in package packages.
//
//   - Read reads a list. Lock records what its revisions and files were when they were first copied.
//   - Mirror.Sync updates the copies to what the lock pins, or with Update to what the other servers have now, and pins that.
//   - Mirror.Verify reads all copies again and compares them with the lock.
//   - Mirror.Handler serves them: repositories over git's smart protocol, read-only, files, packages and folders.
//
// # Invariants
//
// A pinned tag never moves, and a pinned file never changes: if the other server has something else now, Sync refuses it and the copy stays.
// A repository shows only the pinned commit and the ref that led to it. An entry that requires a signature is pinned after the signature was
// verified. A file is served only with the bytes that are pinned.
//
// # A crash
//
// It leaves the lock as it was before or after one entry, a quarantine in a repository, removed by the next Sync, and the beginning of a file
// (*.part), which the next Sync continues.
package mirror
