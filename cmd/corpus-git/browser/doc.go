// Package browser contains only tests: they drive the pages in a real Chromium against a running server. They are built with the tag "browser":
//
//	make browser
//
// Chromium is searched in PATH. Screenshots of each page, wide and narrow, are written to the directory of go test -artifacts -outputdir DIR. With
// CORPUS_GIT_AXE=FILE (axe-core's axe.min.js) each page is also checked with axe.
package browser
