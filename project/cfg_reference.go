package project

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/internal/quantity"
	"corpus-git/layout"
	"corpus-git/project/files"
)

// documented is one key of the reference.
type documented struct {
	// key may be followed by what stands for any name: permissions.PATH.
	key, kind string
	// def says what holds where no layer names the key and cfg itself has no value.
	def   string
	means string
}

// cfgKeys returns the keys that corpus-git reads in PILLAR.sample and the pillar.
func cfgKeys() []documented {
	return []documented{
		{"data", "mapping", "", "What the project itself defines."},
		{"env_defaults", "mapping", "", "Values of `data` by environment, first of the class, then of the name: `{prod: {workers: 8}}`."},
		{"os_defaults", "mapping", "", "Keys of cfg by grain `os_family`, then `os`: `{Debian: {data: {…}}}`."},
		{classesKey, "list of +NAME and -NAME, or mapping", "", "Classes of the recipe that are on or off, where it declares some ([layers](guide/layers.md#classes)). Steps find the names of those that are on."},
		{"redact_show", "path or list", "none", "In the pillar: keys whose values are not secret, such as `data.domain`."},
		{"default_env", "text", "", "The environment: `dev`, `staging`, `prod`, or a name of the server's `environments` ([environments](cfg.md#environments))."},
		{"env", "mapping", "none", "Variables for everything that runs for the project ([environment](recipe.md#the-environment))."},
		{"user", "text", "", "The system user that owns the project's files, where the server manages accounts."},
		{"group", "text", "", "The user's main group; where it is not named, the first of `groups`."},
		{"groups", "list of names", "", "All groups of the user; `group` is put in front."},
		{"permissions", "mapping", "none", "Owners and modes of paths ([below](#permissions))."},
		{files.Key, "mapping", "none", "Files that each deployment writes, with their contents ([layers](guide/layers.md#files)). A path is absolute or relative to the tree."},
		{"checks", "mapping", "none", "Health checks ([below](#checks))."},
		{"units", "mapping or list", "none", "What the project runs ([below](#units))."},
		{"logs", "glob, list, or mapping of names and these", "none", "Files that `logs --app` shows ([logs](processes.md))."},
		{"on_rollback", "`steps`, `undo`, `tree`", "`" + RollbackSteps + "`; in class dev `" + RollbackTree + "`", "How far a rollback goes ([rollback](rollback.md#how-far-it-goes))."},
		{"rollback_timeout", "duration", "`" + quantity.FormatDuration(DefaultRollbackTimeout) + "`", "How long the steps may take that are applied after a rollback."},
		{"undo", "mapping", "", "`{packages: true}`: a rollback of a deployment of this release restores the installed packages, too (rollback.md)."},
		{"converge", "mapping", "the server's", "When the live release is applied again: `{boot: true, every: 1h, splay: 10m, mode: report}` ([converge](guide/converge.md))."},
		{"watch", "list of keys", "none", "Keys at whose changes the live release is applied again, such as `shared/colour` or `services/db/*` ([keys](guide/kv.md))."},
		{"watch_debounce", "duration", "`" + quantity.FormatDuration(watchDebounce) + "`", "How long nothing of `watch` must have changed before it is applied."},
		{"register", "mapping", "none", "Services that run here while the project's periodic checks succeed, with what others are told of each: `{web: {port: 8080}}` ([keys](guide/kv.md#services))."},
		{"keep_archives", "number", "", "How many archives of good deployments are kept. The default is the server's, and so are those of the next four."},
		{"keep_failed_archives", "number", "", "How many archives of failed deployments are kept."},
		{"archives_max_bytes", "size", "the server's", "What all archives of the project may take on disk; 0 sets no bound."},
		{"archives_max_age", "duration", "the server's", "Older archives of good deployments are removed; 0 sets no bound."},
		{"failed_archives_max_age", "duration", "the server's", "The same for failed ones."},
		{"runner", "`" + strings.Join(Runners(), "`, `") + "`", "the server's", "What runs SLS files."},
		{"only", "list of procedures", "all", "The procedures that run: " + strings.Join(Procedures(), ", ") + "."},
		{"only_steps", "list of steps", "all", "The steps that run, without `.sls`."},
		{"skip_PROCEDURE", "true or false", "", "Leaves a procedure out; `release-sync` is written `skip_release_sync`. `skip_deploy` and `skip_rotate_archives`, known from makina-states, are accepted and change nothing."},
		{"store_other_branches", "true or false", "the server's", "Whether pushes of other branches than the deployed one are stored, without deploying."},
		{"submodules", "`" + SubmodulesFetch + "`, `" + SubmodulesEmpty + "`", "`" + SubmodulesFetch + "`", "Whether submodules are fetched ([submodules](submodules.md))."},
		{"submodules_base", "address", "the project's repository here", "Where relative addresses of submodules lead from."},
		{"lfs", "`" + LFSNote + "`, `" + LFSRefuse + "`", "`" + LFSNote + "`", "What is done about pointer files of git-lfs ([git-lfs](submodules.md))."},
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

// fileOnly reports whether a key means nothing on the command line of one run: it is read before the run, after it, or for another release.
func fileOnly(key string) bool {
	switch key {
	case "env_defaults", "os_defaults", "redact_show", "on_rollback", "rollback_timeout", "store_other_branches", convergeKey, unitsKey, logsKey:
		return true
	}
	return false
}

// factKeys returns the keys that the deployment itself says.
func factKeys() []documented {
	return []documented{
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

// checkKeyDocs documents the keys of checks beside their kinds. def is what a check has that does not name the key.
func checkKeyDocs() []documented {
	d := defaultCheck()
	return []documented{
		{"start_after", "duration", quantity.FormatDuration(d.StartAfter), "The delay before the first attempt."},
		{"attempts", "number", fmt.Sprint(d.Attempts), "How many attempts, until one passes."},
		{"every", "duration", quantity.FormatDuration(d.Every), "The interval between two attempts."},
		{"timeout", "duration", quantity.FormatDuration(d.Timeout), "The time limit of one attempt."},
		{"also_after", "duration", quantity.FormatDuration(d.AlsoAfter), "How long it must keep passing after that; a failure then is final."},
		{"on", "list", "[deploy, rollback, converge]", "When it runs; `every: 1m` among them runs it while nothing is deployed, too."},
		{"method", "text", d.HTTP.Method, "The request's method."},
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
		{"days", "number", fmt.Sprint(int(d.MinValid / quantity.Day)), "How many days the certificate must remain valid."},
		{"user", "text", "", "Who runs the command, where it is not the project's user."},
	}
}

// checkKindDocs returns the kinds of checks and their values.
func checkKindDocs() []documented {
	return []documented{
		{string(CheckHTTP), "an http or https URL", "", "a status of 200 to 299, and what `status`, `contains` and `json` ask for"},
		{string(CheckTCP), "`HOST:PORT`", "", "a connection"},
		{string(CheckUnix), "the path of a socket", "", "a connection"},
		{string(CheckCommand), "a command line for `/bin/sh`, run in the live tree as the project's user", "", "exit status 0"},
		{string(CheckUnit), "a systemd unit", "", "an active unit"},
		{string(CheckCertificate), "`HOST` or `HOST:PORT`", "", "a valid chain for the name, valid for `days` more days"},
	}
}

// unitKeyDocs returns the keys of an entry of units.
func unitKeyDocs() []documented {
	return []documented{
		{"systemd", "name or glob", "", "Units of systemd. An entry that is a text is the same; a name without a type is a `.service`."},
		{"supervisor", "`PROGRAM`, `GROUP:PROGRAM`, `GROUP:*`", "", "Programs of supervisord."},
		{"start", "command line", "", "What starts it: for `/bin/sh`, run in the live tree as the project's user."},
		{"stop", "command line", "", "What stops it."},
		{"restart", "command line", "", "What restarts it; without it, it is stopped and started."},
		{"status", "command line", "", "Succeeds while it runs."},
		{"user", "text", "", "Who runs these commands, where it is not the project's user."},
	}
}

// permissionKeyDocs returns the keys of a rule of permissions.
func permissionKeyDocs() []documented {
	return []documented{
		{"user", "name, number, `keep`", "", "The owner; `keep` leaves the one that a file has."},
		{"group", "name, number, `keep`", "", "The group."},
		{"dirs", "mode, `keep`", "", "The mode of directories: three or four octal digits **in quotes**. Without quotes YAML reads `0640` as the number 416."},
		{"files", "mode, `keep`", "", "The mode of files. A file that its owner may execute stays one: it gets `x` wherever the mode has `r`, so `'0640'` makes scripts `0750`."},
		{"acl", "list of `[default:]user:NAME:rwx`, `[default:]group:NAME:rwx`", "", "The named entries of the access control list, as setfacl(1) writes them; `-` is none, `X` is execute for folders, and for files that somebody may execute. These and no others: an empty list takes lists away; without the key they are left alone. The owner's, the group's and others' entries are those of the mode; the mask is computed."},
	}
}

// Reference is docs/cfg-keys.md: every key that corpus-git reads or says. The error is of a configuration of no layers.
func Reference(ctx context.Context) (string, error) {
	c, err := BuildCfg(ctx, CfgInputs{Name: "app", Layout: layout.Root("/srv").Project("app")})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(`# Keys of cfg

<!-- Made from project/cfg_reference.go by its tests (-update); edit that, not this page. -->

The configuration of a project: how its layers are merged is in [cfg](cfg.md). ` + "`corpus-git cfg PROJECT`" + ` shows it with the layer that each value comes from.
Durations are ` + "`90s`, `5m`, `7d`" + `, sizes ` + "`512MiB`, `2GiB`" + `. Defaults are those of a project ` + "`app`" + ` below /srv on a server without settings.

## Keys that a project sets

In the section ` + "`makina-projects.NAME`" + ` of PILLAR.sample, of the pillar and of ` + "`os_defaults`" + `; *command line* says whether ` + "`key=value`" + ` sets it for one run, too.

`)
	reads(&b, c, cfgKeys())
	b.WriteString("\n## Keys that the deployment says\n\nRead only, in templates as `cfg.project_root`, in hooks and executable steps by [variables](recipe.md#the-environment).\n\n| key | type | value | meaning |\n| --- | --- | --- | --- |\n")
	for _, k := range factKeys() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.key, k.kind, c.shown(k), k.means)
	}
	b.WriteString("\n## checks\n\nA mapping of names; each check has one kind ([when they run](checks.md)).\n\n| kind | its value | succeeds with |\n| --- | --- | --- |\n")
	for _, k := range checkKindDocs() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.key, k.kind, k.means)
	}
	b.WriteString("\n| key | type | of | default | meaning |\n| --- | --- | --- | --- | --- |\n")
	for _, k := range checkKeyDocs() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", k.key, k.kind, kindsWith(k.key), code(k.def), k.means)
	}
	b.WriteString("\n## units\n\nA list of names and globs of systemd units, or a mapping of names and these keys ([commands](processes.md)).\n\n| key | type | meaning |\n| --- | --- | --- |\n")
	for _, k := range unitKeyDocs() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.key, k.kind, k.means)
	}
	b.WriteString("\n## permissions\n\nA mapping of paths, which start with `project`, `data` or `pillar`, and these keys ([what holds without them](permissions.md)).\n\n| key | type | meaning |\n| --- | --- | --- |\n")
	for _, k := range permissionKeyDocs() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.key, k.kind, k.means)
	}
	return b.String(), nil
}

