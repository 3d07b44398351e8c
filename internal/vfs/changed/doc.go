// Package changed tells which entries of some folders may have been created, moved there, or given other owners, modes or extended attributes since
// a moment, without looking at those folders: the kernel reports every such change of a whole file system, by whatever process, path, mount,
// descriptor or hard link it was made (fanotify(7), FAN_MARK_FILESYSTEM).
//
// It reads nothing while the changes are made. Ask for them once, with End and In; every error means that it can't tell, and that the caller must look
// at everything: no privileges, a file system other than ext4 and tmpfs, more changes than the kernel keeps, a mount, a file with several names.
//
// Invariants: what In leaves out has the owner, mode, type and extended attributes that it had at Begin, or is no longer in the folder; after BeginAll,
// also the content and size, and it is still there. Too
// much may be named, never too little. No descriptor of a watched folder is open between the calls: it can be unmounted.
package changed
