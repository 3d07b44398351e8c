// Package permissions sets the owners, modes and access control lists of a project's files, and reports files that differ.
//
// It owns the rules of a project's trees (Trees: the defaults, and the project's `permissions`), the walk that applies them, and Reset, which
// projects' scripts call. It knows no deployment: the procedure fixperms decides when to apply them, and reports the result.
//
// Invariants: only what differs is changed; no symbolic link is followed or changed; a file that also has a name outside the tree stays
// as it is. A crash leaves each file either unchanged or fixed, and another walk completes it.
package permissions
