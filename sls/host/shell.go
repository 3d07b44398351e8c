package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"corpus-git/internal/execx"
)

// Shell is a command line as Salt's cmd module runs one.
// Source: Salt documentation, cmd execution module.
type Shell struct {
	// Line is what the shell runs; Argv, if not empty, is run without a shell instead.
	Line string
	Argv []string
	// Dir is the working directory; "" means the home of the user, or / if that cannot be used.
	Dir string
	// RunAs and Group are the user and group that it runs as; "" means the user of this process.
	RunAs, Group string
	// Env is added to the environment; Prepend goes before PATH.
	Env     map[string]string
	Prepend string
	// CleanEnv starts from an empty environment.
	CleanEnv bool
	// KeepLocale keeps the locale; otherwise messages are those of the C locale.
	KeepLocale bool
	// Path is the shell; "" means /bin/sh.
	Path    string
	Umask   *int
	Timeout time.Duration
	Stdin   string
	// Merge sends standard error into standard output.
	Merge bool
	// OnLine is called for each line as output arrives; nil means none.
	OnLine func(stderr bool, line string)
	// KeepEnd keeps white space at the end of the output.
	KeepEnd bool
	// Decode converts output in another encoding to UTF-8; nil keeps it as it is.
	Decode func(string) string
}

// ShellResult is how a command line ended.
type ShellResult struct {
	Retcode        int
	Stdout, Stderr string
	TimedOut       bool
	// Dir is the folder in which it ran, User the user that it ran as.
	Dir, User string
}

// MaxOutput is the number of bytes of each stream that a ShellResult keeps: the last ones.
const MaxOutput = 1 << 20

// DefaultShell is Salt's default.
const DefaultShell = "/bin/sh"

var errTimeout = errors.New("timed out")

// RunShell runs a command line. An error means that it could not be started; its text is Salt's if Salt has one. When ctx ends, the error
// is ctx's.
func (h *Host) RunShell(ctx context.Context, s Shell) (ShellResult, error) {
	res := ShellResult{}
	if h.refuses(s) {
		return res, ErrRefused
	}
	cmd, err := h.Command(s)
	res.User, res.Dir = s.RunAs, cmd.Dir
	if err != nil {
		return res, err
	}
	out, serr := &execx.Tail{Max: MaxOutput}, &execx.Tail{Max: MaxOutput}
	onLine := s.OnLine
	if onLine != nil && s.Decode != nil {
		onLine = func(stderr bool, line string) { s.OnLine(stderr, s.Decode(line)) }
	}
	stdout, stderr := writer(out, onLine, false), writer(serr, onLine, true)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if s.Stdin != "" {
		cmd.Stdin = strings.NewReader(s.Stdin)
	}
	if s.Merge {
		cmd.Stderr = stdout
	}
	run := ctx
	if s.Timeout > 0 {
		var cancel context.CancelFunc
		run, cancel = context.WithTimeoutCause(ctx, s.Timeout, errTimeout)
		defer cancel()
	}
	st, err := h.Exec.Run(run, cmd)
	stdout.flush()
	stderr.flush()
	res.Retcode, res.Stdout, res.Stderr = st.Exit, s.text(out), s.text(serr)
	if errors.Is(err, errTimeout) && ctx.Err() == nil {
		res.TimedOut, res.Retcode = true, 1
		return res, nil
	}
	return res, runError(ctx, err)
}

// Command returns the command of s, without its streams: user, folder and environment. Errors are those of RunShell. Timeout, input and
// output of s are ignored.
func (h *Host) Command(s Shell) (execx.Cmd, error) {
	cred, err := h.credential(s)
	if err != nil {
		return execx.Cmd{}, err
	}
	home := h.home(s.RunAs)
	cmd := execx.Cmd{Credential: cred.Syscall(), Umask: s.Umask}
	if cmd.Dir, err = workDir(s.Dir, home); err != nil {
		return cmd, err
	}
	if cmd.Argv, err = s.argv(); err != nil {
		return cmd, err
	}
	cmd.Env = h.environ(s, home)
	return cmd, nil
}

// credential returns the credential that the command runs with; nil means the user of this process.
func (h *Host) credential(s Shell) (*Cred, error) {
	cred, err := h.CredFor(s.RunAs)
	if errors.Is(err, ErrNoAccount) {
		return nil, saltErrorf("User '%s' is not available", s.RunAs)
	}
	if err != nil || s.Group == "" {
		return cred, err
	}
	return h.withGroup(cred, s.Group)
}

// workDir returns the folder in which a command that requests dir runs; for "" the home of its user, or / if that can't be read.
func workDir(dir, home string) (string, error) {
	if dir == "" {
		if dir = home; !readableDir(dir) {
			dir = "/"
		}
	}
	if st, err := os.Stat(dir); !filepath.IsAbs(dir) || err != nil || !st.IsDir() {
		return dir, saltErrorf("Specified cwd '%s' either not absolute or does not exist", dir)
	}
	return dir, nil
}

