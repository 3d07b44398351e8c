package app

import (
	"fmt"
	"io"
	"os"
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

// openLog makes the server's log: JSON lines in the state directory, and on stderr as the configuration says.
func openLog(cfg *config.Config, stderr io.Writer, colour bool) (zerolog.Logger, *logLevel, io.Closer, error) {
	state := layout.State(cfg.StateDir)
	if err := os.MkdirAll(state.Path(), 0o700); err != nil {
		return zerolog.Nop(), nil, nil, stateError(state, err)
	}
	f, err := os.OpenFile(state.ServerLog(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
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
