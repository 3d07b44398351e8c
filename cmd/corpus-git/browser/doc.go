// Package browser holds nothing but tests: the pages in a real Chromium, with a server that is pushed to. They are built with the tag "browser":
//
//	make browser
//
// Chromium is looked for in PATH. Screenshots of each page, wide and narrow, go to the folder that go test -artifacts -outputdir DIR names. With
// CORPUS_GIT_AXE=FILE, axe-core's axe.min.js, each page is held against its rules, too.
package browser
