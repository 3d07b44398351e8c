// Package session speaks git's push protocol with one client: a push is checked, and becomes a deployment or a stored ref, or is refused.
//
// It owns the conversation of git-receive-pack: the advertisement, commands,
// push options, the pack on its way into a quarantine, the deployment's
// output on side-band 2, the report. Formats: gitprotocol-pack(5),
// gitprotocol-capabilities(5), gitprotocol-v2(5) for versions.
//
// It does not decide who may push (its caller has), never moves the deployed ref (the Deployer does, after a successful deployment), and
// knows no SSH.
//
// # Which refs do what
//
//	the deployed branch      a push deploys it; it cannot be deleted
//	refs/heads/master, main  the first of the two to be pushed becomes the deployed branch; master, if both are pushed at once
//	refs/deploy/<any>        deploys: the live commit again, or another one as a push of the deployed branch would
//	refs/plan/<any>          shows what a deployment of the commit would change
//	refs/rollback/<id>       restores what deployment <id> left; refs/rollback/last the previous one
//	refs/tags/*, refs/notes/*  are stored
//	other branches           are refused, or stored if the project allows it
//	refs/corpus/*            are ours: neither shown nor accepted
//
// refs/deploy, refs/plan and refs/rollback are never stored and never advertised, so git sends them every time. One push deploys at most
// once. Other refs in a push that deploys are stored after a successful deployment, and refused otherwise.
//
// Invariants: nothing is published before all of it has been checked; the report names every command once; after Start has accepted the
// deployment the session only follows it, and its end changes nothing. All output goes through one wire: a packet is never split, and the
// report is the last thing on it.
//
// Concurrency: a Push serves one call of Serve. A crash leaves a quarantine, which the store sweeps.
package session
