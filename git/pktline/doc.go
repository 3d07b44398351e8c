// Package pktline frames the git protocol: pkt-lines in both directions and the
// side-band-64k multiplexer on top of them. Drain ends a conversation in which the
// client was refused while it is still sending.
//
// It owns the four hexadecimal digits and nothing above them: capabilities,
// commands and packs belong to other packages. Formats: gitprotocol-common(5)
// and gitprotocol-pack(5).
//
// Invariants: a line never exceeds MaxLine bytes on the wire; a Reader never
// consumes a byte beyond the line it returned other than into its own buffer,
// and returns that buffer (Raw) for the pack that follows the commands.
//
// Concurrency: a Reader and a Writer each serve one goroutine. A Mux serves any
// number: every packet of every band is written whole, under one mutex. Drain may
// leave one goroutine behind, which ends when its caller closes the stream.
//
// A crash leaves nothing.
package pktline
