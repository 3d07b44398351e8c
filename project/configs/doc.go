// Package configs records what was applied: immutable configs, each identified by the hash of its content, and their deployments, which
// bind a config to a server with inputs, an action, a state, outputs and times.
//
// It owns two tables. Triggers of the database prevent changing a config, removing one that a deployment refers to, and changing a
// deployment's bindings. It runs nothing. The rows are an index for people, written lazily: a power cut may lose the newest; the next
// start marks a deployment that a crash left in progress as failed.
//
// Source: OpenStack documentation, "Software configuration": resources SoftwareConfig and SoftwareDeployment.
package configs
