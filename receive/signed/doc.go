// Package signed reads and verifies what git clients sign: push certificates, commits and tags.
//
// It owns the format of a push certificate (git's Documentation/gitprotocol-pack, "Push Certificate"), and determines who made a signature: a principal of
// this server, by its SSH keys and certificates; a line of the file of allowed signers; a key of the OpenPGP keyring that the operator keeps.
//
// It does not decide where a signature is demanded, and changes nothing. A good signature by an unknown signer is ErrUnknown; a bad one
// is fault.Refused.
//
// Invariants: what is read from a certificate is what was signed, byte for byte; nothing in it counts before Verify. A nonce is sent to one push only, so that
// no certificate counts twice.
package signed
