// Package sshd is the SSH server: it authenticates clients and passes on their commands, and knows nothing of git or of deployments.
//
// It owns the host key, the listeners, the connections and the sessions on
// them. A Handler receives each session's command, streams and the identity of
// the key that authenticated; its return value becomes the exit status.
// Protocols: RFC 4251 to 4254, and OpenSSH's PROTOCOL file for keepalive.
//
// It offers no password, shell, subsystem, forwarding or agent. The library (gliderlabs/ssh) leaves the following to its caller; each is
// tested:
//
//   - The identity is set once the signature is verified, never from a key that was merely offered (CVE-2024-45337).
//   - Without a handler for keys the library lets everybody in: there is always one, and without Keys nothing starts.
//   - Before authentication a connection has one deadline that received data does not extend; the library has none.
//   - A session's context ends with its channel: with a multiplexing client the connection stays open.
//
// Invariants: connections, sources, sessions, command lines and waiting are limited by Limits. A write that the client does not read ends
// its session, or its connection if the client does not read the transport. A disconnection because of a limit is logged with the limit's
// key.
//
// Concurrency: a Server's methods may be called concurrently. Each session
// runs in its own goroutine; a session that it keeps goes on without one. Shutdown lets sessions end; Close does not.
//
// A crash leaves at most a temporary file next to the host key.
package sshd
