// Package checkout writes commits from the object store to disk.
//
// It owns the working copies of a project (its code and its pillar): their tracked files and their .git. It never touches bare
// repositories, nor untracked files in a working copy, unless a tracked file takes their place.
//
// Sync checks a commit out: only what differs is written. Refresh records changed owners and modes. A list of paths consists of package index's entries with
// this package's own state; trees, attributes and conversions come from the packages of those names.
//
// # A working copy
//
// It is a real checkout, with its own .git: HEAD on the deployed branch (detached if the request names none), that branch
// and origin's both at the commit, reflogs, remote "origin" with the bare repository's path, whose objects it borrows through
// objects/info/alternates, and an index of version 2 with a TREE extension. So git status is clean and git log works. What an
// operator sets in .git/config stays, except core.{repositoryformatversion,filemode,bare,logallrefupdates,autocrlf,symlinks}, the url
// and fetch of origin, and remote and merge of the branch. core.fileMode is off: modes on the machine are
// set by fixperms; an executable bit that the commit has and the disk lacks is still fixed.
//
// # What decides
//
// As in git, a file whose inode facts are those of the index is taken as unchanged, unless it is as new as the index itself;
// any other file is compared by content. Deployment wins: tracked files that were changed on the machine are overwritten, as by git reset
// --hard, and reported; so are untracked files, and links, in the place of tracked ones. An untracked folder with files in it where the
// commit has a file is refused before anything is written. Commits made in the working copy stay in its reflog.
//
// Every file is compared with the index by lstat, by as many goroutines as Request.Workers; that is the whole cost of an unchanged tree. Request.Snapshot
// is the snapshot of a caller that has just walked the tree, and replaces those calls. A folder that is the same in both commits, whose files
// are as in the index and whose names are unchanged (its time is older than the last count of untracked names), is not walked. Every other folder is, through
// descriptors. Only Stats.Untracked relies on the times of folders.
//
// Those counts are kept beside the index in .git/corpus-git.memo, with the size and a CRC-32C of the index that they belong to. If its bytes do not match, another
// program wrote the index, or it is damaged: then its SHA-1 is verified, every entry parsed and every folder walked. If they match, and Request.Snapshot is given, the index
// is compared with the snapshot byte by byte, and a folder in which nothing differs is one entry of both lists (collapsed), as in git's sparse index. Not collapsed are
// folders with a submodule or a .gitattributes; and no folder is collapsed if line ends change, if a note may be needed about a file in it, if an
// interrupted checkout is completed, or if few folders would be (collapse). A large index is parsed in parallel, while
// its checksum is computed, and written while its checksums are computed. See ADR 13.
//
// # .gitattributes
//
// Honoured, from the commit's own files, as git 2.39 reads them (TestAttributesAgreeWithGit): what package convert does. Not honoured, with a note in Stats: filter (no program is run;
// lfs pointers stay pointers), other encodings.
// Not read: info/attributes and the machine's files, export-ignore. A change of attributes rewrites the files that it affects. Files over 256 MiB are
// not converted.
//
// # Submodules
//
// The submodules in Request.Modules are checked out in their places, each with its own folder .git that borrows from its repository, and with the same shallow
// boundary as there; submodule.<name>.url of the working copy names that repository. Other gitlinks become empty folders, with a note. A submodule that is removed is
// emptied of its tracked files and its .git before anything is written in its place; a submodule that somebody else created there is left alone.
//
// Refused: what package tree refuses.
//
// # Invariants
//
// No symbolic link inside a working copy is ever followed: every folder is opened by one name below its parent's descriptor. Only an lstat of
// a file uses its path, with an lstat of each folder on it: nothing is read, written or removed because of the result. A file
// is written under a temporary name and renamed, so a reader sees the old or the new one (in a folder that this checkout itself made,
// it is written in place). The index is written last, into index.lock, which becomes the index; the folder counts, which only a Sync reads, in place.
//
// # Concurrency
//
// One Sync per working copy at a time, held by flock on .git/corpus-git.lock and git's own .git/index.lock; others wait for a short
// time and get fault.Busy.
//
// # A crash
//
// It leaves some files new, some old, temporary files .corpus-git-tmp-*, the old index or the new one, folder counts that belong to it or not, an index.lock of ours, and
// .git/corpus-git.checkout, which names the commit. The next Sync, to the same commit or another, removes these, determines from that commit what the interrupted
// one wrote, and completes the checkout.
package checkout
