// Package extends lays a recipe over others: the recipes of other projects of this server, and of repositories elsewhere, that  .salt/extends.yaml  names.
//
// It owns that file, the order of the recipes (C3, as for Python's base classes), how they are merged, and which commits a release was
// first deployed with: Pins. It runs nothing, and reads repositories only through Source.
//
// Invariants: once deployed, a commit of a project always has the same recipes, whatever happens to their branches: a redeployment and a
// rollback use the same ones. A stronger recipe's file hides that of weaker ones at its path; folders are merged.
//
// A crash leaves refs of commits that no pin names, which the next Store of the project removes.
package extends
