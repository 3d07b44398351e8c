package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// Host is another machine. It is not safe for concurrent use.
type Host struct {
	// Target is what ssh(1) takes as destination: [user@]hostname, an alias of ssh_config(5), or an ssh:// address.
	Target string
	// Options are further options of ssh(1), before our own: -p, -i, -J, -F, -o.
	Options []string
	// SSH is the client; "" is ssh.
	SSH  string
	Exec execx.Commander
	// Env is the environment of the client, which finds its agent and its home there.
	Env []string
	// Dir is where the client runs: files that Options name are looked for from there.
	Dir string

	dir string // of the connection's socket
}

// connectionLost is the exit status of ssh(1) where it has failed itself.
const connectionLost = 255

// LostError says that ssh failed, not what ran there.
type LostError struct{ text string }

func (e *LostError) Error() string { return e.text }

// args are those of ssh(1), without the command. What comes first counts: ssh_config(5).
func (h *Host) args() ([]string, error) {
	if strings.HasPrefix(h.Target, "-") || h.Target == "" {
		return nil, fault.New(fault.Usage, "remote", "%q is not a host", h.Target)
	}
	if h.dir == "" {
		dir, err := os.MkdirTemp("", "corpus-git-ssh-") // a socket's name is short: unix(7)
		if err != nil {
			return nil, err
		}
		h.dir = dir
	}
	ours := []string{
		"-oBatchMode=yes", "-oStrictHostKeyChecking=yes", "-oForwardAgent=no", "-oForwardX11=no", "-oClearAllForwardings=yes", "-oPermitLocalCommand=no",
		"-oControlMaster=auto", "-oControlPersist=60", "-oControlPath=" + filepath.Join(h.dir, "s"), "-oServerAliveInterval=15", "-oServerAliveCountMax=4", "-T",
	}
	ssh := h.SSH
	if ssh == "" {
		ssh = "ssh"
	}
	return append(append(append([]string{ssh}, h.Options...), ours...), "--", h.Target), nil
}

// Run runs a command there and gives its exit status. What ssh itself has to say is a *LostError, of kind fault.Busy.
func (h *Host) Run(ctx context.Context, command []string, in io.Reader, out, errw io.Writer) (int, error) {
	args, err := h.args()
	if err != nil {
		return 0, err
	}
	said := &execx.Tail{Max: 4 << 10}
	st, err := h.Exec.Run(ctx, execx.Cmd{
		Argv: append(args, shell(command)), Dir: h.Dir, Env: h.Env, Stdin: in, Stdout: out, Stderr: io.MultiWriter(errw, said),
	})
	if err != nil {
		return 0, err
	}
	if st.Exit == connectionLost {
		return st.Exit, h.lost(said.String())
	}
	return st.Exit, nil
}

// lost is what ssh said, with a hint for what is known.
func (h *Host) lost(said string) error {
	line := said
	if i := strings.LastIndexByte(strings.TrimSpace(said), '\n'); i >= 0 {
		line = said[i+1:]
	}
	e := fault.New(fault.Busy, "", "%w", &LostError{fmt.Sprintf("ssh to %s failed: %s", printable.Text(h.Target), printable.Text(strings.TrimSpace(line)))})
	switch {
	case strings.Contains(said, "Host key verification failed"), strings.Contains(said, "REMOTE HOST IDENTIFICATION HAS CHANGED"):
		e.Kind = fault.Refused
		return e.WithHint("compare its host key, and add it to your known_hosts:  ssh-keyscan HOST")
	case strings.Contains(said, "Permission denied"):
		e.Kind = fault.Refused
		return e.WithHint("log in with a key that needs no password:  ssh -o BatchMode=yes %s true", h.Target)
	}
	return e.WithHint("try  ssh -o BatchMode=yes %s true", h.Target)
}

// output runs a command that answers on standard output.
func (h *Host) output(ctx context.Context, command []string, in io.Reader) (string, error) {
	var out, errw bytes.Buffer
	code, err := h.Run(ctx, command, in, &out, &errw)
	if err != nil {
		return "", err
	}
	if code != 0 {
		text := strings.TrimSpace(errw.String())
		first, rest, _ := strings.Cut(strings.TrimPrefix(text, "error: "), "\n")
		e := fault.New(kindOf(code), "", "on %s: %s", printable.Text(h.Target), printable.Text(first))
		if hint, ok := strings.CutPrefix(strings.TrimSpace(rest), "hint: "); ok {
			e = e.WithHint("on %s: %s", printable.Text(h.Target), printable.Text(hint))
		}
		return "", e
	}
	return out.String(), nil
}

// kindOf is whose fault an exit status of corpus-git says it is.
func kindOf(code int) fault.Kind {
	for _, k := range []fault.Kind{fault.Usage, fault.Refused, fault.Busy, fault.Failed} {
		if k.ExitCode() == code {
			return k
		}
	}
	return fault.Failed
}

// Close ends the connection. Idempotent.
func (h *Host) Close() error {
	if h.dir == "" {
		return nil
	}
	dir := h.dir
	args, err := h.args()
	if err != nil {
		return err
	}
	h.dir = ""
	if _, err := os.Lstat(filepath.Join(dir, "s")); err == nil {
		exit := append(append([]string{}, args[:len(args)-2]...), "-Oexit", "--", h.Target)
		_, err := h.Exec.Run(context.Background(), execx.Cmd{Argv: exit, Dir: h.Dir, Env: h.Env})
		if err != nil && !errors.Is(err, context.Canceled) {
			return errors.Join(err, os.RemoveAll(dir))
		}
	}
	return os.RemoveAll(dir)
}

// shell is a command as a shell reads it.
func shell(command []string) string {
	words := make([]string, len(command))
	for i, w := range command {
		words[i] = quote(w)
	}
	return strings.Join(words, " ")
}

// quote quotes a word for a POSIX shell (Shell Command Language, 2.2.2).
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
