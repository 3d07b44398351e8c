// Package sls is the interface to SLS files, the steps of an install, for the rest of the program: an Input goes to a Runner, which reports
// events to a Sink and returns a StepResult.
//
// The work is done in:
//
//	compile   an SLS file becomes a Program: Jinja, YAML, include and extend, requisites, the order of states
//	run       the runners: built in, built in or Salt (Auto), executables
//	salt      the runners that hand a file to Salt: salt-call, its configuration, one Salt process for a deployment
//	state     the state functions, by family
//	modules   the functions of salt['…'] in templates, and of module.run
//	jinja, render, fileroot, grains, host    what these use
//
// It does not choose which steps run, keeps no journal, and prints nothing.
//
// Invariants: a Check changes nothing on the machine, and in Static mode does not even read anything that an earlier step may change. An
// error in a file is a *fault.Error of kind Failed with file and line. A failed state is a result, not an error. No error text contains a
// pillar value.
//
// Concurrency: an Input is read-only; several goroutines may use one Runner. One Apply runs its states in sequence.
//
// A crash leaves the changes that the states made so far. A managed file is either the old or the new one; an incomplete new one has no
// name, or is removed by the next run that writes it.
//
// The reference for the meaning of SLS is the Salt documentation: "State System Reference",
// "Highstate data structure definitions", "Requisites and Other Global State Arguments".
package sls
