package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// The scenarios interop_*.txtar hold the server to clients that others wrote. git and ssh must be there; each other client is
// skipped, with the reason, where it is not installed, and is a failure where CI=true: .ci/interop installs them. For those
// without a command line there are drivers under testdata/interop: small programs that clone, push and fetch through a library.
// Beside the commands of every scenario they know:
//
//	same-history A B [REV [R]] both repositories are sound, and REV (HEAD) of A reaches the same objects as R (REV) of B
//	python MODULE FILE ARG...  run a driver under a python that has MODULE; condition [python:MODULE]
//	jgit ARG...                run the driver for JGit; condition [jgit]
//
// and the condition [client:PROGRAM] for a client of its own.
//
// CORPUS_GIT_PYTHON names another python than those of PATH. JGit comes from the local Maven repository: nothing is downloaded
// by a test; testdata/interop/jgit/pom.xml says how to fill it.

// interopCondition reports whether a client is installed: [python:MODULE], [jgit], [client:PROGRAM]. A missing one is an error
// where nothing may be skipped.
func interopCondition(cond string) (holds, known bool, err error) {
	if module, ok := strings.CutPrefix(cond, "python:"); ok {
		holds, known = python(module) != "", true
	}
	if program, ok := strings.CutPrefix(cond, "client:"); ok {
		_, err := exec.LookPath(program)
		holds, known = err == nil, true
	}
	if cond == "jgit" {
		holds, known = jgitClasspath() != "", true
	}
	if known && !holds && os.Getenv("CI") == "true" {
		err = fmt.Errorf("%s is missing, and CI=true skips nothing: run .ci/interop", cond)
	}
	return holds, known, err
}

var pythons sync.Map // module to interpreter

// python finds an interpreter that has a module; "" if there is none.
func python(module string) string {
	if p, ok := pythons.Load(module); ok {
		return p.(string)
	}
	found := ""
	for _, p := range []string{os.Getenv("CORPUS_GIT_PYTHON"), "python3", "/usr/bin/python3"} {
		if p != "" && exec.Command(p, "-c", "import "+module).Run() == nil {
			found = p
			break
		}
	}
	pythons.Store(module, found)
	return found
}

// jgitClasspath is "" if Java, Maven or what pom.xml names is missing.
var jgitClasspath = sync.OnceValue(func() string {
	if _, err := exec.LookPath("java"); err != nil {
		return ""
	}
	f, err := os.CreateTemp("", "jgit-classpath-")
	if err != nil {
		return ""
	}
	defer os.Remove(f.Name())
	defer f.Close()
	pom := filepath.Join("testdata", "interop", "jgit", "pom.xml")
	if exec.Command("mvn", "--offline", "-q", "-B", "-f", pom, "dependency:build-classpath", "-Dmdep.outputFile="+f.Name()).Run() != nil {
		return ""
	}
	text, err := os.ReadFile(f.Name())
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
})

func driver(ts *testscript.TestScript, elem ...string) string {
	return filepath.Join(append([]string{ts.Getenv("INTEROP")}, elem...)...)
}

func cmdPython(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: python MODULE FILE ARG...")
	}
	p := python(args[0])
	if p == "" {
		ts.Fatalf("no python has %s", args[0])
	}
	ts.Check(ts.Exec(p, append([]string{driver(ts, args[1])}, args[2:]...)...))
}

func cmdJGit(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: jgit ARG...")
	}
	ts.Check(ts.Exec("java", append([]string{"-Duser.home=" + ts.Getenv("HOME"), "-cp", jgitClasspath(), driver(ts, "jgit", "Interop.java")}, args...)...))
}

// cmdSameHistory compares what two repositories hold, object by object.
func cmdSameHistory(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 4 {
		ts.Fatalf("usage: same-history A B [REV [REV-OF-B]]")
	}
	revs := [2]string{"HEAD", "HEAD"}
	switch len(args) {
	case 3:
		revs = [2]string{args[2], args[2]}
	case 4:
		revs = [2]string{args[2], args[3]}
	}
	var lists [2]string
	for i := range lists {
		dir := ts.MkAbs(args[i])
		git := func(arg ...string) string {
			cmd := exec.Command("git", append([]string{"-c", "safe.directory=*", "-C", dir}, arg...)...)
			// A partial clone may fetch what it lacks.
			cmd.Env = append(environ(ts), "GIT_SSH_COMMAND="+ts.Getenv("GIT_SSH_COMMAND"))
			out, err := cmd.CombinedOutput()
			if err != nil {
				ts.Fatalf("%s: git %s: %v\n%s", dir, strings.Join(arg, " "), err, out)
			}
			return string(out)
		}
		git("fsck", "--full", "--strict", "--no-dangling", "--no-progress")
		lists[i] = git("rev-list", "--objects", "--topo-order", revs[i])
	}
	if lists[0] != lists[1] {
		ts.Fatalf("%s and %s differ: %d lines and %d", revs[0], revs[1], strings.Count(lists[0], "\n"), strings.Count(lists[1], "\n"))
	}
	if lists[0] == "" {
		ts.Fatalf("%s reaches nothing", revs[0])
	}
}

func interopSetup(env *testscript.Env) error {
	dir, err := filepath.Abs(filepath.Join("testdata", "interop"))
	if err != nil {
		return fmt.Errorf("find the drivers: %w", err)
	}
	env.Setenv("INTEROP", dir)
	return nil
}
