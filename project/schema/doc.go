// Package schema reads a project's declarations of values: the inputs that its pillar and the command line set (.salt/inputs.yaml), and
// the outputs that its steps write (.salt/outputs.yaml): their types, defaults and constraints, and which are secret.
//
// It parses these files, and validates values without ever showing them. It does not know the layers of the configuration, runs nothing,
// and stores nothing: a crash leaves nothing behind.
//
// Source: OpenStack documentation, "Heat Orchestration Template (HOT) specification", parameters and parameter constraints.
package schema
