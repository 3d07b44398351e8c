package py

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The results are CPython 3.11's.
func TestFormatAndPercent(t *testing.T) {
	var o *Ops
	for _, c := range []struct {
		v          any
		spec, want string
	}{
		{int64(42), "08.3f", "0042.000"}, {1234567.891, ",.2f", "1,234,567.89"}, {int64(1234567), "_d", "1_234_567"},
		{int64(255), "#06x", "0x00ff"}, {int64(255), "_b", "1111_1111"}, {"abc", "^7", "  abc  "}, {"abc", "*<5.2", "ab***"},
		{3.0, "g", "3"}, {1e20, "g", "1e+20"}, {0.25, ".0%", "25%"}, {true, "d", "1"}, {-0.0001, "z.2f", "0.00"},
		{int64(1234), "010,d", "00,001,234"}, {1234.5, "", "1234.5"}, {12345.678, ".3", "1.23e+04"}, {100.0, ".3", "1e+02"},
	} {
		got, err := o.FormatValue(c.v, c.spec)
		require.NoError(t, err, c.spec)
		require.Equal(t, c.want, got, c.spec)
	}
	got, err := o.Percent("%s|%5.1f|%-4d|%x|%%|%r", Tuple{"a", 2.25, int64(7), int64(255), "q"})
	require.NoError(t, err)
	require.Equal(t, "a|  2.2|7   |ff|%|'q'", got)
	_, err = o.Format("{0} {}", []any{1, 2}, nil)
	require.True(t, IsErr(err, ValueError))
}

func TestRound(t *testing.T) {
	var o *Ops
	two, none := 2, 0
	for want, in := range map[string]any{"2.67": 2.675, "0.12": 0.125, "1.0": 1.0049} {
		got, err := o.Round(in, &two)
		require.NoError(t, err)
		require.Equal(t, want, Repr(got))
	}
	got, err := o.Round(2.5, &none)
	require.NoError(t, err)
	require.Equal(t, 2.0, got)
	got, err = o.Round(2.5, nil)
	require.NoError(t, err)
	require.Equal(t, int64(2), got)
}
