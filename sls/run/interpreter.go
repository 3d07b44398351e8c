package run

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/sls"
)

// interpreter checks the beginning of an executable: it must name an interpreter or be an ELF file. missing is the interpreter if this machine does not
// have it: an earlier step may install it.
//
// Source: execve(2), env(1).
func interpreter(in *sls.Input) (missing string, err error) {
	wrong := func(says, hint string) error {
		return fault.New(fault.Failed, "check "+in.SLS, "%s", says).WithPos(fault.Pos{File: shownScript(in), Line: 1}).WithHint("%s", hint)
	}
	f, err := os.Open(in.Script)
	if err != nil {
		return "", fault.New(fault.Internal, "check "+in.SLS, "%w", err)
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 256) // the kernel reads no more of the line
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", fault.New(fault.Internal, "check "+in.SLS, "%w", err)
	}
	line, _, _ := bytes.Cut(head[:n], []byte("\n"))
	text, ok := strings.CutPrefix(string(line), "#!")
	if !ok {
		if bytes.HasPrefix(head[:n], []byte("\x7fELF")) {
			return "", nil
		}
		return "", wrong("it cannot be started: it does not begin with #! and an interpreter", "begin it with  #!/bin/sh , commit, and push again")
	}
	if strings.HasSuffix(text, "\r") {
		return "", wrong("it cannot be started: its lines end in carriage returns, which belong to the interpreter's name", "convert it, as with  sed -i 's/\\r$//' , commit, and push again")
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		return "", wrong("it cannot be started: no interpreter follows #!", "begin it with  #!/bin/sh , commit, and push again")
	}
	if program := words[0]; filepath.IsAbs(program) && !ownFile(in, program) && !runnable(program) {
		return program, nil
	}
	if filepath.Base(words[0]) != "env" || len(words) == 1 {
		return "", nil
	}
	if words[1] != "-S" { // the kernel passes the rest as one argument
		words = []string{"env", strings.Join(words[1:], " ")}
	}
	for _, w := range words[1:] {
		if strings.HasPrefix(w, "-") || strings.Contains(w, "=") {
			continue
		}
		if !inPath(in, w) {
			return w, nil
		}
		break
	}
	return "", nil
}

// ownFile reports whether a path is below the project's tree, whose files may come with the deployment.
func ownFile(in *sls.Input, file string) bool {
	if in.Cfg == nil {
		return false
	}
	root, _ := in.Cfg.GetStr("project_root")
	dir, ok := root.(string)
	return ok && strings.HasPrefix(filepath.Clean(file), dir+"/")
}

// inPath reports whether a program is in the PATH of steps; a relative path counts as one that is.
func inPath(in *sls.Input, program string) bool {
	if strings.Contains(program, "/") {
		return !filepath.IsAbs(program) || ownFile(in, program) || runnable(program)
	}
	for _, kv := range in.Host.Environ {
		dirs, ok := strings.CutPrefix(kv, "PATH=")
		for _, dir := range filepath.SplitList(dirs) {
			if ok && runnable(filepath.Join(dir, program)) {
				return true
			}
		}
	}
	return false
}

// runnable reports whether a file can be run; one that this process cannot see counts as runnable.
func runnable(file string) bool {
	fi, err := os.Stat(file)
	return (err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0) || (err != nil && !errors.Is(err, fs.ErrNotExist))
}
