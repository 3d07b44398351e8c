package receive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/access"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/project"
)

// HandOver configures how git itself, when it receives a push by the path of a repository, passes it to the server; see package handover.
// The zero value writes no hooks.
type HandOver struct {
	// Program is the path of our program, Socket that of the server's socket; both are absolute.
	Program, Socket string
}

// hookMark is contained in all hooks that we write, so that they can be recognised.
const hookMark = "# Written by corpus-git, and again where it differs: a push that comes to git itself is for the server to take."

// procReceive makes git's receive-pack run the hook proc-receive instead of moving refs, and accept push options: git-config(1).
const procReceive = `[receive]
	procReceiveRefs = refs
	advertisePushOptions = true
`

// handOver writes the hooks of a repository, and the part of its configuration that makes git run them. It is idempotent.
func (r *Repository) handOver(dir string) error {
	if r.all.HandOver.Program == "" {
		return nil
	}
	f := r.all.fs()
	hooks := filepath.Join(dir, "hooks")
	if err := f.Mkdir(hooks, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, hook := range []string{"pre-receive", "proc-receive"} {
		text := fmt.Sprintf("#!/bin/sh\n%s\nexec %s hook %s --socket %s\n", hookMark, shellWord(r.all.HandOver.Program), hook, shellWord(r.all.HandOver.Socket))
		path := filepath.Join(hooks, hook)
		old, err := os.ReadFile(path)
		switch {
		case err == nil && string(old) == text:
			continue
		case err == nil && !bytes.Contains(old, []byte(hookMark)):
			r.all.Log.Warn().Str("project", string(r.name)).Str("hook", path).Msg("a foreign hook was kept: pushes by path may not be deployed")
			continue
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		}
		if err := vfs.WriteFileAtomic(f, path, []byte(text), 0o755); err != nil {
			return err
		}
	}
	path := filepath.Join(dir, "config")
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if bytes.Contains(bytes.ToLower(old), []byte("procreceiverefs")) {
		return nil
	}
	if len(old) > 0 && old[len(old)-1] != '\n' {
		old = append(old, '\n')
	}
	return vfs.WriteFileAtomic(f, path, append(old, procReceive...), 0o644)
}

// shellWord quotes a string for a shell: POSIX Shell Command Language, 2.2.2.
func shellWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// ReceiveAt receives a push that git itself received, in the repository at dir, from a user who may use the server's socket. With check
// it only reports whether there is such a repository that accepts pushes. Errors before the conversation are written to errw; the result
// is the exit status.
func (s *Service) ReceiveAt(ctx context.Context, who access.Identity, dir string, check bool, in io.Reader, out, errw io.Writer) int {
	fail := func(name project.Name, err error) int {
		s.record(ctx, who, "push", name, quotedPath(dir), err)
		if fault.KindOf(err) == fault.Internal {
			s.Log.Error().Err(err).Str("dir", dir).Msg("push by path failed")
			err = &fault.Error{Kind: fault.Internal, Err: errors.New("internal server error; see the server's log")}
		}
		fmt.Fprintf(errw, "error: %s\n", err)
		if h := fault.HintOf(err); h != "" {
			fmt.Fprintf(errw, "hint: %s\n", h)
		}
		return fault.ExitCode(err)
	}
	name, repo, err := s.repositoryAt(dir)
	if err != nil {
		return fail("", err)
	}
	settings, ok, err := s.Projects.Lookup(ctx, name)
	if err == nil && !ok {
		err = fault.New(fault.Refused, "", "no project %s", name).WithHint("create it with  corpus-git project create %s", name)
	}
	if err == nil {
		err = s.Repos.Open(name, repo).ensure(ctx, settings)
	}
	if err != nil {
		return fail(name, err)
	}
	if check {
		return 0
	}
	p, done, err := s.push(ctx, who, name, repo, settings)
	if err != nil {
		return fail(name, err)
	}
	defer done()
	return p.Serve(ctx, in, out, errw)
}

// repositoryAt returns the repository of a folder, if it is one of ours.
func (s *Service) repositoryAt(dir string) (project.Name, project.Repo, error) {
	unknown := fault.New(fault.Refused, "", "%s is not a repository of this server", quotedPath(dir)).WithHint("its repositories are below  %s", s.Root.Projects())
	here, err := os.Stat(dir)
	if err != nil {
		return "", "", unknown
	}
	name, err := project.ParseName(filepath.Base(filepath.Dir(filepath.Dir(dir))))
	if err != nil {
		return "", "", unknown
	}
	for _, repo := range []project.Repo{project.Code, project.PillarRepo} {
		if there, err := os.Stat(s.Repos.Open(name, repo).Dir()); err == nil && os.SameFile(here, there) {
			return name, repo, nil
		}
	}
	return "", "", unknown
}
