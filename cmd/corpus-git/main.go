// Command corpus-git is a git server to which a push is a deployment.
package main

import (
	"os"
	"runtime"
	"runtime/debug"

	"corpus-git/cmd/corpus-git/app"
)

// gcPercent is how much the heap grows, relative to what is in use, until the collector looks again (GOGC in package runtime). A server waits most of
// its time, and little of what it holds has pointers: collecting twice as often as Go's own 100 costs little, and spares a third of the memory.
const gcPercent = 50

// moreProcs is how many threads more than processors run Go code at once (GOMAXPROCS in package runtime). With none to spare the runtime takes a thread's
// place away 20 µs into a system call and wakes another thread to look for work; the making of a file takes about as long, and a checkout makes thousands.
const moreProcs = 1

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + moreProcs)
	}
	os.Exit(app.Main(app.Process{
		Args: os.Args[1:], Environment: app.Environment{Env: os.Environ(), UID: os.Geteuid()}, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}))
}
