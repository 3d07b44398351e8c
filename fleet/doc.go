// Package fleet deploys one push on many machines: the nodes of a project, and the stages in which they get it.
//
// It owns the two files that say so (nodes.yaml of the pillar, .salt/stages.yaml of the code), the table of the nodes that the operator knows, the
// order in which nodes are deployed, and the notes of a rollout, which outlive the server.
//
// It never reaches a machine: Nodes does. It never moves a branch, and decides nothing about what a node does: each runs its own pipeline, with its own
// archive and rollback.
//
// Invariants: nothing is deployed on any node before every node has what the deployment pins. A stage begins when the one before it has ended
// well. After a failure no further node is begun; the failing one has rolled itself back; those that are live are rolled back too, the last first,
// unless on_failure says stop. A node that could not be is named, and stays noted.
//
// A crash leaves the notes of the rollout (layout.State.Rollout): each node that was begun is in them before anything reaches it, so that who takes the
// deployment up can roll it back everywhere.
package fleet
