// Package compile turns an SLS file and all that it includes into a Program: the states in the order they run.
//
// In Salt's words: render (compile.go), high data (high.go, extend.go), low chunks (chunk.go), requisites and their order
// (keywords.go, graph.go), and the checks before anything runs (precheck.go): functions, arguments, modules and templates
// that are not known. explain.go says where a file is wrong and what Salt would be needed for.
//
// It runs no state and changes nothing on the machine. What can't be known before the file runs makes the Program Deferred; what Salt
// supports and this program does not is a NeedError.
package compile
