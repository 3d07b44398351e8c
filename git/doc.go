// Package git is the git engine: objects, packs, refs, the wire format and checkouts, without a server
// around them. Its packages import only each other and internal packages, and could be a separate module.
//
//	object      the one parser of commits, trees and tags, modes, peeling, walks by date
//	pack        reading, indexing and writing packs
//	store       the objects of a repository, quarantines, connectivity, maintenance
//	refs        refs, loose and packed, with locks and compare-and-swap
//	fsck        what git fsck --strict refuses of an object
//	pktline     framing of the protocol (gitprotocol-common(5))
//	upload      the serving side of a fetch (gitprotocol-v2(5), gitprotocol-pack(5))
//	tree        what a commit holds: a file system, differences, history
//	attributes  what .gitattributes say of a path
//	convert     line ends, ident and encodings of files
//	index       the index file
//	checkout    working copies
//
// It owns what is below a repository's directory and a working copy's .git. It does not check permissions and knows nothing of SSH (package
// receive does both), nor of deployments.
//
// Each package's own comment states its invariants and what a crash leaves.
package git
