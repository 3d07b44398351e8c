// Package control lets the command line talk to the server that runs on the same state.
//
// It owns the unix socket and the frames on it: a request (the arguments and what is known
// of the terminal), standard input, then standard output, standard error and the exit
// status back. Who may speak is decided by the kernel: the peer's credentials
// (SO_PEERCRED, unix(7)) must be our own user or root, and the socket has mode 0600.
//
// It never looks at the arguments. Invariants: a frame is at most MaxFrame bytes; a client
// that goes away ends its request's context and nothing else; a client that does not
// read is waited for no longer than WriteIdle. Each connection has its own goroutines.
//
// A crash leaves a socket file that nobody listens on; Listen replaces it, and Dial
// takes it for no server. Whoever calls Listen holds the state's lock.
package control
