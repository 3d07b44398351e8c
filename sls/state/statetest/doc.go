// Package statetest is for the tests of families of state functions: it calls one function, on this machine or on one that is
// made up.
package statetest
