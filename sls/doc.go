// Package sls is what the rest of the program sees of SLS files, the steps of an install: an Input goes to a Runner, which
// reports to a Sink what happens and returns a StepResult.
//
// The work is done below:
//
//	compile   an SLS file becomes a Program: Jinja, YAML, include and extend, requisites, the order of states
//	run       the runners: built in, built in or Salt (Auto), executables
//	salt      the runners that hand a file to Salt: salt-call, its configuration, one Salt process for a deployment
//	state     the state functions, by family
//	modules   the functions of salt['…'] in templates, and of module.run
//	jinja, render, fileroot, grains, host    what these use
//
// It never chooses which steps run, never keeps a journal, never prints.
//
// Invariants: a Check changes nothing on the machine, and in Static mode does not even look at what an earlier step may
// change. An error that a file's author caused is a *fault.Error of kind Failed with file and line. A failed state is a
// result, not an error. No error text holds a pillar value.
//
// Concurrency: an Input is read only; several goroutines may use one Runner. One Apply runs its states one after the other.
//
// A crash leaves what the states did so far. A managed file is the old one or the new one; what the crash left of the new
// one has no name, or is removed by the next run that writes it.
//
// The reference for what SLS means is the Salt documentation: "State System Reference",
// "Highstate data structure definitions", "Requisites and Other Global State Arguments".
package sls
