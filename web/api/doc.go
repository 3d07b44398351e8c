// Package api is the HTTP API, version 1: what the verbs do, as resources.
//
// It owns the operations, their OpenAPI document, the stored answers to requests with an Idempotency-Key, and the limits of requests. It decides
// nothing: each operation is a command line for Run, which is the one implementation of the verbs (ADR 9), so rights, the audit log and the words of a refusal are
// those of the command line and of ssh. Whose request it is, the caller of Serve says.
//
// Invariants: what a client sends never becomes an option of a command line, only the value of one or what is behind "--". A read-only
// identity gets no further than GET. A request with an Idempotency-Key is run once, or its end is unknown and the second one is told so.
//
// An API serves any number of goroutines; those of one idempotency key exclude each other. A crash leaves a key whose answer is not
// known, until it expires.
package api
