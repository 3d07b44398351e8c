// Package units lists what a project runs, starts and stops it, and reads its logs.
//
// It owns how systemd, supervisord and commands of a project are called: which of their units the project's configuration refers to, the state
// of each, and where it logs. It does not decide when (the caller keeps deployments out meanwhile), and acts only on what the configuration
// names: what a person types selects among those, and is not part of a command line. Files are opened as the user that the caller names,
// following no link.
//
// Commands run through execx, and end when the context does. A Runner belongs to one call; after a crash the commands that systemd and the
// others received until then stay in effect.
package units
