package slstest

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"corpus-git/internal/execx"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/grains"
	"corpus-git/sls/host"
)

//go:embed testdata/*.txtar
var trees embed.FS

// Options of a run of the suite.
type Options struct {
	// New returns a runner, which runs many trees, one after the other; dir does not exist yet and belongs to the runner.
	New func(t *testing.T, dir string) sls.Runner
	// Runners is the number of runners, each in its own place, in parallel; 0 means one.
	Runners int
	// Update, if not "", is the testdata directory whose golden files are written instead of compared.
	Update string
	// Only selects trees by name; nil means all.
	Only func(name string) bool
}

// minTrees guards against a suite that runs nothing.
const minTrees = 250

// place is a runner with the directory in which it runs one tree after the other. The directory stays the same, so that a
// runner that keeps a process sees the same file roots.
type place struct {
	base   string
	runner sls.Runner
}

// Run compares a runner with every tree.
func Run(t *testing.T, o Options) {
	was := syscall.Umask(0o022) // what was recorded was made with this one
	t.Cleanup(func() { syscall.Umask(was) })
	entries, err := fs.Glob(trees, "testdata/*.txtar")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(entries), minTrees, "the suite has lost its trees")
	places := make(chan place, max(o.Runners, 1))
	for range cap(places) {
		base := t.TempDir()
		places <- place{base, o.New(t, filepath.Join(base, runnerDir))}
	}
	ran := 0
	for _, e := range entries {
		name := strings.TrimSuffix(filepath.Base(e), ".txtar")
		if o.Only != nil && !o.Only(name) {
			continue
		}
		ran++
		t.Run(name, func(t *testing.T) {
			if cap(places) > 1 {
				t.Parallel()
			}
			p := <-places
			defer func() { places <- p }()
			src, err := fs.ReadFile(trees, e)
			require.NoError(t, err)
			empty(t, p.base)
			one(t, o, p, name, src)
		})
	}
	require.NotZero(t, ran, "no tree has such a name")
}

// runnerDir is the runner's own directory, in base.
const runnerDir = "runner"

// empty removes what the previous tree left.
func empty(t *testing.T, base string) {
	entries, err := os.ReadDir(base)
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() != runnerDir {
			require.NoError(t, os.RemoveAll(filepath.Join(base, e.Name())))
		}
	}
}

// one runs one tree, and compares what it left with the golden file.
func one(t *testing.T, o Options, p place, name string, src []byte) {
	a := txtar.Parse(src)
	opts := options(string(a.Comment))
	if opts["root"] == "true" && os.Geteuid() != 0 {
		t.Skip("this tree needs root")
	}
	owned := ownPlaces(opts)
	if len(owned) > 0 {
		p = ownPlace(t, o, p)
	}
	if tool := opts["needs"]; tool != "" {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("this tree needs " + tool)
		}
	}
	base, runner := p.base, p.runner
	work := filepath.Join(base, "work")
	require.NoError(t, os.Mkdir(work, 0o755))
	in := input(base, work, opts)
	if v, _ := in.Grains.GetStr("os"); opts["os"] != "" && v != opts["os"] {
		t.Skip("this tree is for " + opts["os"])
	}
	me := me(in.Host)
	marks := []string{"@D@", work, "@B@", base}
	seen := map[string]string{}
	for _, dir := range owned {
		seen[dir] = own(t, in.Host, runner, base, dir)
		marks = append(marks, "@"+strings.ToUpper(dir)+"@", seen[dir])
	}
	days := []string{today()}
	golden, builtin := lay(t, in, a, base, work, strings.NewReplacer(marks...))
	res, err := runner.Apply(context.Background(), in, sls.Discard{})
	got := strings.ReplaceAll(report(res, err, work), "owned by "+me, "owned by @ME@")
	got += strings.ReplaceAll(files(t, in.Host, work, "files"), work, "@D@")
	for _, dir := range owned {
		got += files(t, in.Host, filepath.Join(base, dir), dir)
	}
	if apt, ok := seen["apt"]; ok {
		got = strings.ReplaceAll(got, apt, "@APT@")
	}
	got = strings.ReplaceAll(got, base, "@B@")
	if opts["etc"] == "true" {
		for _, day := range append(days, today()) { // midnight may be between them
			got = strings.ReplaceAll(got, day, "@TODAY@")
		}
	}
	if o.Update != "" {
		update(t, o, name, runner.Name(), a, golden, got)
		return
	}
	want := golden
	if runner.Name() == "builtin" && builtin != "" {
		want = builtin
	}
	require.NotEmpty(t, want, "the tree has no golden file")
	require.Equal(t, builtin != "", opts["difference"] != "", "golden.builtin needs a line difference: in the comment, and that one needs golden.builtin")
	require.Equal(t, want, got)
}

