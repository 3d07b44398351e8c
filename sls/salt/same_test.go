package salt_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"corpus-git/internal/execx"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/host"
	"corpus-git/sls/salt"
)

// deployment is a recipe on disk; @D@ in its files stands for the working directory.
type deployment struct {
	bin, base, work string
	roots           fileroot.Roots
	steps           []string
}

func unpack(t testing.TB, archive string) *deployment {
	t.Helper()
	d := &deployment{bin: saltCall(t), base: t.TempDir()}
	d.work = filepath.Join(d.base, "work")
	require.NoError(t, os.Mkdir(d.work, 0o755))
	a, err := txtar.ParseFile(filepath.Join("testdata", archive))
	require.NoError(t, err)
	for _, f := range a.Files {
		p := filepath.Join(d.base, f.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(t, os.WriteFile(p, []byte(strings.ReplaceAll(string(f.Data), "@D@", d.work)), 0o644))
		if dir, name := filepath.Split(f.Name); dir == "recipe/" && strings.HasSuffix(name, ".sls") && name[0] >= '0' && name[0] <= '9' {
			d.steps = append(d.steps, strings.TrimSuffix(name, ".sls"))
		}
	}
	sort.Strings(d.steps)
	d.roots = fileroot.Roots{{FS: os.DirFS(d.base + "/recipe"), Dir: d.base + "/recipe", Mount: "makina-projects/app", Label: ".salt"}}
	if _, err := os.Stat(d.base + "/salt"); err == nil {
		d.roots = append(d.roots, fileroot.OnDisk(d.base+"/salt"))
	}
	return d
}

func (d *deployment) input(step string) *sls.Input {
	h := host.New(execx.OS{})
	// Salt goes through sets of paths; without a seed their order is chance.
	h.Environ = append(h.Environ, "PYTHONHASHSEED=0")
	return &sls.Input{SLS: "makina-projects.app." + step, Roots: d.roots, Host: h, Grains: py.NewDict("id", "box"),
		Pillar: py.NewDict("secret", "s3same"), Cfg: py.NewDict("name", "app", "data", py.NewDict("n", "3"))}
}

func (d *deployment) session(t testing.TB) *salt.Session {
	s := salt.NewSession(d.bin, filepath.Join(d.base, "session"))
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// told is a result without what differs from run to run.
func (d *deployment) told(t testing.TB, res *sls.StepResult, err error) string {
	if err != nil {
		return "error: " + strings.ReplaceAll(err.Error(), d.base, "@B@")
	}
	var out []sls.StateResult
	for _, s := range res.States {
		s.Started, s.Duration = time.Time{}, 0
		var changes map[string]any
		if len(s.Changes) > 0 {
			require.NoError(t, json.Unmarshal(s.Changes, &changes))
			delete(changes, "pid")
			s.Changes, _ = json.Marshal(changes)
		}
		out = append(out, s)
	}
	text, err := json.MarshalIndent(out, "", " ")
	require.NoError(t, err)
	return string(text)
}

// tree is what is in the working directory; then it is empty.
func (d *deployment) tree(t testing.TB) string {
	var out []string
	require.NoError(t, filepath.WalkDir(d.work, func(p string, e os.DirEntry, err error) error {
		require.NoError(t, err)
		st, err := e.Info()
		require.NoError(t, err)
		line := st.Mode().String() + " " + p
		if st.Mode().IsRegular() {
			data, err := os.ReadFile(p)
			require.NoError(t, err)
			line += " " + strconv.Quote(string(data))
		}
		out = append(out, line)
		return nil
	}))
	require.NoError(t, os.RemoveAll(d.work))
	require.NoError(t, os.Mkdir(d.work, 0o755))
	return strings.Join(out, "\n")
}

// minSame guards against a recipe that lost its steps.
const minSame = 14

// TestSameAsOneSaltCallForEachStep is what the package promises. The steps of the recipe leave behind what must not
// reach the next one: variables of the environment and of modules, cached lists, changed grains.
func TestSameAsOneSaltCallForEachStep(t *testing.T) {
	d := unpack(t, "same.txtar")
	require.GreaterOrEqual(t, len(d.steps), minSame)
	run := func(apply func(in *sls.Input) (*sls.StepResult, error)) (told []string) {
		for _, s := range d.steps {
			in := d.input(s)
			in.Test = strings.HasSuffix(s, "_test")
			res, err := apply(in)
			told = append(told, s+"\n"+d.told(t, res, err))
		}
		return append(told, d.tree(t))
	}
	dir := filepath.Join(d.base, "own")
	want := run(func(in *sls.Input) (*sls.StepResult, error) {
		// Salt keeps lists of files for 20 seconds; whether a step sees a new file must not depend on that.
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "cache")))
		return (&salt.Call{Bin: d.bin, Dir: dir}).Apply(t.Context(), in, sls.Discard{})
	})
	session := d.session(t)
	got := run(func(in *sls.Input) (*sls.StepResult, error) {
		live := &recorder{}
		res, err := session.Apply(t.Context(), in, live)
		if err == nil {
			require.Equal(t, names(res.States), live.done, "every state is told once, in order")
			require.Equal(t, len(live.done), live.started)
		}
		return res, err
	})
	for i := range want {
		require.Equal(t, want[i], got[i])
	}
}

func names(states []sls.StateResult) (out []string) {
	for _, s := range states {
		out = append(out, s.Function+" "+s.ID+" "+s.Name)
	}
	return out
}

