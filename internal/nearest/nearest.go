// Package nearest finds the name that was probably meant.
package nearest

import "strings"

// To returns the name that is nearest to what was typed, "" if none is near: about one character in three may differ, and case is
// ignored. Of equally near ones it returns the first.
func To(typed string, names []string) string {
	best, at := "", 1+len(typed)/3
	for _, n := range names {
		if d := distance(strings.ToLower(typed), strings.ToLower(n)); d <= at && d < len(n) {
			best, at = n, d-1
		}
	}
	return best
}

// distance returns the Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		prev := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := prev
			if a[i] != b[j] {
				cost++
			}
			prev = row[j+1]
			row[j+1] = min(cost, row[j]+1, prev+1)
		}
	}
	return row[len(b)]
}
