// Package sshd is the SSH server: it knows who is connected and which command
// they sent, and nothing of git or of deployments.
//
// It owns the host key, the listeners, the connections and the sessions on
// them. A Handler gets each session's command, streams and the identity of
// the key that authenticated; its return value becomes the exit status.
// Protocols: RFC 4251 to 4254, and OpenSSH's PROTOCOL file for keepalive.
//
// It never offers a password, a shell, a subsystem, forwarding of any kind or
// an agent. The library (gliderlabs/ssh) leaves some of this to its caller; each
// has its test:
//
//   - Identity is taken where the signature was verified, never from a key that was merely offered (CVE-2024-45337).
//   - Without a handler of keys the library lets everybody in: there always is one, and without Keys nothing starts.
//   - Before authentication a connection has one deadline that no byte prolongs; the library has none.
//   - A session's context ends with its channel: behind a multiplexing client the connection lives on.
//
// Invariants: connections, sources, sessions, command lines and waiting are bounded by
// Limits. A write that nobody reads ends its session, and its connection where not even the transport is read. A client that is
// disconnected by a limit is logged with the limit's key.
//
// Concurrency: a Server's methods may be called by any goroutine. Each session
// runs in its own. Shutdown lets sessions end; Close does not.
//
// A crash leaves at worst a temporary file beside the host key.
package sshd
