package cron

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The last day that may be drawn is one that the month has, the first is 1; a range is taken as Salt takes it, as text.
func TestCronDrawsTimes(t *testing.T) {
	last, first := func(n int) int { return n - 1 }, func(int) int { return 0 }
	for _, c := range []struct {
		random     func(int) int
		when, want [5]string
		err        string
	}{
		{last, [5]string{"random", "random", "random", "random", "random"}, [5]string{"59", "23", "31", "12", "6"}, ""},
		{first, [5]string{"random", "random", "random", "random", "random"}, [5]string{"0", "0", "1", "1", "0"}, ""},
		{last, [5]string{"*", "*", "random", "*", "*"}, [5]string{"*", "*", "28", "*", "*"}, ""},
		{last, [5]string{"*/5", "1,2", "random", "4", "1-5"}, [5]string{"*/5", "1,2", "30", "4", "1-5"}, ""},
		{last, [5]string{"3:5", "2:1", "3:5", "2:2", "5:6"}, [5]string{"5", "2", "3:5", "2", "6"}, ""},
		{last, [5]string{"5:10"}, [5]string{}, "empty range for randrange() (10, 6, -4)"},
		{last, [5]string{"a:10"}, [5]string{}, "invalid literal for int() with base 10: 'a'"},
		{last, [5]string{"1:2:3"}, [5]string{"1:2:3"}, ""},
	} {
		got, err := cronTime(c.when, c.random)
		if c.err != "" {
			require.EqualError(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
}
