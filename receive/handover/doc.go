// Package handover gives the server a push that came to git itself: git push with the path of a repository, or through another ssh
// server. Nothing that git's own receive-pack stores is a deployment, so it must not move a branch here.
//
// It owns what runs in git's hooks (githooks(5)), in a process of its own beside the server: pre-receive, which refuses where no
// server can take the push, before anything is stored; and proc-receive, which git runs in place of moving refs: it sends the
// commands and their objects to the server as any client does, streams what the server says, and gives git the server's report.
//
// It never moves a ref, and trusts no earlier check: the server checks the objects as those of any push.
//
// A crash leaves objects in the repository that no ref names, which maintenance removes.
package handover
