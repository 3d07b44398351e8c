// Package git has the state functions of Salt's module git, and mc_git's, which run git(1).
//
// A password in a URL goes to git by its standard input or environment, never by its arguments, and is in no message.
package git
