// Package live is what is live in a project, between deployments: its configuration (Projects), the units it runs (Units), and
// its periodic checks (Checks).
//
// It reads what the branch that deploys has, through procedures. It never deploys, moves no ref, and writes no journal. It keeps
// deployments out while it acts on units. What a person sees of it is redacted here. A crash leaves nothing behind.
package live
