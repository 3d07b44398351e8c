// Package live reads what is live in a project, between deployments: its configuration (Projects), the units it runs (Units), and its
// periodic checks (Checks).
//
// It reads the deployed branch, through procedures. It never deploys, moves no ref, and writes no journal. It blocks deployments while it
// acts on units. It redacts what people see. A crash leaves nothing behind.
package live
