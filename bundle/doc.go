// Package bundle is a release in one file: everything that a deployment pins, so that another machine can deploy exactly that.
//
// It owns the format, which can be read as a stream:
//
//	corpus-git bundle 1
//	{"release":{…},"digest":"…","deployment":"…","packs":[…]}    Manifest, one line of JSON
//	ssh-ed25519 AAAA… BASE64                                     who signed that line: key and signature, as SSH encodes them (RFC 4253)
//	the packs, one after the other                               as long as stated in the manifest (gitformat-pack(5)): code, pillar, their submodules, recipes
//
// The first line of one that names recipes ends in 2: a program that does not know them refuses it.
//
// A Release is identified by the digest of its content: two bundles with the same digest deploy the same. The packs hold what the other
// machine lacks, and are not part of the digest; the manifest has a SHA-256 of each, so that the signature covers them.
//
// It reads and writes repositories only through Repository, and starts nothing. The caller of Open decides whom to trust.
//
// Invariants: nothing of a bundle is used before the signature of its manifest is verified, and nothing of a pack is published before its
// digest is. What is read is limited. A commit that neither the bundle nor the machine has is fault.Refused.
//
// A crash in Make leaves a temporary file without a name, a crash in Take only objects that maintenance removes.
package bundle
