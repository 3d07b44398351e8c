// Package natslink carries streams of bytes over core NATS, between a hub and the agent of a node.
//
// It owns the names of subjects, the messages of a stream, and the limit on what is under way. It knows neither the bytes of a stream nor who may connect.
//
// Invariants: the bytes arrive once and in order, or the stream fails: messages are numbered, and NATS delivers each at most once. At most window bytes are sent
// ahead of the reader. Nothing is stored in NATS.
//
// A crash leaves nothing; the other side's stream fails.
package natslink