// today returns the day as shadow(5) counts it: since 1970.
func today() string { return strconv.FormatInt(time.Now().Unix()/86400, 10) }

// input returns the input of the tree in base, with the machine's tools and nothing else of the machine.
func input(base, work string, opts map[string]string) *sls.Input {
	in := &sls.Input{SLS: "t", Roots: fileroot.Roots{fileroot.OnDisk(filepath.Join(base, "salt"))}, Host: host.New(execx.OS{}),
		Test: opts["test"] == "true", Grains: grains.Collect(grains.Source{ID: "corpus-test"}),
		Pillar: py.NewDict(), Cfg: py.NewDict("name", "t", "data", py.NewDict("dir", work))}
	for i, kv := range in.Host.Environ {
		// Tools of the tree take precedence over those of the machine. Where a person's own folders are in PATH, one that he can't read changes
		// what a shell says of a command that does not exist.
		if strings.HasPrefix(kv, "PATH=") {
			in.Host.Environ[i] = "PATH=" + filepath.Join(base, "bin") + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
		}
	}
	// Salt goes through sets of paths, and runs what SHELL names.
	in.Host.Environ = append(in.Host.Environ, "PYTHONHASHSEED=0", "SHELL=/bin/sh")
	return in
}

// lay writes the files of a tree below base, runs its setup in work, and returns the expected result.
func lay(t *testing.T, in *sls.Input, a *txtar.Archive, base, work string, marks *strings.Replacer) (golden, builtin string) {
	for _, f := range a.Files {
		text := marks.Replace(string(f.Data))
		switch f.Name {
		case "golden":
			golden = string(f.Data)
		case "golden.builtin":
			builtin = string(f.Data)
		case "pillar.json":
			v, err := py.FromJSON(text)
			require.NoError(t, err)
			in.Pillar = v.(*py.Dict)
		case "setup.sh":
			cmd := exec.Command("/bin/sh", "-ec", "umask 022\n"+text)
			cmd.Dir = work
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
		default:
			p := filepath.Join(base, f.Name)
			require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
			mode := fs.FileMode(0o644)
			if strings.HasPrefix(f.Name, "bin/") {
				mode = 0o755
			}
			require.NoError(t, os.WriteFile(p, []byte(text), mode))
		}
	}
	return golden, builtin
}

func options(comment string) map[string]string {
	out := map[string]string{}
	for _, l := range strings.Split(comment, "\n") {
		if k, v, ok := strings.Cut(l, ": "); ok && !strings.Contains(k, " ") {
			out[k] = strings.TrimSpace(v)
		}
	}
	return out
}

// report returns what a run did, as text: a block for each state.
func report(res *sls.StepResult, err error, work string) string {
	if err != nil {
		return "error\n" // the wording of compile errors is our own
	}
	var b strings.Builder
	for _, s := range res.States {
		changed := ""
		if s.Changed {
			changed = " changed"
		}
		fmt.Fprintf(&b, "%s %s %s: %s%s\n", s.Function, quote(s.ID), quote(s.Name), s.Outcome, changed)
		if c := normalize(s.Changes); c != "" {
			fmt.Fprintf(&b, "  changes %s\n", c)
		}
		if c := comment(s.Comment); c != "" {
			j, _ := json.Marshal(c)
			fmt.Fprintf(&b, "  comment %s\n", j)
		}
	}
	return strings.ReplaceAll(b.String(), work, "@D@")
}

