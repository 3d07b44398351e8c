package event_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/event"
	"corpus-git/internal/redact"
)

// unseen is put between the bytes of a secret: a terminal shows none of it.
func unseen() []string {
	return []string{
		"\x00", "\x07", "\x01", "\x0b", "\x7f", "\x1b[31m", "\x1b[0m", "\x1b[38;5;214m", "\x1b[2K", "\x1b[?25l", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\",
		"\x1bP1$r\x1b\\", "\x1b7", "\u200b", "\u202e", "\u2066", "\ufeff", "\u009b", "x\b", "é\b", "\x1b[31mx\b", "\n", "\r\n", "\n   ",
	}
}

// noises makes a text of a secret that a step could print: encoded, and with invisible bytes between its bytes.
func noises(rng *rand.Rand, secret string) string {
	js, _ := json.Marshal(secret)
	text := []string{
		secret, base64.StdEncoding.EncodeToString([]byte("u:" + secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)), hex.EncodeToString([]byte(secret)),
		url.QueryEscape(secret), string(js), "'" + strings.ReplaceAll(secret, "'", `'\''`) + "'", strings.ToUpper(hex.EncodeToString([]byte(secret))),
	}[rng.IntN(8)]
	if rng.IntN(6) == 0 {
		var wide strings.Builder
		for _, u := range utf16.Encode([]rune(secret)) {
			wide.Write([]byte{byte(u), byte(u >> 8)})
		}
		return "\xff\xfe" + wide.String() + "\x00"
	}
	var b strings.Builder
	for _, c := range []byte(text) {
		b.WriteByte(c)
		for rng.IntN(3) == 0 {
			b.WriteString(unseen()[rng.IntN(len(unseen()))])
		}
	}
	return b.String()
}

// survives reports whether a secret can be read in what a log kept: plain or encoded, over lines or not.
func survives(kept, secret string) bool {
	kept = strings.NewReplacer("\n", "", " ", "", "\t", "").Replace(kept)
	for _, form := range []string{secret, base64.RawStdEncoding.EncodeToString([]byte(secret))[:len(secret)], hex.EncodeToString([]byte(secret)), url.QueryEscape(secret)} {
		if strings.Contains(strings.ToLower(kept), strings.ToLower(form)) {
			return true
		}
	}
	return false
}

// FuzzNoSecretSurvives prints secrets with control bytes, escape sequences, backspaces and line ends between their bytes: none of them is in the
// log.
func FuzzNoSecretSurvives(f *testing.F) {
	for seed := range uint64(64) {
		f.Add(seed, "s3cr3t-pa55/word+")
		f.Add(seed, "pässwörter")
	}
	f.Fuzz(func(t *testing.T, seed uint64, secret string) {
		if secret = strings.Map(func(r rune) rune {
			if r <= ' ' || r >= 0x7f && r < 0xc0 || r > 0x17f {
				return -1
			}
			return r
		}, secret); len(secret) < 8 {
			return
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		path := filepath.Join(t.TempDir(), "a.jsonl")
		l, err := event.Create(path, time.Now, redact.New([]redact.Secret{{Label: "k", Value: secret}}))
		require.NoError(t, err)
		text := "<" + noises(rng, secret) + ">"
		l.Append(event.Event{Kind: event.Failure, Text: strings.NewReplacer("\n   ", "", "\r\n", "", "\n", "").Replace(text), Lines: strings.Split(text, "\n")})
		require.NoError(t, l.Close())
		for e, err := range event.Read(path, 0) {
			require.NoError(t, err)
			for _, kept := range []string{event.StripColour(e.Text), event.StripColour(strings.Join(e.Lines, "\n"))} {
				require.False(t, survives(kept, secret), "%q shows %q", text, kept)
			}
		}
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.False(t, survives(string(data), secret), "%q", data)
	})
}
