// Package web shows projects and deployments over HTTP: pages for people (web/pages), the API (web/api)
// under /api/v1/, metrics for Prometheus, and /healthz.
//
// It owns the metrics and browser sessions. Changes are made only through the API. It follows event logs like any other follower, so a slow browser never slows
// down a deployment.
//
// Invariants: every request except /healthz, /login, and /metrics if the configuration makes it public, must carry a token or a session cookie, on every
// address, as other accounts of this machine, and other sites through a visitor's browser (DNS rebinding), can reach 127.0.0.1. Sessions start with a one-time
// link; the database contains only hashes. Every read and write has a deadline.
//
// A Server is safe for concurrent use; each request has its own goroutine. A crash leaves nothing.
package web
