package slstest

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"

	"golang.org/x/tools/txtar"

	"corpus-git/sls/compile"
	"corpus-git/sls/grains"
	"corpus-git/sls/modules"
	"corpus-git/sls/render"
	"corpus-git/sls/salt/names"
	"corpus-git/sls/state"
)

// tree is what the page reports one tree.
type tree struct {
	name, about, difference string
	functions               map[string]bool // that its report names
	text                    string          // of its SLS files
}

func readTrees() ([]tree, error) {
	entries, err := fs.Glob(trees, "testdata/*.txtar")
	if err != nil {
		return nil, err
	}
	sort.Strings(entries)
	var out []tree
	for _, e := range entries {
		src, err := fs.ReadFile(trees, e)
		if err != nil {
			return nil, err
		}
		a := txtar.Parse(src)
		t := tree{name: strings.TrimSuffix(filepath.Base(e), ".txtar"), functions: map[string]bool{},
			difference: options(string(a.Comment))["difference"]}
		t.about, _, _ = strings.Cut(string(a.Comment), "\n")
		for _, f := range a.Files {
			switch {
			case strings.HasPrefix(f.Name, "golden"):
				for _, l := range strings.Split(string(f.Data), "\n") {
					if fun, _, ok := strings.Cut(l, " "); ok && strings.Contains(fun, ".") {
						t.functions[fun] = true
					}
				}
			case strings.HasSuffix(f.Name, ".sls"):
				t.text += string(f.Data)
			}
		}
		out = append(out, t)
	}
	return out, nil
}

func (t tree) declares(argument string) bool {
	return regexp.MustCompile(`[-{] *` + regexp.QuoteMeta(argument) + `:`).MatchString(t.text)
}

