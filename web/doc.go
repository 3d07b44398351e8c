// Package web shows projects and deployments over HTTP: pages for people (web/pages), the API (web/api)
// under /api/v1/, metrics for Prometheus, and /healthz.
//
// It owns the counters and who is logged in. Nothing changes but through the API. It follows event logs as every other
// follower does, so a browser that does not read never slows a deployment.
//
// Invariants: every
// request but /healthz and /login, and /metrics where the configuration opens it, must carry
// a token or the cookie of a session, on every address: other accounts of this machine
// reach 127.0.0.1, and so does a foreign site through a visitor's browser (DNS rebinding),
// which has no cookie of ours. Sessions begin with a link that can be used once; the
// database holds their hashes. Every read and write has a deadline.
//
// A Server's methods may be called by any goroutine; each request has its own. A crash
// leaves nothing.
package web
