// Package upload is the server of git-upload-pack: clone, fetch and ls-remote, without a git binary.
//
// It owns the conversation, in protocols 0, 1 and 2 (gitprotocol-pack(5), gitprotocol-v2(5)), and the choice of objects: negotiation, shallow
// boundaries, filters of partial clones. It reads the object store and the refs and changes neither; package pack writes the bytes of the pack. It knows no
// SSH, no keys and no permissions: the caller of Serve has decided that the client may read.
//
// Invariants: refs below refs/corpus/ and those that Request.Hidden names are never shown, and an object that no visible ref leads to is never
// sent, even if it is in the store. No number or count from the client is trusted: see Limits. A client is told why it is refused, but of an internal
// error only that there was one.
//
// Concurrency: Serve may run any number of times at once on one store. Each call has one goroutine, and one more that sends keepalives on an idle
// connection; both have ended when it returns. A goroutine that still reads what a refused client sends ends with its stream, which the caller ends.
//
// A crash leaves nothing: nothing is written.
package upload