// how says, in words, how many trees cover something, "" if none does.
func how(all []tree, is func(t tree) bool) string {
	n := 0
	for _, t := range all {
		if is(t) {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// Markdown returns the page of what the built-in runner supports, and where it differs from Salt on purpose. It is long as it writes one section
// after the other.
func Markdown() (string, error) {
	all, err := readTrees()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("# Salt compatibility\n\n<!-- Made from sls/slstest by its tests (-update-page); edit the trees, not this page. -->\n\n")
	fmt.Fprintf(&b, "The built-in runner is held against %d trees of SLS files, each run through the real Salt (release %s). Of each tree the set and the\n"+
		"order of states, their results, changes and comments, and the files afterwards (content, mode, owner) are compared.\n"+
		"A file that uses what is not on this page goes to `salt-call`, where that is installed; else the push is refused before\n"+
		"anything ran, and the message names file, line and function.\n", len(all), Release)

	b.WriteString("\n## Differences\n\nThose that stay, and why. Everything else that differs is a bug.\n\n| tree | what it does | why the built-in runner differs |\n| --- | --- | --- |\n")
	for _, t := range all {
		if t.difference != "" {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", t.name, cell(t.about), cell(t.difference))
		}
	}

	b.WriteString("\n## State functions\n\nThe arguments are those of the function itself, without `name`, the requisites and the global ones. An argument that is not\nknown is an error where it is like one that is, or where Salt refuses it; where Salt ignores it, the push names it with its line. One of Salt's that is lacking sends the file to `salt-call`, unless it asks for nothing (`false`, or Salt's default).\nSo does a value that only Salt can do: another template engine than Jinja, options of a template's own (its line `#jinja2:`), an encoding of East Asia, a source over another protocol than HTTP, a regular expression\nthat Python refuses, a rar archive, the serializer yamlex, and those that\nSalt 3008 carries no more (plist, python, keyvalue), options of the serializers configparser, toml and msgpack that are Python objects, merge_if_exists with toml.\nSo does `root` of cmd states: it runs in a chroot, and mounts file systems there.\nRegular expressions are Python's. One that needs backtracking (a look-around, a back reference) may take 10 seconds and a text of 8 MiB.\n" +
		"Where a function changes the machine (packages, services, accounts), its trees bring the tools that it runs.\n\n" +
		"| function | arguments | lacking | trees |\n| --- | --- | --- | --- |\n")
	table := state.All()
	// Why a function has no tree: Salt would change this machine, or contact another one.
	beside := "tests beside the code: "
	untested := map[string]string{
		"debconf.set": beside + "the answers of debconf are the machine's", "locale.present": beside + "locales are the machine's", "timezone.system": beside + "the time zone is the machine's",
		"service.masked": beside + "Salt reads masks in /etc/systemd", "service.unmasked": beside + "Salt reads masks in /etc/systemd",
		"corpus.file":             "corpus-git's own, of which the step `files` of a deployment is made: the scenario `files`",
		"ssh_known_hosts.present": beside + "names are hashed with a random salt, and hosts asked", "ssh_known_hosts.absent": beside + "with ssh_known_hosts.present",
	}
	for _, n := range table.Names() {
		f, _ := table.Lookup(n)
		trees := how(all, func(t tree) bool { return t.functions[n] })
		if trees == "" {
			trees = untested[n]
		}
		args := fmt.Sprint(len(f.Params) - 1)
		if f.AnyParam {
			args = "any"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", n, args, strings.Join(slices.Sorted(maps.Keys(f.Unsupported)), ", "), trees)
	}

	b.WriteString("\n## Requisites and global arguments\n\nTargets are named by ID, by name, by a pattern, or as a whole file (`sls`). A loop is named state by state.\n" +
		"`reload_modules`, `reload_grains`, `reload_pillar`,\n`runas_password`, `fire_event` and `aggregate` " +
		"choose how Salt works inside: they are taken and change nothing.\n\n| argument | trees |\n| --- | --- |\n")
	// Why an argument has no tree.
	untold := map[string]string{"runas_password": "Windows only"}
	for _, n := range append(compile.Requisites(), compile.GlobalArguments()...) {
		trees := how(all, func(t tree) bool { return t.declares(n) })
		if trees == "" {
			trees = untold[n]
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", n, trees)
	}

	b.WriteString("\n## Functions of templates\n\nWhat `salt['…']` holds, and `module.run`, `onlyif` and `unless` may call.\n\n")
	by := map[string][]string{}
	var mods []string
	for _, n := range modules.New(&modules.Env{}).Names() {
		m, f, _ := strings.Cut(n, ".")
		if by[m] == nil {
			mods = append(mods, m)
		}
		by[m] = append(by[m], f)
	}
	b.WriteString("| module | functions |\n| --- | --- |\n")
	for _, m := range mods {
		fmt.Fprintf(&b, "| `%s` | `%s` |\n", m, strings.Join(by[m], "` `"))
	}
	grainsMarkdown(&b)
	names := render.New(&modules.Env{}).Names()
	b.WriteString("\n## Filters, tests and functions of templates\n\nThose of Jinja, and those of Salt. Each was held against Salt with values of every type, undefined ones too.\n\n| what | names |\n| --- | --- |\n")
	for _, row := range []struct {
		what  string
		names []string
	}{{"filters", names.Filters}, {"tests", names.Tests}, {"functions and variables", names.Globals}} {
		fmt.Fprintf(&b, "| %s | `%s` |\n", row.what, cell(strings.Join(row.names, "` `")))
	}
	fmt.Fprintf(&b, "| filters that only Salt has | `%s` |\n", strings.Join(render.Lacking(), "` `"))
	b.WriteString("\nA file with one of the last row goes to `salt-call`, as one does with the function `lipsum`, targets as conditions\nof `ifelse`, or a seed for `random_sample` and `random_shuffle`.\n")
	return b.String(), nil
}

// grainsMarkdown lists the grains that templates read.
func grainsMarkdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n## Grains\n\nThose that templates find, where the machine has what they tell of: `%s`.\n\n"+
		"Salt alone can tell these; a file that asks for one goes to `salt-call`: `%s`.\n", strings.Join(grains.Names(), "` `"), strings.Join(names.Grains(), "` `"))
}

// Release is the release of Salt that the trees were recorded with.
const Release = "3008.3"

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
