package app

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/internal/printable"
	"corpus-git/layout"
	"corpus-git/project/config"
)

// logLevel is the least important level that is written; a reload may change it.
type logLevel struct{ least atomic.Int32 }

func (l *logLevel) set(level string) {
	n, err := zerolog.ParseLevel(level)
	if err != nil || level == "" {
		n = zerolog.InfoLevel
	}
	l.least.Store(int32(n))
}

// gate drops what is less important.
type gate struct {
	zerolog.LevelWriter
	level *logLevel
}

// WriteLevel implements zerolog.LevelWriter.
func (g gate) WriteLevel(l zerolog.Level, p []byte) (int, error) {
	if int32(l) < g.level.least.Load() {
		return len(p), nil
	}
	return g.LevelWriter.WriteLevel(l, p)
}

// console writes the log for people. zerolog quotes most fields, but not the message.
func console(stderr io.Writer, colour bool) zerolog.ConsoleWriter {
	seen := func(v any) string { return printable.Line(fmt.Sprintf("%s", v)) }
	return zerolog.ConsoleWriter{Out: stderr, NoColor: !colour, TimeFormat: time.DateTime, FormatMessage: func(v any) string {
		if v == nil {
			return ""
		}
		return seen(v)
	}, FormatFieldValue: seen, FormatErrFieldValue: seen}
}

// logFile is a file that is appended to, and opened again when somebody has renamed it (logrotate(8)).
type logFile struct {
	path string
	mu   sync.Mutex
	f    *os.File
}

// reopen opens the file under its name, and goes on with the old one where that fails.
func (l *logFile) reopen() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	l.mu.Lock()
	old := l.f
	l.f = f
	l.mu.Unlock()
	if old != nil {
		return old.Close()
	}
	return nil
}

func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Write(p)
}

// Close ends it.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Close()
}

// openLog makes the server's log: JSON lines in the state directory, and on stderr as the configuration says.
func openLog(cfg *config.Config, stderr io.Writer, colour bool) (zerolog.Logger, *logLevel, *logFile, error) {
	state := layout.State(cfg.StateDir)
	if err := os.MkdirAll(state.Path(), 0o700); err != nil {
		return zerolog.Nop(), nil, nil, stateError(state, err)
	}
	f := &logFile{path: state.ServerLog()}
	if err := f.reopen(); err != nil {
		return zerolog.Nop(), nil, nil, stateError(state, err)
	}
	people := stderr
	if cfg.Log.Format != "json" {
		people = console(stderr, colour)
	}
	level := &logLevel{}
	level.set(cfg.Log.Level)
	all := printable.JSONWriter{W: zerolog.MultiLevelWriter(f, people)}
	return zerolog.New(gate{zerolog.MultiLevelWriter(all), level}).With().Timestamp().Logger(), level, f, nil
}
