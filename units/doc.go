// Package units lists what a project runs, starts and stops it, and reads its logs.
//
// It owns how systemd, supervisord and commands of a project's own are asked and told: which of their units the project's
// configuration means, what state each is in, and where it logs. It never decides when (the caller keeps deployments out
// meanwhile), and acts on nothing that the configuration does not name: what a person types selects among those, and is
// no part of a command line. Files are opened as the user that the caller names, following no link.
//
// Commands run through execx, and end when the context does. A Runner belongs to one call; a crash leaves what systemd
// and the others have been told by then.
package units
