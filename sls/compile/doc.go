// Package compile turns an SLS file and everything that it includes into a Program: the states in the order in which they run.
//
// In Salt's terms: render (compile.go), high data (high.go, extend.go), low chunks (chunk.go), requisites and their order
// (keywords.go, graph.go), and the checks before anything runs (precheck.go): unknown functions, arguments, modules and templates.
// explain.go reports where a file is wrong and what needs Salt.
//
// It runs no state and changes nothing on the machine. What can't be known before the file runs makes the Program Deferred; what Salt
// supports and this program does not is a NeedError.
package compile
