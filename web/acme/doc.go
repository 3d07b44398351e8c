// Package acme gets the TLS certificates of the web listener from an authority that speaks ACME (RFC 8555), and renews them.
//
// It owns the folder of account keys and certificates below the state directory, and the listener of http-01 challenges; tls-alpn-01 challenges
// (RFC 8737) are answered by the web listener's own handshakes. It never decides which names are asked for: the configuration does. Certificates of
// other names are never shown or asked for, whatever a client sends.
//
// Getting a certificate goes on in the background and never delays the server's start; until there is one, handshakes fail. A crash leaves what is
// written, each file whole; what was being asked for is asked for again at the next start.
package acme