// reads writes the table of the keys that a project sets.
func reads(b *strings.Builder, c *Cfg, keys []documented) {
	b.WriteString("| key | type | default | command line | meaning |\n| --- | --- | --- | --- | --- |\n")
	for _, k := range keys {
		line := "yes"
		if fixed(k.key) || fileOnly(k.key) {
			line = "no"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", k.key, k.kind, c.shown(k), line, k.means)
	}
}

// shown returns the value of a key where no layer says another one, else what the documentation says of it.
func (c *Cfg) shown(k documented) string {
	if k.def != "" {
		return k.def
	}
	key := strings.Replace(k.key, "PROCEDURE", ProcedureKey(Procedures()[0]), 1)
	v, _ := c.value.GetStr(key)
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return code(v)
	case bool:
		return code(fmt.Sprint(v))
	case *py.Dict:
		return "`{}`"
	case *py.List:
		var out []string
		for _, x := range v.Items() {
			out = append(out, py.Str(x))
		}
		return code("[" + strings.Join(out, ", ") + "]")
	}
	return code(py.Str(v))
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// kindsWith returns the kinds of checks that take a key.
func kindsWith(key string) string {
	var out []string
	for _, kind := range CheckKinds() {
		if checkKeys(kind)[key] != nil {
			out = append(out, string(kind))
		}
	}
	if len(out) == len(CheckKinds()) {
		return "all"
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
