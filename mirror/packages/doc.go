// Package packages copies packages of a Debian archive, with those that they depend on, so that the copy is an archive of its own.
//
// It drives apt-get(8), in a folder of its own: apt-get verifies the signature of the archive's index and the checksums of its parts, and finds the dependencies. The
// copy has the archive's own index with its signature, so that machines which read it verify the same signature and checksums. It never installs a package, and does
// not read or change this machine's apt.
//
// Invariants: the index (InRelease) is replaced after everything that it leads to is there, durably. What is copied has the checksums of the index.
//
// A crash leaves the old index, and perhaps parts of the new copy, which the next Sync continues with.
package packages
