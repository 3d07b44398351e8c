// Package tool has the runners of steps that other tools apply: playbooks (ansible-playbook), manifests (puppet apply), and files for a
// program of the operator's (Program). What the tool does is reported as SLS states are: a task, a resource is one state.
//
// It owns no configuration of the tools but what is given on their command line and in the environment. The configuration of the
// project (cfg) and what the tool writes for itself are in a folder of mode 0700 that is removed when the step ends.
//
// A test run (Input.Test) is the tool's own check mode: what runs in it is the tool's promise, not ours.
package tool
