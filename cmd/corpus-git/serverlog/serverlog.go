// Package serverlog writes the log of the server process: JSON lines to the state directory, and readable lines to standard error.
//
// It owns that file. It does not contain the output of deployments, which is in event logs. Lines are not synced to disk.
package serverlog

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/cmd/corpus-git/statedir"
	"corpus-git/internal/printable"
	"corpus-git/layout"
	"corpus-git/project/config"
)

// Level is the least severe level that is written. It may change while the log is in use.
type Level struct{ least atomic.Int32 }

// Set sets the level by its name in zerolog; info for another one.
func (l *Level) Set(level string) {
	n, err := zerolog.ParseLevel(level)
	if err != nil || level == "" {
		n = zerolog.InfoLevel
	}
	l.least.Store(int32(n))
}

// filter drops events below the level.
type filter struct {
	zerolog.LevelWriter
	level *Level
}

// WriteLevel implements zerolog.LevelWriter.
func (g filter) WriteLevel(l zerolog.Level, p []byte) (int, error) {
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

// File is a log file that can be opened again after logrotate(8) has renamed it. It is safe for concurrent use.
type File struct {
	path string
	mu   sync.Mutex
	f    *os.File
}

// Reopen opens the file under its name and closes the old one. After an error the old one stays in use.
func (l *File) Reopen() error {
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

// Write implements io.Writer.
func (l *File) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Write(p)
}

// Close closes the file. Nothing may be written after it.
func (l *File) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Close()
}

// Open opens the server's log: JSON lines in the state directory, which is created if it does not exist, and on stderr as the configuration says. The caller
// closes the file.
func Open(cfg *config.Config, stderr io.Writer, colour bool) (zerolog.Logger, *Level, *File, error) {
	state := layout.State(cfg.StateDir)
	if err := os.MkdirAll(state.Path(), 0o700); err != nil {
		return zerolog.Nop(), nil, nil, statedir.Error(state, err)
	}
	f := &File{path: state.ServerLog()}
	if err := f.Reopen(); err != nil {
		return zerolog.Nop(), nil, nil, statedir.Error(state, err)
	}
	people := stderr
	if cfg.Log.Format != "json" {
		people = console(stderr, colour)
	}
	level := &Level{}
	level.Set(cfg.Log.Level)
	all := printable.JSONWriter{W: zerolog.MultiLevelWriter(f, people)}
	return zerolog.New(filter{zerolog.MultiLevelWriter(all), level}).With().Timestamp().Logger(), level, f, nil
}
