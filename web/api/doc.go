// Package api implements version 1 of the HTTP API, which exposes the verbs as resources.
//
// It owns the operations, their OpenAPI document, the stored responses to requests with an Idempotency-Key, and rate limits. It decides nothing: each operation
// is a command line for Run, the only implementation of the verbs (ADR 9), so permissions, audit log and error messages are those of the command line and of
// ssh. The caller of Serve determines the identity of a request.
//
// Invariants: client input never becomes an option of a command line, only the value of an option or an argument after "--". A read-only identity can only use
// GET. A request with an Idempotency-Key is run once, or its result is unknown and a repetition is told so.
//
// An API is safe for concurrent use; requests with the same idempotency key exclude each other. A crash leaves a key without a known response until it expires.
package api
