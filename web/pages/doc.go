// Package pages shows a server's projects to people: HTML pages that are rendered here, and the forms that change something.
//
// It owns templates, style and script, and decides nothing. What it shows is what the rights of the reader allow, asked for each request; what a form
// changes is a request to web/api, which runs the verb as the reader ([ADR 28]), so that rights, audit log and words of a refusal are those of the command line.
// A form carries a token that only its reader's credential gives (form.go), and a key by which the API does nothing twice. What cannot be undone has a page of
// its own that says what will be.
//
// Invariants: no asset comes from elsewhere, no script or style is in a page (Content-Security-Policy allows none), and every page works without
// JavaScript; with it, pages follow what happens by server-sent events. A page has 100 kB at most: lists are cut into pages, logs into parts. What others wrote
// is text, whatever it is.
//
// A Pages may be used by any number of goroutines. A crash leaves nothing.
package pages
