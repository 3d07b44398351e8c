// Package config is the server's configuration: what can be set, where each value came from, and what a reload changes.
//
// It owns one struct, Config, whose tags are the only list of keys: the YAML file, the environment (CORPUS_GIT_*), the
// flags, --print-config, the reload's report and docs/configuration.md are generated from it, so they cannot differ.
//
// It never reads a file, the environment or the command line itself: they are passed to Load. It opens nothing.
//
// Invariants: later sources win (default, file, environment, flags); an unknown key is an error with its line
// and the nearest name; no secret is printed. A Config does not change after Load and is safe to share.
package config
