// Package handover passes a push that git itself receives to the server: git push with the path of a repository, or through another ssh
// server. git's own receive-pack would move the branch without a deployment.
//
// It owns what runs in git's hooks (githooks(5)), in a separate process from the server: pre-receive, which refuses before anything is
// stored if no server is available; and proc-receive, which git runs instead of moving refs: it sends the commands and their objects to
// the server as a client does, prints the server's output, and returns the server's report to git.
//
// It never moves a ref. The server checks the objects like those of any push.
//
// A crash leaves objects in the repository that no ref names, which maintenance removes.
package handover
