// Package humanize formats counts, sizes, durations and ages for people. It is the one place for that: output, pages and messages agree.
package humanize

import (
	"fmt"
	"time"
)

// Age returns how long before now t was: just now, 12s ago, 3m ago, 5h ago, 12d ago, and after two months the day; never for no time.
func Age(now, t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d := now.Sub(t)
	switch {
	case d < 5*time.Second:
		return "just now"
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	case d < 60*24*time.Hour:
		return fmt.Sprintf("%dd ago", int(d.Hours()/24))
	default:
		return t.Format("2006-01-02")
	}
}

// Seconds formats a duration for a column: 0.04s, 12.41s, 3m07s, 2h05m.
func Seconds(d time.Duration) string {
	switch {
	case d < 100*time.Second:
		return fmt.Sprintf("%.2fs", d.Seconds())
	case d < 100*time.Minute:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
}

// Rough formats a duration for a sentence: 0.04s, 1.6s, 12s, 3m, 2h.
func Rough(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%.2fs", d.Seconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	default:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
}

// Count formats n with thousands separated: 5,003.
func Count[T int | int64 | uint64](n T) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural returns "1 file", "3 files", "5,003 files"; many is for words that do not just take an s.
func Plural[T int | int64 | uint64](n T, one string, many ...string) string {
	word := one + "s"
	if n == 1 {
		word = one
	} else if len(many) > 0 {
		word = many[0]
	}
	return Count(n) + " " + word
}

// Bytes formats a size: 812 B, 22 MB, 1.5 GB (powers of 1000).
func Bytes[T int | int64 | uint64](n T) string {
	f, unit := float64(n), 0
	units := []string{"B", "kB", "MB", "GB", "TB"}
	for f >= 999.5 && unit < len(units)-1 {
		f, unit = f/1000, unit+1
	}
	if unit == 0 || f >= 9.95 {
		return fmt.Sprintf("%.0f %s", f, units[unit])
	}
	return fmt.Sprintf("%.1f %s", f, units[unit])
}
