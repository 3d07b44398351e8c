// Package run has the runners of steps: Builtin runs a compiled Program state by state, as requisites, conditions, retries
// and listeners say; Auto hands to Salt what needs it; Script runs an executable.
//
// carry.go is how what templates changed in cfg reaches the steps that follow.
package run
