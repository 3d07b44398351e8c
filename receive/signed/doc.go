// Package signed reads and verifies what clients of git sign: push certificates, commits and tags.
//
// It owns the form of a push certificate (git's Documentation/gitprotocol-pack, "Push Certificate"), and who a signature is by: a principal of this server, by
// its SSH keys and certificates; a line of the file of allowed signers; a key of the OpenPGP keyring that the operator keeps.
//
// It does not decide where a signature is demanded, and changes nothing. A signature that is good and by nobody who is known is ErrUnknown; one that is wrong
// is fault.Refused.
//
// Invariants: what is read of a certificate is what was signed, to the byte; nothing of it counts before Verify. A nonce is given to one push only, so that no
// certificate counts twice.
package signed
