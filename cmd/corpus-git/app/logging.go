package app

import (
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/layout"
	"corpus-git/project/config"
)

// openLog makes the server's log: JSON lines in the state directory, and on stderr as the configuration says.
func openLog(cfg *config.Config, stderr io.Writer, colour bool) (zerolog.Logger, io.Closer, error) {
	state := layout.State(cfg.StateDir)
	if err := os.MkdirAll(state.Path(), 0o700); err != nil {
		return zerolog.Nop(), nil, stateError(state, err)
	}
	f, err := os.OpenFile(state.ServerLog(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return zerolog.Nop(), nil, stateError(state, err)
	}
	people := stderr
	if cfg.Log.Format != "json" {
		people = zerolog.ConsoleWriter{Out: stderr, NoColor: !colour, TimeFormat: time.DateTime}
	}
	setLevel(cfg.Log.Level)
	return zerolog.New(zerolog.MultiLevelWriter(f, people)).With().Timestamp().Logger(), f, nil
}

// setLevel is for the whole process: one server runs in it.
func setLevel(level string) {
	l, err := zerolog.ParseLevel(level)
	if err != nil || level == "" {
		l = zerolog.InfoLevel
	}
	zerolog.SetGlobalLevel(l)
}
