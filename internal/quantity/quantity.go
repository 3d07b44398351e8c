// Package quantity parses and formats sizes and durations as in configurations: 512MiB, 7d. Package humanize formats them for people.
package quantity

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

type unit struct {
	name string
	n    int64
}

// sizeUnits returns the units of sizes, those with the longest names first.
func sizeUnits() []unit {
	return []unit{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3},
		{"T", 1 << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}, {"k", 1 << 10}, {"B", 1}, {"", 1}}
}

// ParseSize parses a number of bytes: 512MiB, 2GB, 1.5G, 4096. A letter alone is a power of 1024, as in git's
// configuration; kB, MB, GB and TB are powers of 1000. The error does not quote the input.
func ParseSize(s string) (int64, error) {
	s = strings.TrimSpace(s)
	for _, u := range sizeUnits() {
		num, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
		if err != nil || f < 0 || f*float64(u.n) >= 1<<63 || strings.ContainsAny(num, "xXpPiInN_") {
			break
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(num), 10, 64); err == nil {
			return n * u.n, nil
		}
		return int64(f * float64(u.n)), nil
	}
	return 0, errors.New("must be a size such as 512MiB or 2GiB")
}

// FormatSize formats a size in the largest unit that divides it.
func FormatSize(n int64) string {
	for _, u := range sizeUnits()[:4] {
		if n != 0 && n%u.n == 0 {
			return strconv.FormatInt(n/u.n, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// Day is the value of the unit d of a duration.
const Day = 24 * time.Hour

// ParseDuration parses a duration as time.ParseDuration does, and also days: 7d, 1d12h. The error does not quote the input.
func ParseDuration(s string) (time.Duration, error) {
	bad := errors.New("must be a duration such as 90s, 5h or 7d")
	s = strings.TrimSpace(s)
	var days time.Duration
	if num, rest, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseUint(num, 10, 16)
		if err != nil {
			return 0, bad
		}
		days, s = time.Duration(n)*Day, rest
		if s == "" {
			return days, nil
		}
		if s[0] == '-' || s[0] == '+' {
			return 0, bad
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, bad
	}
	return days + d, nil
}

// FormatDuration formats a duration for ParseDuration, short: 5h, not 5h0m0s; 7d, not 168h.
func FormatDuration(d time.Duration) string {
	if d >= Day && d%Day == 0 {
		return strconv.FormatInt(int64(d/Day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
