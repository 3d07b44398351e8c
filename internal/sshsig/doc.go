// Package sshsig verifies SSH signatures of files and texts, as ssh-keygen -Y sign makes them, and reads allowed_signers files.
//
// Sources: OpenSSH, PROTOCOL.sshsig, for the format; ssh-keygen(1), "ALLOWED SIGNERS", for the file. It signs nothing, and does not decide whether a
// key belongs to an authorized signer: the caller does.
package sshsig
