// Package control connects the command line to the server that runs on the same state.
//
// It owns the unix socket and the frames on it: a request (the arguments and what is known
// of the terminal), standard input, then standard output, standard error and the exit
// status back. Who may speak is decided by the kernel: the peer's credentials
// (SO_PEERCRED, unix(7)) must be our own user or root, and the socket has mode 0600.
//
// It never interprets the arguments. Invariants: a frame is at most MaxFrame bytes; a client that disconnects ends its request's context and nothing else; a
// write to a client that does not read times out after WriteIdle. Each connection has its own goroutines.
//
// A crash leaves a stale socket file; Listen replaces it, and Dial treats it as no server. Whoever calls Listen holds the state's lock.
package control
