package serverlog

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"corpus-git/internal/event"
	"corpus-git/internal/testutil"
	"corpus-git/layout"
	"corpus-git/project/config"
)

// The log file and standard error, in both forms, show every character of what somebody else wrote.
func TestEveryCharacterOfTheLogIsSeen(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		for _, colour := range []bool{false, true} {
			cfg := &config.Config{StateDir: t.TempDir()}
			cfg.Log.Format = format
			var people bytes.Buffer
			log, _, file, err := Open(cfg, &people, colour)
			require.NoError(t, err)
			log.Info().Str("ref", testutil.Hostile).Err(errors.New(testutil.Hostile)).Strs("names", []string{testutil.Hostile}).Msg(testutil.Hostile)
			require.NoError(t, file.Close())
			text, err := os.ReadFile(layout.State(cfg.StateDir).ServerLog())
			require.NoError(t, err)
			for where, out := range map[string]string{"file": string(text), format: people.String()} {
				require.Contains(t, out, "evil", where)
				testutil.Seen(t, where, event.StripColour(out))
			}
		}
	}
}

func TestLogLevelCanChange(t *testing.T) {
	var out bytes.Buffer
	level := &Level{}
	level.Set("warn")
	log := zerolog.New(filter{zerolog.MultiLevelWriter(&out), level})
	log.Info().Msg("quiet")
	require.Empty(t, out.String())
	level.Set("info")
	log.Info().Msg("loud")
	require.Contains(t, out.String(), "loud")
}
