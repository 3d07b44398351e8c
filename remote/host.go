package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// Host is another machine. Commands may run at the same time; Close comes after all of them.
type Host struct {
	// Target is a destination for ssh(1): [user@]hostname, an alias of ssh_config(5), or an ssh:// address.
	Target string
	// Options are further options of ssh(1), before our own: -p, -i, -J, -F, -o.
	Options []string
	// SSH is the client; "" is ssh.
	SSH  string
	Exec execx.Commander
	// Env is the environment of the client, with its agent and its home.
	Env []string
	// Dir is where the client runs: Options may name files relative to it.
	Dir string

	mu  sync.Mutex
	dir string // of the connection's socket
	// kept are sessions that wait for their next use, by what runs in them.
	kept map[string]*keptSession
}

// connectionLost is the exit status of ssh(1) for its own errors.
const connectionLost = 255

// ConnectionError reports that ssh failed, not the command.
type ConnectionError struct{ text string }

func (e *ConnectionError) Error() string { return e.text }

// NewConnectionError returns the error for a machine that can't be reached now: fault.Busy.
func NewConnectionError(text string) *fault.Error {
	return fault.New(fault.Busy, "", "%w", &ConnectionError{text})
}

// args returns the arguments of ssh(1), without the command. The first of equal options wins: ssh_config(5).
func (h *Host) args() ([]string, error) {
	if strings.HasPrefix(h.Target, "-") || h.Target == "" {
		return nil, fault.New(fault.Usage, "remote", "%q is not a host", h.Target)
	}
	dir, err := h.sockets()
	if err != nil {
		return nil, err
	}
	ours := []string{
		"-oBatchMode=yes", "-oStrictHostKeyChecking=yes", "-oForwardAgent=no", "-oForwardX11=no", "-oClearAllForwardings=yes", "-oPermitLocalCommand=no",
		"-oControlMaster=auto", "-oControlPersist=60", "-oControlPath=" + filepath.Join(dir, "s"), "-oServerAliveInterval=15", "-oServerAliveCountMax=4", "-T",
	}
	ssh := h.SSH
	if ssh == "" {
		ssh = "ssh"
	}
	return append(append(append([]string{ssh}, h.Options...), ours...), "--", h.Target), nil
}

// sockets returns the folder of the connection's socket.
func (h *Host) sockets() (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dir != "" {
		return h.dir, nil
	}
	dir, err := os.MkdirTemp("", "corpus-git-ssh-") // a socket's name is short: unix(7)
	if err == nil {
		h.dir = dir
	}
	return dir, err
}

// Run runs a command there and returns its exit status. An error of ssh itself is a *ConnectionError, of kind fault.Busy.
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
		return st.Exit, h.sshError(said.String())
	}
	return st.Exit, nil
}

// command returns the ssh command that connects as a Host does, for a hint.
func (h *Host) command() string {
	return "ssh " + strings.Join(append(slices.Clone(h.Options), "-o BatchMode=yes", h.Target), " ")
}

// sshError returns ssh's message, with a hint for known ones.
func (h *Host) sshError(said string) error {
	line := "the connection was closed"
	for l := range strings.Lines(said) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasSuffix(l, "UNKNOWN port 65535") { // what ssh says after a jump host's own words
			line = l
		}
	}
	e := fault.New(fault.Busy, "", "%w", &ConnectionError{fmt.Sprintf("ssh to %s failed: %s", printable.Text(h.Target), printable.Text(line))})
	switch {
	case strings.Contains(said, "REMOTE HOST IDENTIFICATION HAS CHANGED"):
		e.Kind = fault.Refused
		return e.WithHint("its host key has changed: another machine may answer for it. If you know why, remove the old key:  ssh-keygen -R HOST , and add the new one")
	case strings.Contains(said, "Host key verification failed"):
		e.Kind = fault.Refused
		return e.WithHint("compare its host key, and add it to your known_hosts:  ssh-keyscan HOST")
	case strings.Contains(said, "Permission denied"):
		e.Kind = fault.Refused
		return e.WithHint("log in with a key that needs no password:  %s true", h.command())
	}
	return e.WithHint("try  %s true", h.command())
}

// loginError is the error of a login that ended before it ran the command; said is what it printed to standard error.
func (h *Host) loginError(code int, said string) error {
	if strings.Contains("\n"+said, "\n"+errorMark) {
		return Reported(h.Target, code, said)
	}
	line, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	if line != "" {
		line = ": " + line
	}
	return fault.New(fault.Refused, "", "on %s: the login ended with status %d and ran nothing%s", printable.Text(h.Target), code, printable.Text(line)).
		WithHint("it must be able to run commands, with no ForceCommand of sshd and no shell that prevents it: try  %s true", h.command())
}

// output runs a command and returns its standard output.
func (h *Host) output(ctx context.Context, command []string, in io.Reader) (string, error) {
	var out, errw bytes.Buffer
	code, err := h.Run(ctx, command, in, &out, &errw)
	if err != nil {
		return "", err
	}
	if code != 0 {
		return "", Reported(h.Target, code, errw.String())
	}
	return out.String(), nil
}

// Close ends the connection and the sessions that were kept. Idempotent.
func (h *Host) Close() error {
	h.drop()
	h.mu.Lock()
	dir := h.dir
	h.mu.Unlock()
	if dir == "" {
		return nil
	}
	args, err := h.args()
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.dir = ""
	h.mu.Unlock()
	if _, err := os.Lstat(filepath.Join(dir, "s")); err == nil {
		exit := append(append([]string{}, args[:len(args)-2]...), "-Oexit", "--", h.Target)
		_, err := h.Exec.Run(context.Background(), execx.Cmd{Argv: exit, Dir: h.Dir, Env: h.Env})
		if err != nil && !errors.Is(err, context.Canceled) {
			return errors.Join(err, os.RemoveAll(dir))
		}
	}
	return os.RemoveAll(dir)
}

// shell quotes a command for a shell.
func shell(command []string) string {
	words := make([]string, len(command))
	for i, w := range command {
		words[i] = quote(w)
	}
	return strings.Join(words, " ")
}

// quote quotes a word for a POSIX shell (Shell Command Language, 2.2.2).
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
