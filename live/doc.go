// Package live reads what is live in a project, between deployments: its configuration (Projects), the units it runs (Units), and its
// periodic checks (Checks).
//
// It reads the deployed branch, through procedures. It never deploys, moves no ref, and writes no journal. It keeps deployments out while
// it acts on units. It redacts what people see. A crash leaves nothing.
package live