// me returns the user that runs the suite, as Salt writes an owner.
func me(h *host.Host) string {
	group := fmt.Sprint(h.EGID)
	if g, err := h.Users.Group(group); err == nil {
		group = g.Name
	}
	return h.Whoami() + ":" + group
}

// comment removes what Salt reports about its internals: of an exception only the message is kept.
func comment(s string) string {
	msg, ok := strings.CutPrefix(s, "An exception occurred in this state: ")
	if !ok {
		return s
	}
	if strings.HasPrefix(msg, "Traceback") {
		lines := strings.Split(strings.TrimSpace(msg), "\n")
		_, msg, _ = strings.Cut(lines[len(lines)-1], ": ")
	}
	return msg
}

func quote(s string) string {
	if strings.ContainsAny(s, " \n\t:") || s == "" {
		j, _ := json.Marshal(s)
		return string(j)
	}
	return s
}

// normalize sorts the changes and removes what differs from run to run.
func normalize(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	var v map[string]any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	delete(v, "pid")
	if l, ok := v["removed"].([]any); ok { // in no order of its own
		sort.Slice(l, func(i, j int) bool { return fmt.Sprint(l[i]) < fmt.Sprint(l[j]) })
	}
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// files lists what is in the working directory: mode, owner if it is not the user that runs the suite, kind, content. The contents of .git are
// omitted.
func files(t *testing.T, h *host.Host, work, title string) string {
	var out []string
	require.NoError(t, filepath.WalkDir(work, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == work {
			return err
		}
		rel, st := strings.TrimPrefix(p, work+"/"), must(d.Info())
		mode := fmt.Sprintf("%04o", uint32(st.Mode().Perm())|special(st.Mode()))
		if o := st.Sys().(*syscall.Stat_t); int(o.Uid) != h.EUID || int(o.Gid) != h.EGID {
			mode += fmt.Sprintf(" owner %d:%d", o.Uid, o.Gid)
		}
		switch {
		case st.IsDir():
			out = append(out, fmt.Sprintf("%s %s/", mode, rel))
			if d.Name() == ".git" {
				return fs.SkipDir
			}
		case st.Mode()&fs.ModeSymlink != 0:
			to := must(os.Readlink(p))
			if _, own, ok := strings.Cut(mode, " "); ok {
				rel += " " + own
			}
			out = append(out, fmt.Sprintf("link %s -> %s", rel, to))
		default:
			j, _ := json.Marshal(string(must(os.ReadFile(p))))
			out = append(out, fmt.Sprintf("%s %s %s", mode, rel, j))
		}
		return nil
	}))
	sort.Strings(out)
	if len(out) == 0 {
		return ""
	}
	return title + "\n  " + strings.Join(out, "\n  ") + "\n"
}

func special(m fs.FileMode) uint32 {
	n := uint32(0)
	if m&fs.ModeSetuid != 0 {
		n |= 0o4000
	}
	if m&fs.ModeSetgid != 0 {
		n |= 0o2000
	}
	if m&fs.ModeSticky != 0 {
		n |= 0o1000
	}
	return n
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// update writes what the runner did into the tree: Salt's into golden, the built-in runner's into
// golden.builtin if it differs.
func update(t *testing.T, o Options, name, runner string, a *txtar.Archive, golden, got string) {
	section := "golden"
	if runner == "builtin" {
		section = "golden.builtin"
	}
	kept := a.Files[:0:0]
	for _, f := range a.Files {
		if f.Name != section {
			kept = append(kept, f)
		}
	}
	if section == "golden" || got != golden {
		kept = append(kept, txtar.File{Name: section, Data: []byte(got)})
	}
	a.Files = kept
	require.NoError(t, os.WriteFile(filepath.Join(o.Update, name+".txtar"), txtar.Format(a), 0o644))
}
