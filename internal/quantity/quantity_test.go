package quantity_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/quantity"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "4096": 4096, "512MiB": 512 << 20, "2GB": 2e9, "1.5G": 3 << 29, "1k": 1024, "1 kB": 1000, "3TiB": 3 << 40, "7B": 7,
	} {
		got, err := quantity.ParseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "GiB", "-1", "1e3x", "0x10", "NaN", "Inf", "9999999TiB", "1 2", "1_000"} {
		_, err := quantity.ParseSize(text)
		require.Error(t, err, text)
	}
	for n, want := range map[int64]string{0: "0", 512 << 20: "512MiB", 3 << 30: "3GiB", 1000: "1000", 1536: "1536"} {
		require.Equal(t, want, quantity.FormatSize(n))
		back, err := quantity.ParseSize(want)
		require.NoError(t, err)
		require.Equal(t, n, back)
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{"90s": 90 * time.Second, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour, " 5m ": 5 * time.Minute, "-3s": -3 * time.Second} {
		got, err := quantity.ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "5", "d", "1d-3h", "-1d", "99999d", "1h1d"} {
		_, err := quantity.ParseDuration(text)
		require.Error(t, err, text)
	}
	for d, want := range map[time.Duration]string{5 * time.Hour: "5h", 168 * time.Hour: "7d", 90 * time.Second: "1m30s", 36 * time.Hour: "36h", 0: "0s"} {
		require.Equal(t, want, quantity.FormatDuration(d))
	}
}