// argv returns the program and its arguments: the shell and its line, if there is no Argv.
func (s Shell) argv() ([]string, error) {
	if len(s.Argv) > 0 {
		return s.Argv, nil
	}
	shell := s.Path
	if shell == "" {
		shell = DefaultShell
	}
	if st, err := os.Stat(shell); err != nil || st.IsDir() || st.Mode()&0o111 == 0 {
		return nil, saltErrorf("The shell %s is not available", shell)
	}
	return []string{shell, "-c", s.Line}, nil
}

// text returns the content of a stream, decoded and without trailing white space.
func (s Shell) text(out *execx.Tail) string {
	text := out.String()
	if s.Decode != nil {
		text = s.Decode(text)
	}
	if s.KeepEnd {
		return text
	}
	return strings.TrimRight(text, " \t\r\n\v\f")
}

// runError returns why a command could not be run; the context's cause takes precedence.
func runError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var perr *fs.PathError
	if errors.As(err, &perr) {
		return saltErrorf("Unable to run command: %w", perr)
	}
	return err
}

func (h *Host) withGroup(cred *Cred, group string) (*Cred, error) {
	g, err := h.Users.Group(group)
	if err != nil {
		return nil, saltErrorf("Group '%s' is not available", group)
	}
	if cred == nil {
		if g.GID == h.EGID {
			return nil, nil
		}
		if h.EUID != 0 {
			return nil, errors.New("only root can run a command as group " + group)
		}
		return &Cred{UID: h.EUID, GID: g.GID, Groups: []int{g.GID}}, nil
	}
	c := *cred
	c.GID = g.GID
	return &c, nil
}

func (h *Host) home(runas string) string {
	if runas == "" {
		for i := len(h.Environ) - 1; i >= 0; i-- {
			if v, ok := strings.CutPrefix(h.Environ[i], "HOME="); ok && v != "" {
				return v
			}
		}
		if u, err := h.Users.UserByID(h.EUID); err == nil {
			return u.Home
		}
		return "/"
	}
	u, err := h.Users.User(runas)
	if err != nil {
		return "/"
	}
	return u.Home
}

func readableDir(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	return err == nil && st.IsDir()
}

// localeVars returns the variables that Salt resets so that programs answer in the C locale.
func localeVars() []string {
	return []string{"LC_CTYPE", "LC_NUMERIC", "LC_TIME", "LC_COLLATE", "LC_MONETARY", "LC_MESSAGES", "LC_PAPER", "LC_NAME",
		"LC_ADDRESS", "LC_TELEPHONE", "LC_MEASUREMENT", "LC_IDENTIFICATION", "LANGUAGE"}
}

func (h *Host) environ(s Shell, home string) []string {
	env := map[string]string{}
	if !s.CleanEnv {
		for _, kv := range h.Environ {
			k, v, _ := strings.Cut(kv, "=")
			env[k] = v
		}
		delete(env, "NOTIFY_SOCKET")
	}
	if s.RunAs != "" {
		env["USER"], env["LOGNAME"], env["HOME"] = s.RunAs, s.RunAs, home
		if u, err := h.Users.User(s.RunAs); err == nil {
			env["USER"], env["LOGNAME"] = u.Name, u.Name
			if u.Shell != "" {
				env["SHELL"] = u.Shell
			}
		}
	}
	if !s.KeepLocale {
		for _, k := range localeVars() {
			env[k] = "C"
		}
	}
	for k, v := range s.Env {
		env[k] = v
	}
	if s.Prepend != "" {
		// Without a PATH an empty element would mean the working directory.
		env["PATH"] = strings.TrimSuffix(s.Prepend+":"+env["PATH"], ":")
	}
	out := make([]string, 0, len(env))
	for k, v := range env {
		out = append(out, k+"="+v)
	}
	sort.Strings(out)
	return out
}

// tee keeps the end of a stream and passes on its lines.
type tee struct {
	io.Writer
	lines *execx.Lines
}

func writer(tail *execx.Tail, onLine func(bool, string), stderr bool) *tee {
	if onLine == nil {
		return &tee{Writer: tail}
	}
	l := execx.NewLines(func(line string) { onLine(stderr, strings.TrimSuffix(line, "\r")) })
	return &tee{Writer: io.MultiWriter(tail, l), lines: l}
}

// ReadFrom implements io.ReaderFrom, with a smaller buffer than io.Copy takes for each stream of each command.
func (t *tee) ReadFrom(r io.Reader) (n int64, err error) {
	buf := make([]byte, 4096)
	for {
		k, rerr := r.Read(buf)
		n += int64(k)
		if k > 0 {
			if _, err := t.Write(buf[:k]); err != nil {
				return n, err
			}
		}
		if errors.Is(rerr, io.EOF) {
			return n, nil
		}
		if rerr != nil {
			return n, rerr
		}
	}
}

func (t *tee) flush() {
	if t.lines != nil {
		_ = t.lines.Close()
	}
}

// saltErrorf returns an error in Salt's own words, which begin with a capital letter.
func saltErrorf(format string, args ...any) error { return fmt.Errorf(format, args...) }
