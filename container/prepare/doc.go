// Package prepare turns a machine into a node: a container on this machine, or a machine that is reached over ssh.
//
// It owns the steps, their order, and the journal of each machine (init.json in its folder): base system, keys, address, name, firewall, environment,
// agent, node, deployment. Steps act on the machine through its driver.
//
// It does not know what the server records about a node: that is done by the server's own commands, which Plan.Verb runs.
//
// Invariants: each step can be repeated, wherever an earlier run was killed. A step is recorded as done once its results are durable.
//
// A crash leaves a step begun; the next run starts with that step.
package prepare
