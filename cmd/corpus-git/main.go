// Command corpus-git is a git server to which a push is a deployment.
package main

import (
	"os"

	"corpus-git/cmd/corpus-git/app"
)

func main() {
	os.Exit(app.Main(app.Process{
		Args: os.Args[1:], Environment: app.Environment{Env: os.Environ(), UID: os.Geteuid()}, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}))
}
