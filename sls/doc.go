// Package sls renders and runs SLS files: the steps of an install.
//
// It owns the whole road of one SLS file: Jinja, YAML, include and extend, requisites, the
// order of states, their functions, and the runners that apply them (built in, salt-call,
// executables). It never chooses which steps run, never keeps a journal, never prints: what
// happens is told to a Sink as it happens.
//
// Invariants: Compile changes nothing on the machine, and in Static mode does not even look at
// what an earlier step may change. An error that a file's author caused is a *fault.Error of
// kind Failed with file and line. A failed state is a result, not an error. No error text holds
// a pillar value.
//
// Concurrency: an Input is read only; several goroutines may use one Runner. One Apply runs its
// states one after the other.
//
// A crash leaves what the states did so far. A managed file is the old one or the new one; what
// the crash left of the new one has no name, or is removed by the next run that writes it.
//
// The reference for what SLS means is the Salt documentation: "State System Reference",
// "Highstate data structure definitions", "Requisites and Other Global State Arguments".
package sls
