// Package bundle is a release in one file: what a deployment pins, so that another machine can deploy exactly that.
//
// It owns the format, which is read from the front and needs no seeking:
//
//	corpus-git bundle 1
//	{"release":{…},"digest":"…","deployment":"…","packs":[…]}    Manifest, one line of JSON
//	ssh-ed25519 AAAA… BASE64                                     who signed that line: key and signature, as SSH encodes them (RFC 4253)
//	the packs, one behind the other                              as long as the manifest says (gitformat-pack(5))
//
// A Release is named by the digest of its content: two bundles with the same digest deploy the same. The packs hold what the other machine
// said that it lacks, and are no part of the digest; the manifest has a SHA-256 of each, so that the signature covers them.
//
// It reads and writes repositories only by Repository, and starts nothing. It never decides whom to trust: whoever calls Open does.
//
// Invariants: nothing of a bundle is looked at before the signature of its manifest is verified, and nothing of a pack is published before its
// digest is. What is read is bounded. A commit that a bundle needs and neither holds nor finds is fault.Refused.
//
// A crash leaves of Make a temporary file without a name, and of Take nothing but objects that maintenance removes.
package bundle
