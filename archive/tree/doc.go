// Package tree reads, compares and copies trees of files as they are: content with holes, types, twelve mode bits, owners, times in nanoseconds,
// links, extended attributes, devices.
//
// It owns the manifest, which lists every entry of a tree with its attributes and which file it was; Scan, which lists a live tree and
// looks at each entry once; Plan, which decides what to copy if most of it already exists; Copier, which copies it; Writer, which
// creates entries from another source (a tar); Compare, which compares a tree with a manifest. It knows neither projects nor archives.
//
// Trees may be written to while they are read: everything is opened relative to an open folder, and no link is followed. Only
// CopyOptions.Sync syncs: durability is up to the caller. A crash leaves an incomplete copy; only Partial knows, in memory, which part of it is
// right.
package tree
