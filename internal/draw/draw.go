// Package draw seeds the tests that choose at random. It is imported only by tests.
//
// It owns one rule: tests that run for every change use the same seed each time, so that a failure is caused by the change; the long runs
// (make crash) use a new seed each time, and print it so that the run can be repeated.
package draw

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Variable is the environment variable that holds the seed.
const Variable = "CORPUS_GIT_CRASH_SEED"

// Seed returns the number in CORPUS_GIT_CRASH_SEED, 1 if it is not set, and logs it. Any value but a number fails the test.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(1)
	if s := os.Getenv(Variable); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", Variable, err)
		}
		seed = n
	}
	t.Logf("%s=%d", Variable, seed)
	return seed
}

// Below returns a number from 0 to n-1 that is derived from the seed and the test's name.
func Below(t testing.TB, n int) int {
	t.Helper()
	name := uint64(0)
	for _, c := range t.Name() {
		name = name*31 + uint64(c)
	}
	return rand.New(rand.NewPCG(Seed(t), name)).IntN(n) //nolint:gosec // chooses test cases
}
