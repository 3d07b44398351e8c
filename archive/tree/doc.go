// Package tree reads, compares and copies trees of files as they are: content with holes, types, twelve mode bits, owners, times in nanoseconds,
// links, extended attributes, devices.
//
// It owns the manifest, which lists every entry of a tree with its attributes and which file it was; Scan, which looks at each entry of a live tree once;
// Plan, which decides what a copy has to do where most of it lies there already; Copier, which does it; Writer, which makes entries from elsewhere (a tar);
// Compare, which tells a tree from what a manifest says. It knows neither projects nor archives.
//
// Trees may be written to while they are read. Everything is reached from an open folder, and no link is followed. Nothing is synced here but by
// CopyOptions.Sync: what is durable, and when, is the caller's. A crash leaves a half copy; only Partial can say what of it is right, in memory.
package tree
