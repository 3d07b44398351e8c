// Package tool contains the runners of steps that other tools apply: playbooks (ansible-playbook), manifests (puppet apply), and files
// for a program of the operator (Program). What the tool does is reported like SLS states: each task or resource is one state.
//
// It sets no configuration of the tools except on their command line and in the environment. The configuration of the
// project (cfg) and what the tool writes for itself are in a folder of mode 0700 that is removed when the step ends.
//
// A test run (Input.Test) is the tool's own check mode: the tool, not this package, decides what runs in it.
package tool
