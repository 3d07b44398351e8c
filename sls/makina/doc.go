// Package makina holds SLS files and templates at the paths of makina-states (makina-states/…) that corpus projects include and
// import: the hooks that they use for ordering, and macros for sites of nginx, watchers and configuration files. They use Debian's packages and
// paths, and systemd where makina-states used circus.
//
// It owns only those files; the functions that they call (mc_nginx.settings, …) are in sls/modules. A tree of makina-states in the operator's file
// roots takes precedence, file by file.
//
// Invariants: the names of states, hooks and arguments are those that projects use; the text was written for this project.
package makina
