// Package permissions gives the files of a project the owners, modes and access control lists that they should have, and reports which differ.
//
// It owns the rules of a project's trees (Trees: the defaults, and what the project's `permissions` say), the walk that applies them, and Reset,
// which scripts of projects call. It knows no deployment: the procedure fixperms decides when, and reports.
//
// Invariants: only what differs is changed; no symbolic link is followed or changed; a file with a further name outside of the tree stays
// as it is. A crash leaves each file either unchanged or fixed, and another walk completes it.
package permissions
