// Package machines contacts the nodes of a rollout: it implements fleet.Nodes over the sessions of package remote.
//
// It owns what a node is sent (the bundle of the deployment, with the node's own name and roles) and how long an unreachable node
// is retried. It does not decide which node is next, nor what a node does.
//
// A crash leaves nothing behind here: a node completes what it has begun, and the progress of the rollout records which nodes were
// begun.
package machines
