// Package fetch reads what the argument source names (salt://, http(s)://, file://, paths), renders it, and verifies it
// with source_hash and signatures.
//
// A password in a URL appears in no message.
package fetch
