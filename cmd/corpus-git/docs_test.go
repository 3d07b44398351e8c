package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
	"corpus-git/mirror"
	"corpus-git/procedures/extends"
	"corpus-git/procedures/machinecfg"
)

// block is a fenced block of a page.
type block struct {
	at   string // file:line
	kind string
	text string
	// notRun says why the tests do not run it: the line before it,  *Not run by the tests: REASON.*
	notRun string
}

// notRunMark begins the line before a block that is not run. Whoever reads the page sees it.
const notRunMark = "*Not run by the tests: "

// notRun is how many blocks of a page no test runs: more of them are a decision, not an accident.
func notRun(page string) int {
	return map[string]int{"README.md": 1, "CONTRIBUTING.md": 1, "docs/fuzzing.md": 1, "docs/operating.md": 4, "docs/guide/remote.md": 1, "docs/guide/nodes.md": 5, "docs/guide/ten.md": 1, "docs/guide/hubs.md": 4, "docs/guide/access.md": 2, "docs/guide/waits.md": 1, "docs/guide/mirror.md": 2, "docs/guide/containers.md": 4, "docs/api.md": 1}[page]
}

// docPages are the pages that people read: all of the repository but the decisions, which tell of what was.
func docPages(t *testing.T) []string {
	var out []string
	for _, glob := range []string{"*.md", "docs/*.md", "docs/guide/*.md", "skeletons/*/README.md", "bench/*.md"} {
		pages, err := filepath.Glob("../../" + glob)
		require.NoError(t, err)
		require.NotEmpty(t, pages, glob)
		out = append(out, pages...)
	}
	return out
}

// TestDocs does what the documentation says: commands are run in their order by a shell, SLS files and settings are checked, and what a page
// says that a command prints is printed.
func TestDocs(t *testing.T) {
	for _, file := range docPages(t) {
		page := strings.TrimPrefix(file, "../../")
		t.Run(page, func(t *testing.T) {
			all, left := blocks(t, file), 0
			if len(all) == 0 {
				return
			}
			r := newReader(t)
			r.prepare(page, all)
			for _, b := range all {
				if b.notRun != "" {
					left++
					continue
				}
				r.do(b)
			}
			r.lint()
			require.Equal(t, notRun(page), left, "blocks that are not run")
		})
	}
}

// blocks are those of a page, in order.
func blocks(t *testing.T, page string) (out []block) {
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	in, before := false, ""
	for i, line := range strings.Split(string(data), "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && !in:
			in = true
			b := block{at: fmt.Sprintf("%s:%d", filepath.Base(page), i+1), kind: fence}
			if why, ok := strings.CutPrefix(before, notRunMark); ok {
				b.notRun = strings.TrimSuffix(why, "*")
			}
			out = append(out, b)
		case isFence:
			in, before = false, ""
		case in:
			out[len(out)-1].text += line + "\n"
		case line != "":
			before = line
		}
	}
	require.False(t, in, "%s: a block has no end", page)
	return out
}

// isCommand finds a command that somebody could type.
var isCommand = regexp.MustCompile(`(?m)^(\$ )?(corpus-git|git|ssh|make|sudo|go|GIT_\w+=\S+) `)

// changesMachine finds commands that act on more than the folders of the test, which may run as root.
var changesMachine = regexp.MustCompile(`(?m)^\s*(sudo )?(dpkg|apt|apt-get|rpm|systemctl|install|useradd|usermod|userdel|mount|reboot)\b`)

// do does what one block says.
func (r *reader) do(b block) {
	r.t.Helper()
	if strings.HasPrefix(b.kind, "sh") {
		require.NotRegexp(r.t, changesMachine, b.text, "%s: it would change this machine; mark it, or write it so that it does not", b.at)
	}
	switch b.kind {
	case "sh":
		r.run(b.at, b.text)
	case "sh fails":
		out, err := r.shell(b.text)
		require.Error(r.t, err, "%s:\n%s", b.at, out)
		r.out = out
	case "": // the READMEs of skeletons. TestContainers pushes them; here is neither a machine to change nor packages.
		lint, push, _ := strings.Cut(b.text, "\n")
		require.Equal(r.t, "corpus-git lint", lint, b.at)
		require.Equal(r.t, "git push prod HEAD:master\n", push, b.at)
		r.run(b.at, lint+"\n")
	case "sh server":
		r.serve(b, r.here(b.text))
	case "sh ci", "groovy", "yaml github", "yaml gitlab":
		r.build(b)
	case "text output":
		r.printed(b)
	case "text": // a picture, or what is printed elsewhere
		require.NotRegexp(r.t, isCommand, b.text, "%s: a command that is not run", b.at)
	case "yaml step":
		r.steps++
		r.write(fmt.Sprintf("%03d_step.sls", r.steps), b.text)
	case "yaml task":
		r.write("task_example.sls", b.text)
	case "yaml sample", "yaml inputs":
		if r.steps == 0 {
			r.steps++
			r.write("001_step.sls", "a:\n  test.nop: []\n")
		}
		r.write(map[string]string{"yaml sample": "PILLAR.sample", "yaml inputs": "inputs.yaml"}[b.kind], b.text)
		r.lint()
	case "yaml settings": // of the server
		file := filepath.Join(r.tmp, "settings.yaml")
		require.NoError(r.t, os.WriteFile(file, []byte(b.text), 0o600))
		r.run(b.at, "corpus-git serve --print-config --config "+file+"\n")
	case "yaml repos":
		file := filepath.Join(r.t.TempDir(), "repos.yaml")
		require.NoError(r.t, os.WriteFile(file, []byte(b.text), 0o600))
		_, err := mirror.Read(file)
		require.NoError(r.t, err, b.at)
	case "yaml extends":
		_, err := extends.Parse(b.at, []byte(b.text))
		require.NoError(r.t, err)
	case "yaml cfg.d", "yaml local": // of the machine
		dir := r.t.TempDir()
		file := filepath.Join(dir, "10.yaml")
		require.NoError(r.t, os.WriteFile(file, []byte(b.text), 0o600))
		_, err := machinecfg.Local(file)
		if b.kind == "yaml cfg.d" {
			_, err = machinecfg.Image(dir, "shop-one")
		}
		require.NoError(r.t, err, b.at)
	default:
		r.t.Errorf("%s: nothing is done with a block of kind %q", b.at, b.kind)
	}
}

