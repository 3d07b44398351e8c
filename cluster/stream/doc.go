// Package stream is the log of changes that three hubs share: a stream of JetStream with three replicas.
//
// It owns the stream, and the subjects of messages between hubs, which are stored nowhere. It does not know what a message means, nor who leads.
//
// Invariants: a message that was appended is stored by a majority of the NATS servers, and on their disks if they are configured with `sync_interval: always`. A message is only appended
// right after the one that the caller read last, so of two writers one is refused. A message is never changed; the oldest are removed by Shorten only.
//
// A crash leaves a message that is appended or not; which of them the next attempt with the same id finds out.
package stream
