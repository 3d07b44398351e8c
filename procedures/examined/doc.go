// Package examined keeps what a deployment has found out about the permissions of its trees, so that fixperms need not look at each file again
// (ADR 13): Synced from the archive to the first fixperms, Known from the first to the second.
//
// Invariant: whatever is not known for certain is walked. It changes nothing, and nothing of it outlives the deployment.
package examined
