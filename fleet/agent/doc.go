// Package agent is the agent of a node that connects to its hub: it joins with a token, and keeps connections for the hub's sessions.
//
// It owns the token's format, the agent's own key, and the connection. It never listens, and does not decide what a session does:
// Serve does. The agent verifies the hub's host key, which the token contains; the hub identifies the agent by its key.
//
// Invariants: the private key is generated on the node and stays there. A token can be used once: its key is revoked by the join. A lost
// connection is reestablished for as long as the agent runs.
//
// A crash leaves at most a key that has not joined, which is used again by the next start with the same token.
package agent
