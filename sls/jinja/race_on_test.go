//go:build race

package jinja

// raceEnabled says that the tests run with the race detector.
const raceEnabled = true
