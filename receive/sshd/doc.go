// Package sshd is the SSH server: it authenticates clients and passes on their commands, and knows nothing of git or of deployments.
//
// It owns the host key, the listeners, the connections and the sessions on
// them. A Handler gets each session's command, streams and the identity of
// the key that authenticated; its return value becomes the exit status.
// Protocols: RFC 4251 to 4254, and OpenSSH's PROTOCOL file for keepalive.
//
// It offers no password, shell, subsystem, forwarding or agent. The library (gliderlabs/ssh) leaves the following to its caller; each has
// its test:
//
//   - Identity is taken where the signature was verified, never from a key that was merely offered (CVE-2024-45337).
//   - Without a handler of keys the library lets everybody in: there always is one, and without Keys nothing starts.
//   - Before authentication a connection has one deadline that no byte prolongs; the library has none.
//   - A session's context ends with its channel: behind a multiplexing client the connection lives on.
//
// Invariants: connections, sources, sessions, command lines and waiting are limited by Limits. A write that is not read ends its session,
// or its connection if the transport is not read. A disconnection because of a limit is logged with the limit's key.
//
// Concurrency: a Server's methods may be called concurrently. Each session
// runs in its own. Shutdown lets sessions end; Close does not.
//
// A crash leaves at most a temporary file beside the host key.
package sshd
