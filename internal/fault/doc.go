// Package fault says whose fault an error is, and what to do next.
//
// It owns one type, Error, and the kinds that drive behaviour: which exit
// status a command ends with, whether a pusher sees the cause or a deployment
// ID, and whether trying again makes sense.
//
// It never logs, never wraps twice what is already explained, and imports no
// room. Its invariant: an error without a kind is the server's own fault
// (Internal), so a forgotten classification never blames a user and never
// leaks details to one.
package fault
