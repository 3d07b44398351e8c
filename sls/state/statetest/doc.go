// Package statetest supports the tests of families of state functions: it calls one function, on this machine or on a
// simulated one.
package statetest
