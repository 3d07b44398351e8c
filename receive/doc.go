// Package receive serves git clients: pushes and fetches.
//
// It owns the repositories of every project (Repositories; Open returns a handle), and the commands available over ssh (Service): it
// resolves paths, checks permissions, and starts the conversation of a push or a fetch. Objects, refs, checkouts and the wire format
// belong to package git. Its parts are:
//
//	sshd      connections, identity, sessions
//	session   the push protocol
//	signed    push certificates, signatures of commits and tags
//	submodule fetching the submodules of what was pushed
//	handover  pushes that git itself received, by the path of a repository
//
// It never deploys: a push that deploys is passed to a session.Deployer. It moves every ref except the deployed one, which the Deployer
// moves through a Repository.
//
// Invariants: the identity is the key that authenticated. A client without permission on a project can't find out whether it exists.
// Nothing that was pushed is visible before it has been checked. The zero Service refuses everything.
//
// Concurrency: Repositories and Service may be used by any goroutine. A repository is opened once and shared; it is closed when it has not
// been used for a while. Objects are removed only while the repository is not in use.
//
// A crash leaves quarantines (objects/incoming-*), *.lock and incomplete files, which are removed when a repository is first opened: one
// process owns the state. Writes in a repository are recorded first (Repositories.Underway), so that a start after a crash cleans only
// those repositories, immediately.
package receive
