// Package web shows projects and deployments over HTTP: pages for people, the API (web/api)
// under /api/v1/, metrics for Prometheus, and /healthz.
//
// It owns the pages, the counters and who is logged in. Nothing changes but through the API. What a page shows is what its reader may read. It reads through Status and Runs, and follows event logs as every other
// follower does, so a browser that does not read never slows a deployment.
//
// Invariants: no asset comes from elsewhere, no script or style stands in a page
// (Content-Security-Policy allows none), and every page works without JavaScript. Every
// request but /healthz and /login, and /metrics where the configuration opens it, must carry
// a token or the cookie of a session, on every address: other accounts of this machine
// reach 127.0.0.1, and so does a foreign site through a visitor's browser (DNS rebinding),
// which has no cookie of ours. Sessions begin with a link that can be used once; the
// database holds their hashes. Every read and write has a deadline.
//
// A Server's methods may be called by any goroutine; each request has its own. A crash
// leaves nothing.
package web
