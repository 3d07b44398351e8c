// Package schema has a project's declarations of values: the inputs that its pillar and the command line set (.salt/inputs.yaml), and the
// outputs that its steps write (.salt/outputs.yaml): their types, defaults and constraints, and which of them are secret.
//
// It parses these files, and validates values without ever showing them. It knows no layers of the configuration, runs nothing, and keeps
// nothing: a crash leaves nothing.
//
// Source: OpenStack documentation, "Heat Orchestration Template (HOT) specification", parameters and parameter constraints.
package schema
