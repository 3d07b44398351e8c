package notify

import (
	"bytes"
	"context"
	"fmt"

	"corpus-git/internal/execx"
	"corpus-git/project"
	"corpus-git/project/config"
)

// command runs a sink's program: the notification is its standard input, as JSON. Its environment is clean except for variables that identify the
// notification; a non-zero exit status is an error.
func (w *Worker) command(ctx context.Context, s config.Sink, n project.Notification) error {
	body, err := document(s.Kind, n)
	if err != nil {
		return permanent{err}
	}
	tail := &lastLine{}
	st, err := w.Exec.Run(ctx, execx.Cmd{
		Argv: s.Command, Dir: "/", Stdin: bytes.NewReader(body), Stdout: tail, Stderr: tail,
		Env: []string{
			"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
			"CORPUS_NOTIFICATION=" + n.ID, "CORPUS_EVENT=" + n.Event, "CORPUS_PROJECT=" + string(n.Project),
		},
	})
	if err != nil {
		return err
	}
	if st.Exit != 0 {
		if text := tail.String(); text != "" {
			return fmt.Errorf("exit status %d: %s", st.Exit, text)
		}
		return fmt.Errorf("exit status %d", st.Exit)
	}
	return nil
}

// lastLine keeps the end of what a program prints, at most 1 KiB.
type lastLine struct{ kept []byte }

func (l *lastLine) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p...)
	if n := len(l.kept); n > 1<<10 {
		l.kept = append([]byte{}, l.kept[n-1<<10:]...)
	}
	return len(p), nil
}

func (l *lastLine) String() string {
	text := bytes.TrimSpace(l.kept)
	if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	return string(text)
}
