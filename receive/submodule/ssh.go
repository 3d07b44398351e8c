package submodule

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"corpus-git/git/pktline"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// systemHosts is the file in which a machine's administrator lists the keys of hosts: ssh(1), FILES.
const systemHosts = "/etc/ssh/ssh_known_hosts"

// keyNames returns the files of keys in ~/.ssh, in ssh's own order.
func keyNames() []string { return []string{"id_rsa", "id_ecdsa", "id_ed25519"} }

// dialSSH opens git-upload-pack by ssh, with the keys and the known hosts of the folder home. It is not interactive and trusts no unknown
// host.
func dialSSH(ctx context.Context, a Address, home string, to hosts) (transport, error) {
	keys, err := signers(home)
	if err != nil {
		return nil, err
	}
	hosts, algorithms, err := knownKeys(a, home)
	if err != nil {
		return nil, err
	}
	user := a.user.Username()
	if user == "" {
		user = "git"
	}
	conn, err := to.dial(ctx, "tcp", a.HostPort())
	if err != nil {
		return nil, err
	}
	// The deadline of the fetch includes the greeting.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	c, chans, reqs, err := ssh.NewClientConn(conn, a.HostPort(), &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(keys...)}, HostKeyCallback: hosts, HostKeyAlgorithms: algorithms, ClientVersion: "SSH-2.0-corpus-git",
	})
	if err != nil {
		stop()
		_ = conn.Close()
		return nil, sshError(err, a, home)
	}
	client := ssh.NewClient(c, chans, reqs)
	end := func() {
		stop()
		_ = client.Close()
	}
	s, err := client.NewSession()
	if err != nil {
		end()
		return nil, err
	}
	// A server that accepts no variables uses protocol 0.
	_ = s.Setenv("GIT_PROTOCOL", "version=2")
	in, err1 := s.StdinPipe()
	out, err2 := s.StdoutPipe()
	said := &firstLine{}
	s.Stderr = said
	if err := errors.Join(err1, err2, s.Start("git-upload-pack '"+strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(a.path)+"'")); err != nil {
		end()
		return nil, err
	}
	return &sshStream{stream: stream{in: in, out: bufio.NewReaderSize(out, pktline.MaxLine), end: end}, said: said, session: s}, nil
}

// sshStream returns the server's standard error as the error if it sent nothing else.
type sshStream struct {
	stream
	said    *firstLine
	session *ssh.Session
}

// lastWords is how long to wait for standard error after the end of standard output: they may arrive in any order.
const lastWords = 5 * time.Second

func (s *sshStream) open(ctx context.Context) (*bufio.Reader, error) {
	r, err := s.stream.open(ctx)
	if err == nil {
		if _, perr := r.Peek(1); perr != nil {
			ended := make(chan struct{})
			go func() {
				_ = s.session.Wait()
				close(ended)
			}()
			select {
			case <-ended:
			case <-time.After(lastWords):
			case <-ctx.Done():
			}
			if text := s.said.text(); text != "" {
				err = fmt.Errorf("the server says: %s", printable.Clip(text, 200))
			} else {
				err = cut(perr)
			}
		}
	}
	return r, err
}

// firstLine keeps the first line that is written to it.
type firstLine struct {
	mu   sync.Mutex
	line []byte
	full bool
}

func (l *firstLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range p {
		if l.full = l.full || b == '\n' && len(l.line) > 0 || len(l.line) > 300; l.full {
			break
		}
		if b != '\n' {
			l.line = append(l.line, b)
		}
	}
	return len(p), nil
}

func (l *firstLine) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.line)
}

func signers(home string) ([]ssh.Signer, error) {
	none := fault.New(fault.Refused, "", "it is fetched over ssh, but there is no key to log in with")
	if home == "" {
		return nil, none.WithHint("the first deployment creates the project's user and its key: deploy once with  submodules: empty , add the key to that server, and push again; or use an https:// URL")
	}
	dir := filepath.Join(home, ".ssh")
	var out []ssh.Signer
	for _, name := range keyNames() {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		k, err := ssh.ParsePrivateKey(b)
		if err != nil {
			continue // a key with a passphrase, which nobody can type
		}
		out = append(out, k)
	}
	if len(out) == 0 {
		return nil, none.WithHint("create a key without a passphrase in  %s  and add its public key to that server; or use an https:// URL", filepath.Join(dir, "id_ed25519"))
	}
	return out, nil
}

// knownKeys checks host keys against the known hosts; an unknown host is an error immediately, a known one is asked for a known key.
func knownKeys(a Address, home string) (ssh.HostKeyCallback, []string, error) {
	var files []string
	for _, f := range []string{filepath.Join(home, ".ssh", "known_hosts"), systemHosts} {
		if _, err := os.Stat(f); err == nil {
			files = append(files, f)
		}
	}
	check, err := knownhosts.New(files...)
	if err != nil {
		return nil, nil, err
	}
	// Checking an unused key returns the known ones.
	var ke *knownhosts.KeyError
	if err := check(a.HostPort(), &net.TCPAddr{}, nobody{}); errors.As(err, &ke) && len(ke.Want) > 0 {
		var algorithms []string
		for _, k := range ke.Want {
			if t := k.Key.Type(); t == ssh.KeyAlgoRSA {
				algorithms = append(algorithms, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
			} else {
				algorithms = append(algorithms, t)
			}
		}
		return check, algorithms, nil
	}
	return nil, nil, unknownHost(a, home)
}

func unknownHost(a Address, home string) error {
	host, port, _ := net.SplitHostPort(a.HostPort())
	return fault.New(fault.Refused, "", "the host key of %s is unknown", printable.Clip(a.HostPort(), 200)).
		WithHint("on the server:  ssh-keyscan -p %s %s >> %s , after verifying the fingerprint with the owner of that host", port, printable.Clip(host, 200), filepath.Join(home, ".ssh", "known_hosts"))
}

func sshError(err error, a Address, home string) error {
	var ke *knownhosts.KeyError
	switch {
	case errors.As(err, &ke) && len(ke.Want) > 0:
		return fault.New(fault.Refused, "", "the host key of %s has changed", printable.Clip(a.HostPort(), 200)).
			WithHint("the connection may be intercepted, or the host was reinstalled: verify the key with the owner of that host, then correct  %s", filepath.Join(home, ".ssh", "known_hosts"))
	case errors.As(err, &ke):
		return unknownHost(a, home)
	case strings.Contains(err.Error(), "unable to authenticate"):
		return fault.New(fault.Refused, "", "the server rejected the key").
			WithHint("add the public key  %s  to it (read access is enough)", filepath.Join(home, ".ssh", "id_ed25519.pub"))
	}
	return err
}

// nobody is a public key without a private one.
type nobody struct{}

func (nobody) Type() string                        { return "none" }
func (nobody) Marshal() []byte                     { return []byte("none") }
func (nobody) Verify([]byte, *ssh.Signature) error { return errors.New("nobody's key") }
