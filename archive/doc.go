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
//	anything else            what hooks put there (dumps); it is removed with the archive
//
// Other names there are internal: .tmp-* (incomplete), .trash-* (being deleted), .spare (below). The folder of an archive has mode 0700.
// Package archive/tree reads, compares and copies the trees. Only Rollback and Restore change the live trees, by exchanging them. The
// package runs no program and knows nothing of git.
//
// # No inode is shared
//
// An archive that is a folder is a private copy. It shares no inode with the live tree, where a program that writes in place would change
// the archive too, nor with another archive, because a rollback would make a shared inode live. A rollback can therefore exchange whole
// trees by one rename, without a copy. On a file system with reflinks a copy takes no space.
//
// # The spare tree
//
// Making an archive would cost a full copy each time. The trees of an archive that was packed or expired are therefore not deleted: they
// become .spare, and the next Make renames .spare to its own folder and copies only what differs. Whether a file differs is decided without
// reading it:
//
//   - the newest manifest, the reference, records which file (device, inode, ctime, size, mtime, mode, owner) it was in the
//     live tree, and gives that state of it a version number;
//   - a live file that is still that file has that version; one whose ctime is so close to the scan that a later
//     change might not show ("racy") never has;
//   - a file of the spare tree is reused if its own manifest gives it the same version.
//
// If there is no spare tree, Compact makes one in the background: a copy of the live tree, whose own manifest also proves what has not
// changed since. A spare tree that is older than what the last deployment made live is brought up to date in the same way, soon after that
// deployment (Prepare): renamed, so that nothing on the disk calls it whole meanwhile, then what differs is copied. The next Make has nothing to copy.
// Pause stops the copying after the current files, and a Make reuses the part that exists; version 0 marks what is missing. A
// partial spare tree is known in memory only; after a restart it is removed. The folder of an archive that has expired is one from the beginning, as it is, if the process
// looks after archives (calls Prepare or Compact). Content that differs is written over that of its files (tree.Recreate): no name that a power failure leaves it is that of a
// whole tree. In a spare tree that is whole, or may be again after a power failure, a file is replaced by another one.
//
// Which ctime is too close is decided by the clock that gives files their times (Config.FileTime), not by time.Now, which is a tick ahead of it.
//
// After a rollback the live files are the archive's copies, so the reference records their identities too. The spare tree takes the space of
// one tree; Config.NoSpare and Policy.Squeeze do without it.
//
// # Archives that are files at once
//
// If there is no spare tree (right after the first deployment, or between pushes in quick succession), and the tree has many files and little
// content, Make writes its files (<tree>.tar.zst) at once, which takes a fraction of the time of a copy. Beside an earlier archive that is
// files it writes only what differs (increment); if there is none that holds most of the tree, one that is no archive was written ahead, below .tmp-next-files,
// as soon as the deployment before had made its tree (Ahead, Prepare). What was written is read back. A rollback of that deployment unpacks the trees; a
// file beside them reserves the space for that until the verdict (reserveFile). A tree that may be read by path while the deployment runs
// (MakeRequest.Folder), that has devices or large files, or that the process can't restore exactly, is copied to a folder.
//
// # What is archived
//
// Content with holes, type, twelve mode bits, owner and group, modification times in nanoseconds, symbolic links, hard links within the
// tree, extended attributes and ACLs, fifos, devices (as root), names of any bytes and any depth. Notes count what could not be archived
// exactly: sockets (a rollback moves them back), owners that only root can set, files that changed during every read.
//
// # Packed archives
//
// The newest archive stays a folder, which a rollback can exchange at once, unless it was files at once. Compact packs the others, outside of
// deployments. Every operation accepts either form:
// Restore unpacks with several writers, guided by the manifest, so that a name in a tar never creates anything that the manifest does not
// list; Rollback unpacks first, and keeps the files until it is done: a machine that has only them begins it again. The file .rollback, the
// manifest of the folders, shows that they were unpacked on this machine. Holes are zeros in the tar and become holes again. An archive with something that no tar can hold (an
// extended attribute with "=" in its name) stays a folder.
//
// # Checksums
//
// A manifest may hold a checksum of each file's content, the first half of its SHA-256. No file is read for it during a deployment: Compact
// records the checksums of what it packs and of the newest archive, and an unchanged file keeps its checksum in the next archive. Verify,
// Export and Restore compare content if a checksum is known; Proof.Hashed counts those files. A file copied since the last Compact has none
// yet. Content that differs while every time is unchanged means a failing disk.
//
// # Size
//
// List reports how much disk space each archive takes, from the manifest and the files in its folder, without walking any tree.
// Failed trees and dumps are walked once, by Measure, which Compact calls; until then the size is marked as estimated.
//
// # Walks
//
// Make scans each live file once, or looks again only at what changed since a look that began earlier (Look, package early), and returns the scan (Archive.Scan) for callers that would scan again right after: see ADR 13. The
// project's user may write to a tree while root walks it, so everything is opened relative to an open folder, and no link is followed.
//
// # Durability and crashes
//
// Make writes below .tmp-*, syncs the file system, renames, and syncs the folder: when it returns, the archive is durable. A caller may sync the
// folder later (MakeRequest.Named), and calls Finish after a crash if it had begun to change something. It also syncs
// during the copying, after each Config.SyncEvery bytes, so that little is left to sync at the end; an error of any of these syncs fails
// the archive. After a crash the archive is either complete or removed by Sweep. Packing writes below .tmp-*, syncs the files, reads them
// back, renames them, and then names them in the record. The record decides which form is the archive; Sweep removes the other. Records are
// replaced atomically. Rollback determines from the inode of the archived root on disk how far an earlier attempt got, and continues.
// Removal begins with a durable rename.
//
// # Concurrency
//
// The caller holds the project's lock for Make, Rollback, Restore, Rotate and Sweep. Reading, pinning and setting verdicts may run at the
// same time, as may Compact: it takes one slot for the machine, stops while the Store is paused, and publishes under a lock of the
// Store. Deleting happens in goroutines of the Store; Wait waits for them.
package archive
