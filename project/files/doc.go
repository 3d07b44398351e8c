// Package files reads the key files of a project's configuration: files that are written in each deployment, with their contents in the configuration.
//
// It owns the keys of one such file and their validation: what a format cannot express is refused here, before anything runs. It writes nothing, and knows
// neither layers nor the machine.
package files
