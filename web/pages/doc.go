// Package pages renders the HTML pages of a server's projects, and handles their forms.
//
// It owns templates, style and script, and decides nothing. Pages show what the reader may read, checked for each request. A form sends a request to web/api,
// which runs the verb as the reader ([ADR 28]), so permissions, audit log and error messages are those of the command line. A form contains a token derived
// from the reader's credential (form.go), and an idempotency key. Actions that cannot be undone have a confirmation page.
//
// Invariants: no external assets and no inline script or style (Content-Security-Policy forbids them); every page works without JavaScript; with it, pages
// update through server-sent events. A page has at most 100 kB: lists are paged, logs are split into parts. Foreign content is always escaped.
//
// A Pages is safe for concurrent use. A crash leaves nothing.
package pages
