// Package web shows over HTTP what stands and what goes on: pages for people, the JSON
// documents of project/status under /api/v1/, metrics for Prometheus, and /healthz.
//
// It owns the pages, the routes and the counters. It changes nothing: there is no route
// that writes. It reads through Status and Runs, and follows event logs as every other
// follower does, so a browser that does not read never slows a deployment.
//
// Invariants: no asset comes from elsewhere, no script or style stands in a page
// (Content-Security-Policy allows none), and every page works without JavaScript. Without
// a Token only names of this machine are answered to, so that a foreign site cannot read
// us through a visitor's browser (DNS rebinding); with one, every request but /healthz
// must carry it. Every read and write has a deadline.
//
// A Server's methods may be called by any goroutine; each request has its own. A crash
// leaves nothing.
package web
