// Package submodule brings the commits that a deployment's gitlinks name to this machine, before anything of the deployment runs.
//
// It owns the bare repositories of submodules, one for each address, in a folder of the project's own (layout.Project.Modules), and the
// client side of git's fetch protocol over https, http, ssh, git and, for projects of this server, a pipe. It never touches
// a working copy (package checkout does), never runs a program, and moves no ref of a project's own repositories.
//
//   - Parse reads a .gitmodules, ParseAddress the URL of one entry, Address.Join a relative one.
//   - Resolver.Resolve looks every gitlink of a commit up that has an entry, and those of its submodules in turn; what is not here it fetches.
//
// # What is fetched from where
//
// A relative URL (./ or ../) leads from the address of the superproject: from the project's own place on this server, unless the
// project names another base; in a submodule, from that submodule's address. Absolute https, http, ssh (also host:path) and git URLs are fetched
// from there. Everything else is refused: file:// and paths (CVE-2022-39253), ext:: and other helpers (CVE-2015-7545), what begins with '-'
// (CVE-2017-1000117), what holds control characters.
//
// Protocol 2 is spoken, and 0 or 1 with servers that know no other: the one commit, without history, where the server
// gives it; all branches and tags where it does not. Sources: gitprotocol-v2(5), gitprotocol-pack(5), gitprotocol-http(5).
//
// Maintain consolidates the repositories, and removes commits that no ref of the project's repository needs, hidden ones of archives
// and deployments included, nor what lies in its working copy.
//
// # Invariants
//
// What comes is checked as a push is: the same limits, fsck and connectivity, in a quarantine. refs/corpus/commits/<id> in a
// submodule's repository says that the commit and all of its tree is there; a commit that has it is never fetched again. Passwords
// in URLs go to the server they are for, and into no message, log, name or file.
//
// # Concurrency
//
// One Resolve that fetches at a time for each folder of repositories: the project's place in the queue ensures that. Any number of offline ones.
// Maintain works beside offline ones, and removes only in moments in which its caller says that there are none (Upkeep.Alone).
//
// # A crash
//
// It leaves a quarantine in a submodule's repository, swept by the next fetch there, or objects that nothing refers to, which the
// next fetch brings again. A Maintain that is cut short leaves copies, or objects without a ref, which the next one removes.
package submodule
