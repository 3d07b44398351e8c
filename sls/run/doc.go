// Package run contains the runners of steps: Builtin runs a compiled Program state by state, following requisites,
// conditions, retries and listeners; Auto passes to Salt the files that need it; Script runs an executable.
//
// carry.go passes changes that templates made in cfg to the following steps.
package run
