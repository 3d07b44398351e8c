// Package receive takes pushes: it is where git clients come in.
//
// It owns the repositories of every project (Repositories; Open gives the handle of one), and what a command
// over ssh may reach (Service): it resolves paths, checks rights, and starts
// the conversation of a push or a fetch. Objects, refs, checkouts and the wire format are
// package git's. Below it lie the parts:
//
//	sshd      connections, identity, sessions
//	access    keys and rights
//	session   the push protocol
//	submodule fetching the submodules of what was pushed
//	handover  pushes that came to git itself, by the path of a repository
//
// It never deploys: what a push asks for goes to a session.Deployer, and this package
// follows. It moves every ref but the one that deploys, which the Deployer
// moves through a Repository.
//
// Invariants: identity is the key that authenticated. Who has no right on a
// project learns nothing about it, not even that it exists. Nothing that was
// pushed is visible before it was checked. The zero Service refuses.
//
// Concurrency: Repositories and Service serve any number of goroutines. A
// repository is opened once and shared; it is closed when nobody has used it for a while. Objects are removed only in a
// moment in which nobody uses the repository.
//
// A crash leaves quarantines (objects/incoming-*), *.lock and half-written files, which are
// swept when a repository is first opened: one process owns the state. Whatever
// writes in a repository is noted first (Repositories.Underway), so that a start
// after a crash sweeps those, and only those, at once.
package receive
