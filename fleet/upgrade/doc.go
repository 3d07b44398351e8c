// Package upgrade replaces the program of an agent with one that its hub sends, and returns to the old one if the new one does not reach
// the hub.
//
// It owns the folder of such programs, the note of which one is to be run, and the trial of a new one: the old program runs it as its
// child, and ends it unless it reaches the hub. It does not decide which program a machine gets; it runs what a trusted key has signed.
//
// Invariants: a program that has not reached the hub is never run again, not even by a later start. The program that was installed on the
// machine is never changed; one that is installed there later takes precedence.
//
// A crash leaves a note of a trial: the next start uses the previous program.
package upgrade
