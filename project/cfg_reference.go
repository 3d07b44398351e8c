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
	"corpus-git/project/keydoc"
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
	return append([]documented{
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
	}, docs(keydoc.Compatible())...)
}

// docs converts the tables of keydoc.
func docs(table []keydoc.Row) (out []documented) {
	for _, r := range table {
		out = append(out, documented{r[0], r[1], r[2], r[3]})
	}
	return out
}

// factKeys returns the keys that the deployment itself says.
func factKeys() []documented { return docs(keydoc.Facts()) }

// fileOnly reports whether a key means nothing on the command line of one run: it is read before the run, after it, or for another release.
func fileOnly(key string) bool {
	switch key {
	case "env_defaults", "os_defaults", "redact_show", "on_rollback", "rollback_timeout", "store_other_branches", convergeKey, unitsKey, logsKey:
		return true
	}
	return false
}

// checkKeyDocs documents the keys of checks beside their kinds. def is what a check has that does not name the key.
func checkKeyDocs() []documented {
	d := defaultCheck()
	text := quantity.FormatDuration
	return docs(keydoc.Checks(keydoc.CheckDefaults{
		StartAfter: text(d.StartAfter), Attempts: fmt.Sprint(d.Attempts), Every: text(d.Every), Timeout: text(d.Timeout), AlsoAfter: text(d.AlsoAfter),
		Method: d.HTTP.Method, Days: fmt.Sprint(int(d.MinValid / quantity.Day)),
	}))
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
	for _, k := range docs(keydoc.Kinds()) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.key, k.kind, k.means)
	}
	b.WriteString("\n| key | type | of | default | meaning |\n| --- | --- | --- | --- | --- |\n")
	for _, k := range checkKeyDocs() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", k.key, k.kind, kindsWith(k.key), code(k.def), k.means)
	}
	b.WriteString("\n## units\n\nA list of names and globs of systemd units, or a mapping of names and these keys ([commands](processes.md)).\n\n| key | type | meaning |\n| --- | --- | --- |\n")
	for _, k := range docs(keydoc.Units()) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.key, k.kind, k.means)
	}
	b.WriteString("\n## permissions\n\nA mapping of paths, which start with `project`, `data` or `pillar`, and these keys ([what holds without them](permissions.md)).\n\n| key | type | meaning |\n| --- | --- | --- |\n")
	for _, k := range docs(keydoc.Permissions()) {
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
