// Package archive keeps the trees of a project as they were before each deployment, and brings them back.
//
// It owns <project>/archives/ and everything below: one folder for each archive, <YYYY-MM-DD_hh_mm-ss>_<id>/, with
//
//	project/, pillar/        the trees, exact: plain folders
//	deployment.json          Record: the deployment, its verdict, pins, sizes, the state of a rollback
//	manifest                 every entry of the trees with its attributes, and which file it was
//	project.failed/ …        after a rollback: the tree that failed
//	anything else            what hooks put there (dumps); it goes with the archive
//
// Other names there are its own: .tmp-* (half made), .trash-* (half deleted), .spare (below). The folder of an archive has
// mode 0700. It exchanges the live trees on Rollback and Restore, and never writes to them otherwise. It runs no
// program and knows no git.
//
// # No inode is shared
//
// Each archive is a private copy: it shares no inode with the live tree (a program that writes in place would rewrite
// history) nor with another archive (a rollback would put a shared inode into the live tree, with the same effect). So a
// rollback can exchange whole trees by one rename, and needs no copy. On a file system with reflinks a copy costs no space.
//
// # The spare tree
//
// A copy of what did not change is what an archive costs. The archive that a rotation expires is therefore not deleted:
// its trees become .spare, and the next Make renames that to its own folder and copies only what differs. Whether a file
// differs is decided without reading it:
//
//   - the newest manifest, the reference, says which file (device, inode, ctime, size, mtime, mode, owner) it was in the
//     live tree, and gives that state of it a version number;
//   - a live file that is still that file is of that version; one whose ctime is so close to the scan that a later
//     change might not show ("racy") never is;
//   - a file of the spare tree is taken over when its own manifest gives it the same version.
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
// # Walks
//
// A tree may be written by its project's user while root walks it. Everything is reached from an open folder, no link is
// ever followed.
//
// # Durability and crashes
//
// Make writes below .tmp-*, syncs the file system once, renames, syncs the folder: when it returns, the archive is
// durable; after a crash it is whole or swept. Records change by atomic replacement. Rollback reads from the disk, by the
// inode of the archived root, how far an earlier try came, and goes on. Removal is a durable rename first.
//
// # Concurrency
//
// The caller holds the project's lock for Make, Rollback, Restore, Rotate and Sweep. Reading, pinning and verdicts may
// run beside them. Deleting happens in goroutines of the Store; Wait waits for them.
package archive
