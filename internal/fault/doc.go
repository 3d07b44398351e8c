// Package fault classifies errors by whose fault they are, and carries a hint on what to do next.
//
// It owns one type, Error, and the kinds that drive behaviour: the exit status of a command, whether a pusher sees the cause or a
// deployment ID, and whether trying again makes sense.
//
// It never logs, never wraps an explained error again, and imports no room. Its invariant: an error without a kind is the server's own
// fault (Internal), so that a forgotten classification never blames a user and never reveals details.
package fault
