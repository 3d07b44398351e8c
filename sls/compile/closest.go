package compile

import "strings"

// closest returns the candidate most similar to s, "" if none is similar enough for s to be a typo.
func closest(s string, candidates []string) string {
	best, bestDist := "", len([]rune(s))/3+2
	for _, c := range candidates {
		if d := distance(s, c, bestDist); d < bestDist {
			best, bestDist = c, d
		}
	}
	return best
}

// distance returns the Levenshtein distance, or limit if it is not less than limit.
func distance(a, b string, limit int) int {
	x, y := []rune(a), []rune(b)
	if len(x)-len(y) >= limit || len(y)-len(x) >= limit || len(x) > 200 || len(y) > 200 {
		return limit
	}
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(x); i++ {
		prev := row[0]
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			cur := min(row[j]+1, row[j-1]+1, prev+cost)
			prev, row[j] = row[j], cur
		}
	}
	return min(row[len(y)], limit)
}

// closestFunction is closest for module.function: a typo changes one or two letters, and for a known module
// only the function is compared.
func closestFunction(s string, candidates []string) string {
	mod, fun, ok := strings.Cut(s, ".")
	if !ok {
		return ""
	}
	best, bestDist := "", 3
	for _, c := range candidates {
		cmod, cfun, _ := strings.Cut(c, ".")
		d := distance(s, c, 3)
		if cmod == mod {
			d = distance(fun, cfun, 3)
		}
		if d < bestDist && d < max(len(fun), len(cfun)) {
			best, bestDist = c, d
		}
	}
	return best
}
