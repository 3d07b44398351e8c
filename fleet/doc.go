// Package fleet deploys one push to many machines: the nodes of a project, in stages.
//
// It owns the two files that configure this (nodes.yaml of the pillar, .salt/stages.yaml of the code), the table of the nodes that the
// operator added, the order in which nodes are deployed, and the progress of a rollout, which survives the end of the server.
//
// It never contacts a machine: Nodes does. It never moves a branch, and does not decide what a node does: each runs its own pipeline,
// with its own archive and rollback.
//
// Invariants: nothing is deployed on any node before every node has received the deployment. A stage begins when the one before it has
// succeeded. After a failure no further node is begun; the failed one has rolled itself back; those that are already live are rolled back
// too, the last first, as configured by on_failure. A node that could not be rolled back is named, and stays recorded.
//
// A crash leaves the progress of the rollout (layout.State.Rollout): a node is recorded before it is contacted, so that recovery can
// continue the deployment, or roll it back.
package fleet
