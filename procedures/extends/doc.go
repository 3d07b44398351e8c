// Package extends merges a recipe over others: the recipes of other projects on this server, and of repositories elsewhere, that are listed in
// .salt/extends.yaml.
//
// It owns that file, the order of the recipes (C3, as used for Python's base classes), how they are merged, and which commits a release was
// first deployed with: Pins. It runs nothing, and reads repositories only through Source.
//
// Invariants: once deployed, a commit of a project always has the same recipes, whatever happens to their branches: a redeployment and a
// rollback use the same ones. A file of a stronger recipe hides the files of weaker ones at the same path; folders are merged.
//
// A crash may leave refs of commits that no pin names, which the next Store of the project removes.
package extends
