// Package broker is the hub's side of agents that connect over NATS: it decides which of them a NATS server lets in, and has the sessions of the hub over it.
//
// It owns the folder layout.State.NATS: the hub's keys, and the configuration of the server. It does not run the server, and does not decide what an agent may do: its
// requests run as verbs, with the identity of its key, as over ssh. Nothing is stored in NATS: orders are core NATS messages.
//
// Invariants: a connection proves an agent's own ed25519 key (as a NATS NKey) that is known to access, and reaches the subjects of that connection only. What runs over
// a connection ends with it. Without nats_url nothing is started.
//
// A crash leaves nothing; agents connect again.
package broker