// changing is what differs from run to run: numbers and identifiers.
var changing = regexp.MustCompile(`[0-9a-f]{7,}|[0-9]+`)

// printed checks that the command before printed each line of a block. A line that is only an ellipsis stands for any.
func (r *reader) printed(b block) {
	r.t.Helper()
	same := func(s string) string {
		s = strings.ReplaceAll(s, "owners skipped (not root)", "owners skipped (accounts: off)")
		return strings.Join(strings.Fields(changing.ReplaceAllString(s, "0")), " ")
	}
	got := map[string]bool{}
	for line := range strings.Lines(r.out) {
		got[same(line)] = true
	}
	for line := range strings.Lines(b.text) {
		if line = same(line); line != "" && line != "…" {
			require.True(r.t, got[line], "%s: it did not print %q:\n%s", b.at, line, r.out)
		}
	}
}

// build does what a build server does with its part of a page: on a machine that knows nothing, with the key and the hosts of the page as secrets.
func (r *reader) build(b block) {
	r.t.Helper()
	key, known := filepath.Join(r.dir, "..", "ci"), filepath.Join(r.dir, "..", "known_hosts")
	secret := func(file string) string {
		data, err := os.ReadFile(file)
		require.NoError(r.t, err, "%s: the page has made it", b.at)
		return strings.TrimSpace(string(data))
	}
	secrets := map[string]string{"CORPUS_KEY": secret(key), "CORPUS_KNOWN_HOSTS": secret(known)}
	fresh := r.t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + fresh}
	text := b.text
	switch b.kind {
	case "sh ci":
		env = append(env, "KEY="+key, "KNOWN="+known)
	case "groovy":
		env = append(env, "KEY="+key, "KNOWN="+known)
		parts := strings.Split(text, "'''")
		require.Len(r.t, parts, 3, b.at)
		text = parts[1]
	case "yaml gitlab":
		env = append(env, "CORPUS_KEY="+key, "CORPUS_KNOWN_HOSTS="+known)
		text = ""
		for _, line := range yamlAt(r.t, b, "deploy", "script").(*py.List).Items() {
			text += line.(string) + "\n"
		}
	case "yaml github":
		step := yamlAt(r.t, b, "jobs", "deploy", "steps").(*py.List).At(1).(*py.Dict)
		vars, _ := step.GetStr("env")
		for _, e := range vars.(*py.Dict).Items() {
			name := strings.TrimSuffix(strings.TrimPrefix(e.Value.(string), "${{ secrets."), " }}")
			require.NotEmpty(r.t, secrets[name], "%s: secret %s", b.at, name)
			env = append(env, e.Key.(string)+"="+secrets[name])
		}
		run, _ := step.GetStr("run")
		text = run.(string)
	}
	clone := filepath.Join(fresh, "clone")
	out, err := exec.CommandContext(r.t.Context(), "git", "clone", "-q", "--no-local", r.dir, clone).CombinedOutput()
	require.NoError(r.t, err, "%s", out)
	push := exec.CommandContext(r.t.Context(), "sh", "-euc", r.here(text))
	push.Dir, push.Env = clone, env
	out, err = push.CombinedOutput()
	require.NoError(r.t, err, "%s:\n%s", b.at, out)
	require.Contains(r.t, string(out), "live in", b.at)
	// The next build has something to deploy.
	r.run(b.at, "git commit -q --allow-empty -m Next\n")
}

// yamlAt is the value at a path of a block.
func yamlAt(t *testing.T, b block, path ...string) any {
	doc, err := saltyaml.Parse(b.at, []byte(b.text), saltyaml.Options{})
	require.NoError(t, err)
	v := doc.Value
	for _, key := range path {
		d, ok := v.(*py.Dict)
		require.True(t, ok, "%s: %s", b.at, key)
		v, ok = d.GetStr(key)
		require.True(t, ok, "%s: %s", b.at, key)
	}
	return v
}

// write writes a file of the SLS project of the page.
func (r *reader) write(name, text string) {
	at := filepath.Join(r.salt, ".salt", name)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(at), 0o755))
	require.NoError(r.t, os.WriteFile(at, []byte(text), 0o644))
}

// lint checks the SLS files of the page.
func (r *reader) lint() {
	r.t.Helper()
	if r.steps == 0 {
		return
	}
	cmd := exec.CommandContext(r.t.Context(), "corpus-git", "lint", r.salt)
	cmd.Env = r.env
	out, err := cmd.CombinedOutput()
	require.NoError(r.t, err, "%s", out)
	require.Regexp(r.t, fmt.Sprintf("(?m)^%d steps?, ", r.steps), string(out))
}