type recorder struct {
	started int
	done    []string
	out     []string
	running string
	seen    func(r *recorder)
}

func (r *recorder) StateStart(ref sls.StateRef) { r.started++; r.running = ref.ID }
func (r *recorder) StateDone(s sls.StateResult) {
	r.done = append(r.done, s.Function+" "+s.ID+" "+s.Name)
	r.running = ""
}
func (r *recorder) Output(id string, st sls.Stream, line string) {
	r.out = append(r.out, fmt.Sprintf("%s %s %s", id, st, line))
	if r.seen != nil {
		r.seen(r)
	}
}

// TestOutputComesWhileTheCommandRuns: the command waits for what the sink does when it sees its first line.
func TestOutputComesWhileTheCommandRuns(t *testing.T) {
	d := unpack(t, "live.txtar")
	r := &recorder{}
	r.seen = func(r *recorder) {
		if r.out[len(r.out)-1] == "talk stdout first" {
			require.Equal(t, "talk", r.running)
			require.NoError(t, os.WriteFile(d.work+"/go", nil, 0o644))
		}
	}
	res, err := d.session(t).Apply(t.Context(), d.input("0_live"), r)
	require.NoError(t, err)
	require.True(t, res.OK(), "%+v", res.Failed())
	require.Equal(t, []string{"talk stdout first", "talk stdout heard"}, only(r.out, "talk"))
	require.Empty(t, only(r.out, "hush"), "hide_output")
	require.NotContains(t, strings.Join(r.out, "\n"), "condition")
	require.Equal(t, []string{"talker stderr complaint"}, only(r.out, "talker"))
}

func only(lines []string, id string) (out []string) {
	for _, l := range lines {
		if strings.HasPrefix(l, id+" ") {
			out = append(out, l)
		}
	}
	return out
}

// TestModulesOfTheProject: they are synced, and a step sees those that an earlier one changed.
func TestModulesOfTheProject(t *testing.T) {
	d := unpack(t, "modules.txtar")
	s := d.session(t)
	for _, step := range d.steps {
		res, err := s.Apply(t.Context(), d.input(step), sls.Discard{})
		require.NoError(t, err, step)
		require.True(t, res.OK(), "%s: %+v", step, res.Failed())
	}
	for file, want := range map[string]string{"a": "module 1, grain amber", "b": "state", "c": "module 2, grain amber"} {
		data, err := os.ReadFile(filepath.Join(d.work, file))
		require.NoError(t, err)
		require.Equal(t, want, strings.TrimSpace(string(data)), file)
	}
}

// TestCrashesInSalt: a fork that dies is the error of its step; the next steps go on, in the same process.
func TestCrashesInSalt(t *testing.T) {
	d := unpack(t, "crash.txtar")
	s := d.session(t)
	apply := func(step string) error {
		res, err := s.Apply(t.Context(), d.input(step), sls.Discard{})
		if err == nil {
			require.True(t, res.OK(), "%+v", res.Failed())
		}
		return err
	}
	require.NoError(t, apply("0_fine"))
	err := apply("1_killed")
	require.ErrorContains(t, err, "killed by signal 9 in state dies (crash.killed) and no result")
	err = apply("2_exits")
	require.ErrorContains(t, err, "exit status 7 in state dies (crash.exits) and no result")
	require.ErrorContains(t, err, "last words of exits")
	require.NoError(t, apply("0_fine"))
	err = apply("3_driver")
	require.ErrorContains(t, err, "the Salt process died in state dies (crash.driver)")
	require.NoError(t, apply("0_fine"))
}

// TestCancelEndsSaltAndItsCommands.
func TestCancelEndsSaltAndItsCommands(t *testing.T) {
	d := unpack(t, "crash.txtar")
	s := d.session(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("cancelled by marie")
	r := &recorder{}
	var pid int
	r.seen = func(r *recorder) {
		if l := r.out[len(r.out)-1]; strings.HasPrefix(l, "long stdout pid ") {
			pid, _ = strconv.Atoi(strings.TrimPrefix(l, "long stdout pid "))
			cancel(why)
		}
	}
	_, err := s.Apply(ctx, d.input("4_long"), r)
	require.ErrorIs(t, err, why)
	require.NotZero(t, pid)
	require.Eventually(t, func() bool { return gone(pid) }, 10*time.Second, 5*time.Millisecond)
	_, err = s.Apply(t.Context(), d.input("0_fine"), sls.Discard{})
	require.NoError(t, err)
}

// TestPlanOfATreeThatIsNotOnDisk: what was pushed counts, not what is live.
func TestPlanOfATreeThatIsNotOnDisk(t *testing.T) {
	d := unpack(t, "crash.txtar")
	in := d.input("0_fine")
	in.Test = true
	in.Roots[0].Dir = ""
	in.Roots[0].FS = fstest.MapFS{"0_fine.sls": {Data: []byte("pushed:\n  file.managed:\n    - name: " + d.work + "/x\n    - source: salt://makina-projects/app/files/x\n")},
		"files/x": {Data: []byte("text\n"), Mode: 0o640}}
	s := d.session(t)
	for range 2 {
		res, err := s.Apply(t.Context(), in, sls.Discard{})
		require.NoError(t, err)
		require.Len(t, res.States, 1)
		require.Equal(t, "pushed", res.States[0].ID)
		require.Equal(t, sls.WouldChange, res.States[0].Outcome, "%+v", res.States[0])
		require.NoFileExists(t, d.work+"/x")
	}
}
