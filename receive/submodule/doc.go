// Package submodule fetches the commits of a deployment's gitlinks, before anything of the deployment runs.
//
// It owns the bare repositories of submodules, one for each address, in a folder of the project's own (layout.Project.Modules), and the
// client side of git's fetch protocol over https, http, ssh, git and, for projects of this server, a pipe. It never touches
// a working copy (package checkout does), never runs a program, and moves no ref of a project's own repositories.
//
//   - Parse reads a .gitmodules, ParseAddress the URL of one entry, Address.Join a relative one.
//   - Resolver.Tip and Resolver.Commit do the same for a recipe that is given by its URL; Keep drops the commits that no release needs.
//   - Resolver.Resolve looks up every gitlink of a commit that has an entry, and those of its submodules in turn; it fetches what is missing.
//   - Set.WritePack and Receive bring the commits of submodules, without history, to a machine that fetches nothing; Receive also takes recipes, which Stored finds.
//
// # What is fetched from where
//
// A relative URL (./ or ../) is resolved against the address of the superproject: the project's own address on this server, unless the
// project sets another base; in a submodule, that submodule's address. Absolute https, http, ssh (also host:path) and git URLs are fetched.
// Everything else is refused: file:// and paths (CVE-2022-39253), ext:: and other helpers (CVE-2015-7545), URLs that begin with '-'
// (CVE-2017-1000117) or contain control characters.
// Addresses of this machine are not connected to, unless the operator named the host (network.go).
//
// Protocol 2 is preferred, and 0 or 1 used with servers that don't support it: it fetches the one commit, without history, if the server
// serves that, otherwise all branches and tags. Sources: gitprotocol-v2(5), gitprotocol-pack(5), gitprotocol-http(5).
//
// Maintain consolidates the repositories, and removes commits that neither refs of the project's repository (hidden ones of archives and
// deployments included) nor its working copy need.
//
// # Invariants
//
// Received objects are checked like those of a push: the same limits, fsck and connectivity, in a quarantine. refs/corpus/commits/<id> in a
// submodule's repository means that the commit and all of its tree exists; such a commit is never fetched again. Passwords in URLs are sent
// only to their server, and appear in no message, log, name or file.
//
// # Concurrency
//
// Only one fetching Resolve may run at a time for each folder of repositories, which the project's queue ensures, and any number of offline
// ones. Receive may run at the same time: it writes to a repository of its own, to which nothing is fetched. Maintain may run concurrently with offline ones, and removes only while its caller guarantees that there are none (Upkeep.Alone).
//
// # A crash
//
// A crash leaves a quarantine in a submodule's repository, removed by the next fetch there, or objects that nothing refers to, which the
// next fetch fetches again. An interrupted Maintain leaves copies, or objects without a ref, which the next one removes.
package submodule
