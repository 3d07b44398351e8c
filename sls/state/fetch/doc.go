// Package fetch reads what source names (salt://, http(s)://, file://, paths), renders it, and proves it by source_hash and
// by signature.
//
// A password in a URL is in no message.
package fetch
