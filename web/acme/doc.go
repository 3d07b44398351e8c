// Package acme gets and renews the TLS certificates of the web listener with ACME (RFC 8555).
//
// It owns the folder of account keys and certificates below the state directory, and the listener of http-01 challenges; tls-alpn-01 challenges
// (RFC 8737) are answered by the web listener's own handshakes. The configuration decides the host names. Certificates of other names are never requested or
// used, whatever a client sends.
//
// Certificates are requested in the background, which never delays the server's start; until there is one, handshakes fail. A crash leaves complete files only;
// unfinished requests are repeated at the next start.
package acme
