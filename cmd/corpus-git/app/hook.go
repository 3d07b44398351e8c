package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/control"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/receive/handover"
)

// hookCommand returns the command that the hooks in the repositories run; see package handover.
func (c *command) hookCommand() *cobra.Command {
	var socket string
	cmd := &cobra.Command{
		Use: "hook pre-receive|proc-receive", Short: "Hand a push that came to git itself over to the server", Hidden: true,
		Args: cobra.ExactArgs(1), ValidArgs: []string{"pre-receive", "proc-receive"},
		RunE: func(_ *cobra.Command, args []string) error {
			ctx, stop := untilInterrupted()
			defer stop()
			dir, err := os.Getwd()
			if err == nil {
				dir, err = filepath.EvalSymlinks(dir)
			}
			if err != nil {
				return err
			}
			h := hook{command: c, socket: socket, dir: dir}
			switch args[0] {
			case "pre-receive":
				return h.preReceive(ctx)
			case "proc-receive":
				return handover.ProcReceive(ctx, c.Stdin, c.Stdout, c.Stderr, h.receive, h.pack)
			}
			return fault.New(fault.Usage, "hook", "unknown hook %q", args[0])
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "the server's socket")
	return cmd
}

// hook is one run of a hook, in the repository dir.
type hook struct {
	*command
	socket, dir string
}

// dial connects to the server.
func (h hook) dial() (*control.Client, error) {
	server, err := control.Dial(h.socket)
	switch {
	case errors.Is(err, control.ErrNoServer):
		return nil, fault.New(fault.Refused, "", "no server is running to deploy this push: nothing was stored").
			WithHint("start it with  corpus-git serve , then push again")
	case errors.Is(err, os.ErrPermission):
		return nil, fault.New(fault.Refused, "", "only root and the server's user may push by path: nothing was stored").
			WithHint("push over ssh with a key that has the permission;  corpus-git project show  prints the remotes")
	}
	return server, err
}

// preReceive refuses the push if proc-receive would fail, so that nothing is stored.
func (h hook) preReceive(ctx context.Context) error {
	if err := h.gitKnowsProcReceive(ctx); err != nil {
		return err
	}
	server, err := h.dial()
	if err != nil {
		return err
	}
	defer server.Close()
	code, err := server.Do(ctx, control.Request{Receive: h.dir, Check: true}, nil, h.Stdout, h.Stderr)
	if err != nil {
		return fault.New(fault.Internal, "", "%w", err)
	}
	h.exit = code
	return nil
}

var gitVersion = regexp.MustCompile(`^git version (\d+)\.(\d+)`)

// gitKnowsProcReceive checks that git will not move the branch itself: the hook proc-receive requires git 2.29 (release notes), and has to be configured.
func (h hook) gitKnowsProcReceive(ctx context.Context) error {
	said, err := exec.CommandContext(ctx, "git", "version").Output()
	if err != nil {
		return fault.New(fault.Failed, "git version", "%w", err)
	}
	m := gitVersion.FindSubmatch(said)
	if m == nil {
		return fault.New(fault.Failed, "", "%q is not a known version of git", bytes.TrimSpace(said))
	}
	major, _ := strconv.Atoi(string(m[1]))
	minor, _ := strconv.Atoi(string(m[2]))
	if major < 2 || major == 2 && minor < 29 {
		return fault.New(fault.Refused, "", "%s cannot forward a push to the server; this requires git 2.29 or later", bytes.TrimSpace(said)).WithHint("push over ssh")
	}
	said, err = exec.CommandContext(ctx, "git", "config", "--get-all", "receive.procReceiveRefs").Output()
	if err != nil || !strings.Contains("\n"+string(said), "\nrefs\n") {
		return fault.New(fault.Refused, "", "with the configuration of %s, git would move the branch without a deployment", h.dir).
			WithHint("git -C %s config receive.procReceiveRefs refs", printable.Word(h.dir))
	}
	return nil
}

// receive returns a conversation with the server; see handover.Server.
func (h hook) receive(ctx context.Context, in io.Reader, out io.Writer) (int, error) {
	server, err := h.dial()
	if err != nil {
		return 0, err
	}
	defer server.Close()
	code, err := server.Do(ctx, control.Request{Receive: h.dir}, in, out, h.Stderr)
	if err == nil && code != 0 {
		err = fmt.Errorf("the server exited with status %d", code)
	}
	return code, err
}

// pack is handover.Pack, by git-pack-objects(1).
func (h hook) pack(ctx context.Context, tips, have []string, w io.Writer) error {
	var revs, said bytes.Buffer
	for _, t := range tips {
		fmt.Fprintln(&revs, t)
	}
	fmt.Fprintln(&revs, "--not")
	for _, t := range have {
		fmt.Fprintln(&revs, t)
	}
	cmd := exec.CommandContext(ctx, "git", "pack-objects", "--revs", "--stdout", "--thin", "--delta-base-offset", "-q")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &revs, w, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("git pack-objects: %w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}
