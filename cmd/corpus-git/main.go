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

// ballast is memory that is asked for and never touched, so that it takes no page of the machine. The collector counts it: a server that holds 2 MB
// of values would collect each time that one more is made, eight times in a small push, which took a third of its processor time. With it
// the heap grows by gcPercent of this, 4 MB, at least in between. That is enough for a push after a collection, and one is made after each deployment that was the only one (memory.Collect).
const ballast = 8 << 20

// moreProcs is how many threads more than processors run Go code at once (GOMAXPROCS in package runtime). With none to spare the runtime takes a thread's
// place away 20 µs into a system call and wakes another thread to look for work; the making of a file takes about as long, and a checkout makes thousands.
const moreProcs = 1

func main() {
	var held []byte
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		held = make([]byte, ballast)
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + moreProcs)
	}
	code := app.Main(app.Process{
		Args: os.Args[1:], Environment: app.Environment{Env: os.Environ(), UID: os.Geteuid()}, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	})
	runtime.KeepAlive(held)
	os.Exit(code)
}
