// Package makina holds SLS files and templates at the paths of makina-states (makina-states/…) that corpus projects include and
// import: the hooks by which they order themselves, and macros for sites of nginx, watchers and configuration files. They use Debian's packages and
// paths, and systemd where makina-states used circus.
//
// It owns those files, nothing else; the functions that they call (mc_nginx.settings, …) are those of sls/modules. A tree of
// makina-states on the operator's file roots comes first, file by file.
//
// Invariants: the names of states, hooks and arguments are those that projects use; the text is this project's own.
package makina
