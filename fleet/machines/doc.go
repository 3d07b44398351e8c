// Package machines reaches the nodes of a rollout: it implements fleet.Nodes over the sessions of package remote.
//
// It owns what a node is sent (the bundle of the deployment, with the node's own name and roles) and how long an unreachable one is
// retried. It does not decide which node is next, nor what a node does.
//
// A crash leaves nothing here: a node completes what it has begun, and the progress of the rollout says which were begun.
package machines
