// Package prepare makes a node of a machine: a container of this machine's, or one that is reached by ssh.
//
// It owns the steps, their order, and the journal of each machine (init.json in its folder): base system, keys, address, name, firewall, environment,
// agent, node, deployment. What a step does in the machine it does by the machine's driver.
//
// It does not know what a node is to the server: that is told by the server's own commands, which Plan.Verb runs.
//
// Invariants: each step can be repeated, whatever its first run had done when it was killed. A step is recorded as done after what it made is durable.
//
// A crash leaves a step begun; the next run begins with it.
package prepare
