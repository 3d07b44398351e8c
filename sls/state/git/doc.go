// Package git implements the state functions of Salt's module git, and those of mc_git, which run git(1).
//
// A password in a URL is passed to git on its standard input or in its environment, never in its arguments, and
// appears in no message.
package git
