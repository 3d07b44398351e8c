// Package keydoc describes keys of cfg for docs/cfg-keys.md: those whose description depends on no constant of package project, whose tests hold all of
// them to the code.
package keydoc

// Row is a key, its type, its default where cfg has none, and its meaning.
type Row [4]string

// Facts returns the keys that the deployment itself says.
func Facts() []Row {
	return []Row{
		{"name", "text", "", "The name of the project."},
		{"api_version", "text", "", "The version of these conventions."},
		{"env_class", "`dev`, `staging`, `prod`", "", "The class of the environment."},
		{"fqdn", "text", "", "The machine's full name."},
		{"minion_id", "text", "", "Salt's name of the machine."},
		{"projects_dir", "path", "", "Where all projects are."},
		{"project_dir", "path", "", "The project's own folder."},
		{"project_root", "path", "", "The live tree."},
		{"salt_root", "path", "", "Its `.salt`."},
		{"pillar_root", "path", "", "The live pillar."},
		{"data_root", "path", "", "What stays between releases: uploads, databases, sockets."},
		{"archives_root", "path", "", "The archives."},
		{"current_archive_dir", "path", "", "The folder of this deployment's archive. The archived trees are folders in it, `project` and `pillar`, while the deployment runs, if a file of the recipe names this key."},
		{"git_root", "path", "", "The repositories."},
		{"project_git_root", "path", "", "The repository of the code."},
		{"pillar_git_root", "path", "", "The repository of the pillar."},
		{"wired_salt_root", "path", "", "The link by which Salt finds the steps."},
		{"wired_pillar_root", "path", "", "The link by which Salt finds the pillar."},
		{"deployment_id", "text", "", "The ID of this deployment."},
		{"chrono", "text", "", "The name of its archive."},
		{"rollback", "true or false", "", "In a rollback by hand, and in `rollback.sls` and `notify.sls` when the tree was restored: true."},
		{"deploy_summary", "text", "none", "In `rollback.sls` and `notify.sls`: how the deployment ended, in words."},
		{"deploy_ret", "mapping", "", "The same, as `result`, `comment`, `name` and `changes`."},
		{"outputs", "mapping", "", "What the steps before this one wrote, by step and name ([outputs](guide/inputs.md#outputs))."},
		{"exports", "mapping", "", "On a node: what the nodes of earlier stages wrote, by role, node and name ([nodes](guide/nodes.md))."},
		{"kv", "mapping", "", "Keys that were set from outside: the project's own by what follows `projects/NAME/`, those of all as `shared/KEY` and `services/SERVICE/INSTANCE` ([keys](guide/kv.md))."},
		{"sls_default_pillar", "mapping", "", "PILLAR.sample as a whole."},
	}
}

// Compatible returns the last of the keys that a project sets: those of operators, and those that only steps of makina-states read.
func Compatible() []Row {
	return []Row{
		{"remote_less", "true or false", "", "A project without repositories to push to. Operators choose it with `project create`."},
		{"installer", "text", "", "Read by steps of makina-states; changes nothing here."},
		{"no_user", "true or false", "", "The same."},
		{"defaults", "mapping", "", "The same."},
		{"remote_host", "text", "the machine's full name", "The same."},
		{"this_host", "text", "the machine's full name", "The same."},
		{"push_salt_url", "text", "the remote", "Where the code is pushed to."},
		{"push_pillar_url", "text", "the remote", "Where the pillar is pushed to."},
	}
}

// Units returns the keys of an entry of units.
func Units() []Row {
	return []Row{
		{"systemd", "name or glob", "", "Units of systemd. An entry that is a text is the same; a name without a type is a `.service`."},
		{"supervisor", "`PROGRAM`, `GROUP:PROGRAM`, `GROUP:*`", "", "Programs of supervisord."},
		{"start", "command line", "", "What starts it: for `/bin/sh`, run in the live tree as the project's user."},
		{"stop", "command line", "", "What stops it."},
		{"restart", "command line", "", "What restarts it; without it, it is stopped and started."},
		{"status", "command line", "", "Succeeds while it runs."},
		{"user", "text", "", "Who runs these commands, where it is not the project's user."},
	}
}

// Permissions returns the keys of a rule of permissions.
func Permissions() []Row {
	return []Row{
		{"user", "name, number, `keep`", "", "The owner; `keep` leaves the one that a file has."},
		{"group", "name, number, `keep`", "", "The group."},
		{"dirs", "mode, `keep`", "", "The mode of directories: three or four octal digits **in quotes**. Without quotes YAML reads `0640` as the number 416."},
		{"files", "mode, `keep`", "", "The mode of files. A file that its owner may execute stays one: it gets `x` wherever the mode has `r`, so `'0640'` makes scripts `0750`."},
		{"acl", "list of `[default:]user:NAME:rwx`, `[default:]group:NAME:rwx`", "", "The named entries of the access control list, as setfacl(1) writes them; `-` is none, `X` is execute for folders, and for files that somebody may execute. These and no others: an empty list takes lists away; without the key they are left alone. The owner's, the group's and others' entries are those of the mode; the mask is computed."},
	}
}

// Kinds returns the kinds of checks and their values.
func Kinds() []Row {
	return []Row{
		{"http", "an http or https URL", "", "a status of 200 to 299, and what `status`, `contains` and `json` ask for"},
		{"tcp", "`HOST:PORT`", "", "a connection"},
		{"unix", "the path of a socket", "", "a connection"},
		{"command", "a command line for `/bin/sh`, run in the live tree as the project's user", "", "exit status 0"},
		{"unit", "a systemd unit", "", "an active unit"},
		{"certificate", "`HOST` or `HOST:PORT`", "", "a valid chain for the name, valid for `days` more days"},
	}
}

// CheckDefaults are the defaults of checks.
type CheckDefaults struct{ StartAfter, Attempts, Every, Timeout, AlsoAfter, Method, Days string }

// Checks returns the keys of a check beside its kind.
func Checks(d CheckDefaults) []Row {
	return []Row{
		{"start_after", "duration", d.StartAfter, "The delay before the first attempt."},
		{"attempts", "number", d.Attempts, "How many attempts, until one passes."},
		{"every", "duration", d.Every, "The interval between two attempts."},
		{"timeout", "duration", d.Timeout, "The time limit of one attempt."},
		{"also_after", "duration", d.AlsoAfter, "How long it must keep passing after that; a failure then is final."},
		{"on", "list", "[deploy, rollback, converge]", "When it runs; `every: 1m` among them runs it while nothing is deployed, too."},
		{"method", "text", d.Method, "The request's method."},
		{"headers", "mapping", "", "The request's headers."},
		{"body", "text", "", "The request's body."},
		{"status", "`200`, `3xx`, `200-204`, or a list of these", "2xx", "The status that the answer must have."},
		{"contains", "text", "", "A text that must be in the first MiB of the body."},
		{"json", "mapping", "", "Paths and values in the body: `{db.state: up, \"items[0].n\": 1}`."},
		{"follow", "true or false", "false", "Whether to follow redirects; otherwise a redirect is the answer. Another server than that of `url` gets neither `headers` nor `body`."},
		{"resolve", "address", "", "An address, with or without a port, to connect to in place of the host's, as `curl --connect-to` does."},
		{"socket", "path", "", "A Unix socket to connect to."},
		{"tls_name", "text", "", "The name that the certificate must have, where it is not the host; for http the `Host` header too."},
		{"ca", "path", "", "A file of certificates in PEM to trust, in place of the system's."},
		{"days", "number", d.Days, "How many days the certificate must remain valid."},
		{"user", "text", "", "Who runs the command, where it is not the project's user."},
	}
}
