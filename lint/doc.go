// Package lint looks at a working tree as a push of it would, and says what is wrong: each error, not the first one alone, and for a
// project of the Salt-based corpus what runs each of its files, and which lines to change.
//
// It works with the parts of a server that was made for it, whose root is a temporary folder, and runs git to find what a push would bring.
// It runs nothing of the project, and writes to the working tree only what Change is asked for. A crash leaves a temporary folder.
package lint
