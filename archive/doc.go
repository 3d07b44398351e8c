// Package archive keeps the trees of a project as they were before each deployment, and restores them.
//
// It owns <project>/archives/ and everything below: one folder for each archive, <YYYY-MM-DD_hh_mm-ss>_<id>/, with
//
//	project/, pillar/        the trees, exact: plain folders; or, packed,
//	project.tar.zst …        the same as files that tar --zstd --xattrs --acls -xpf reads; or, incremental,
//	project.base.tar.zst …   such a file of an older archive, by a hard link, and
//	project.changed.tar.zst  what differs from it: this one's entries count
//	deployment.json          Record: the deployment, its result, pins, sizes, the state of a rollback
//	manifest                 every entry of the trees with its attributes, and which file it was
//	project.failed/ …        after a rollback: the tree that failed
//	anything else            what hooks put there (dumps); it goes with the archive
//
// Other names there are its own: .tmp-* (half made), .trash-* (half deleted), .spare (below). The folder of an archive has
// mode 0700. Reading, comparing and copying the trees themselves is archive/tree. It exchanges the live trees on Rollback and Restore, and never writes to them otherwise. It runs no
// program and knows no git.
//
// # No inode is shared
//
// Each archive that is a folder is a private copy: it shares no inode with the live tree (a program that writes in place would rewrite
// history) nor with another archive (a rollback would put a shared inode into the live tree, with the same effect). So a
// rollback can exchange whole trees by one rename, and needs no copy. On a file system with reflinks a copy costs no space.
//
// # The spare tree
//
// A copy of what did not change is what an archive costs. The trees of an archive that was packed, or that a rotation
// expires, are therefore not deleted: they become .spare, and the next Make renames that to its own folder and copies only what differs. Whether a file
// differs is decided without reading it:
//
//   - the newest manifest, the reference, says which file (device, inode, ctime, size, mtime, mode, owner) it was in the
//     live tree, and gives that state of it a version number;
//   - a live file that is still that file is of that version; one whose ctime is so close to the scan that a later
//     change might not show ("racy") never is;
//   - a file of the spare tree is taken over when its own manifest gives it the same version.
//
// Where there is none (after the first deployment, after a rollback, when pushes follow each other at once) Compact makes one in the background: a copy
// of the live tree, whose own manifest proves as well what has not changed since. Pause interrupts the copying after the files in hand, and a Make
// takes over what is there: version 0 marks what is not. Such a half is known in memory only; for a start it is a leftover.
//
// When deployments follow each other at once, Prepare packs the newest archive, whose tree becomes the spare one, if that has many files and little content; where it did not come
// to that, Make does (handOver). Such an archive shares the packed file of the one before, which is never written to and never goes live (increment). A Pause waits for it.
//
// After a rollback the live files are the copies: the reference knows those identities too. The spare tree is one more
// tree on the disk; Config.NoSpare and Policy.Squeeze do without.
//
// # What is carried
//
// Content with holes, type, twelve mode bits, owner and group, modification times in nanoseconds, symbolic links, hard
// links among the tree's own names, extended attributes and ACLs, fifos, devices (as root), names of any bytes and any
// depth. Notes count what could not be: sockets (a rollback moves them back), owners that only root may set, files that
// changed at each reading.
//
// # Packed archives
//
// The archive of a deployment that runs is a folder, which a rollback can exchange at once; the newest one stays a folder for longer, but when deployments follow each other at once. Compact makes files of the
// others, off every deployment's path. Every operation takes either form: Restore unpacks with many writers at once,
// guided by the manifest, so that a name in a tar never makes anything that the manifest does not list; Rollback unpacks
// first. Holes are zeros in the tar, and become holes again. What no tar can hold (an extended attribute with "=" in its
// name) leaves its archive a folder.
//
// # Proof of content
//
// A manifest has room for a sum of each file's content, the start of its SHA-256. Nothing is read for it while a deployment
// waits: Compact notes the sums of what it packs and of the newest archive, and a file that stays the same takes its sum
// along to the next archive. Verify, Export and Restore compare where a sum is known; Proof.Hashed says for how many files.
// A file copied since the last Compact has none yet. A difference in content alone, with every time as it was, is a
// failing disk.
//
// # Size
//
// List tells what each archive takes on disk, from the manifest and the files in its folder, without walking any tree.
// Failed trees and dumps are walked once, by Measure, which Compact calls; until then the size is marked as estimated.
//
// # Walks
//
// Make looks at each live file once, and hands on what it saw (Archive.Scan), for whoever would look again right after it: see ADR 13.
// A tree may be written by its project's user while root walks it. Everything is reached from an open folder, no link is
// ever followed.
//
// # Durability and crashes
//
// Make writes below .tmp-*, syncs the file system, renames, syncs the folder: when it returns, the archive is
// durable. It syncs beside the copying too, each time Config.SyncEvery bytes more are written, so that the disk has its
// share done when the copy is: an error of any of these syncs fails the archive. After a crash it is whole or swept. Packing writes below .tmp-*, syncs the files, reads them back, renames them,
// and then names them in the record, which is the moment that counts: the record says which form is the archive, Sweep
// removes the other. Records change by atomic replacement. Rollback reads from the disk, by the
// inode of the archived root, how far an earlier try came, and goes on. Removal is a durable rename first.
//
// # Concurrency
//
// The caller holds the project's lock for Make, Rollback, Restore, Rotate and Sweep. Reading, pinning and verdicts may
// run beside them, and so may Compact: it takes one slot for the machine, stands still while the Store is paused, and
// publishes under a lock of the Store. Deleting happens in goroutines of the Store; Wait waits for them.
package archive
