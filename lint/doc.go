// Package lint checks a working tree as a push of it would be checked, and reports every error, not only the first; for a project of the
// Salt-based corpus it also reports what runs each of its files, and which lines to change.
//
// It uses the parts of a server with a temporary root, and runs git to find what would be pushed. It runs nothing from the project, and
// writes to the working tree only through Change. A crash leaves a temporary folder.
package lint
