package salt_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/host"
	"corpus-git/sls/salt"
)

// The test binary stands for Salt's Python where SALTPROC_FAKE says so: it speaks the driver's side of the protocol.
func TestMain(m *testing.M) {
	if os.Getenv("SALTPROC_FAKE") != "" {
		fake()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func say(v map[string]any) {
	b, _ := json.Marshal(v)
	fmt.Println(string(b))
}

func state(comment string) map[string]any {
	return map[string]any{"result": true, "changes": map[string]any{}, "comment": comment, "__run_num__": 0, "__id__": "a",
		"__sls__": "one", "duration": 1.5, "name": "n"}
}

// fake answers each step by its name.
func fake() {
	if why := os.Getenv("SALTPROC_FATAL"); why != "" {
		say(map[string]any{"t": "fatal", "why": why, "text": "no module named salt"})
		os.Exit(1)
	}
	fmt.Println("printed before the driver took over")
	say(map[string]any{"t": "hello", "pid": os.Getpid()})
	say(map[string]any{"t": "ready"})
	in := bufio.NewScanner(os.Stdin)
	for n := 1; in.Scan(); n++ {
		var req struct {
			SLS, Mark    string
			Test, Anyway bool
		}
		if json.Unmarshal(in.Bytes(), &req) != nil {
			os.Exit(9)
		}
		tag := "test_|-a_|-n_|-nop"
		say(map[string]any{"t": "start", "state": "test", "fun": "nop", "id": "a", "name": "n", "sls": "one", "of": 1})
		res := map[string]any{"t": "result", "ret": map[string]any{"local": map[string]any{tag: state(fmt.Sprintf("step %d of %d test=%v", n, os.Getpid(), req.Test))}}}
		switch req.SLS {
		case "one":
			say(map[string]any{"t": "out", "id": "a", "stream": "stderr", "line": "live"})
			say(map[string]any{"t": "done", "tag": tag, "of": 1, "ret": state("done")})
			fmt.Fprintln(os.Stderr, "[WARNING ] beware")
			say(res)
		case "quiet": // no event of its states
			say(res)
		case "stale":
			if !req.Anyway {
				say(map[string]any{"t": "stale"})
				os.Exit(0)
			}
			say(res)
		case "die":
			fmt.Fprintln(os.Stderr, "the last words")
			os.Exit(3)
		case "killed":
			fmt.Fprintln(os.Stderr, "the last words")
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		case "nothing":
			fmt.Fprint(os.Stderr, "why not ")
		case "hang":
			cmd := exec.Command("sh", "-c", `trap '' TERM; echo $$ > "$1"; while :; do sleep 0.05; done`, "x", os.Getenv("SALTPROC_FAKE"))
			cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
			_ = cmd.Run()
		case "huge":
			for i := 0; i < 70; i++ {
				fmt.Print(strings.Repeat("x", 1<<20))
			}
			fmt.Println()
		}
		fmt.Fprintf(os.Stderr, "\x1e%s\n", req.Mark)
		code := 0
		if req.SLS == "nothing" {
			code = 4
		}
		say(map[string]any{"t": "end", "status": code})
	}
}

// sink records what it is told.
type sink struct{ lines []string }

func (s *sink) StateStart(r sls.StateRef) {
	s.lines = append(s.lines, fmt.Sprintf("start %s %s %d/%d", r.Function, r.ID, r.Num, r.Of))
}
func (s *sink) StateDone(r sls.StateResult) {
	s.lines = append(s.lines, fmt.Sprintf("done %s %s %s", r.Function, r.ID, r.Outcome))
}
func (s *sink) Output(id string, st sls.Stream, line string) {
	s.lines = append(s.lines, fmt.Sprintf("%s %q %s", st, id, line))
}

type rig struct {
	session *salt.Session
	input   func(name string) *sls.Input
	flag    string
}

func fakes(t *testing.T, env ...string) *rig {
	base := t.TempDir()
	roots := filepath.Join(base, "salt")
	require.NoError(t, os.Mkdir(roots, 0o755))
	for _, n := range []string{"one", "quiet", "stale", "die", "killed", "nothing", "hang", "huge"} {
		require.NoError(t, os.WriteFile(filepath.Join(roots, n+".sls"), []byte("a:\n  test.nop\n"), 0o644))
	}
	r := &rig{session: salt.NewSession("/nowhere/salt-call", filepath.Join(base, "run")), flag: filepath.Join(base, "flag")}
	self, err := os.Executable()
	require.NoError(t, err)
	r.session.Python = []string{self}
	h := host.New(execx.OS{})
	h.Environ = append([]string{"PATH=/usr/bin:/bin", "SALTPROC_FAKE=" + r.flag}, env...)
	r.input = func(name string) *sls.Input {
		return &sls.Input{SLS: name, Roots: fileroot.Roots{fileroot.OnDisk(roots)}, Host: h, Grains: py.NewDict("id", "x"),
			Pillar: py.NewDict("k", "v"), Cfg: py.NewDict("name", "t")}
	}
	t.Cleanup(func() { require.NoError(t, r.session.Close()) })
	return r
}

func (r *rig) comment(t *testing.T, in *sls.Input) string {
	res, err := r.session.Apply(t.Context(), in, sls.Discard{})
	require.NoError(t, err)
	require.Len(t, res.States, 1)
	return res.States[0].Comment
}

func TestStepIsToldAsItRuns(t *testing.T) {
	r := fakes(t)
	var s sink
	res, err := r.session.Apply(t.Context(), r.input("one"), &s)
	require.NoError(t, err)
	require.Equal(t, "salt-call", res.Runner)
	require.Equal(t, "one.sls", res.File)
	require.True(t, res.OK())
	require.Equal(t, 1500*time.Microsecond, res.States[0].Duration)
	require.Equal(t, 1, res.States[0].Line)
	// The two pipes have no order between them.
	require.ElementsMatch(t, []string{`log "" printed before the driver took over`, "start test.nop a 1/1", `stderr "a" live`,
		"done test.nop a succeeded", `log "" warning: beware`}, s.lines)
}

func TestStatesWithoutEventsAreToldAtTheEnd(t *testing.T) {
	r := fakes(t)
	var s sink
	_, err := r.session.Apply(t.Context(), r.input("quiet"), &s)
	require.NoError(t, err)
	require.Equal(t, []string{"start test.nop a 1/1", "done test.nop a succeeded"}, s.lines[len(s.lines)-2:])
}

func TestOneProcessForAllSteps(t *testing.T) {
	r := fakes(t)
	first := r.comment(t, r.input("one"))
	pid := strings.Fields(first)[3]
	test := r.input("quiet")
	test.Test = true
	require.Equal(t, "step 2 of "+pid+" test=true", r.comment(t, test))
	require.Equal(t, "step 3 of "+pid+" test=false", r.comment(t, r.input("one")))

	// Another configuration needs another process.
	other := r.input("one")
	other.Cfg = py.NewDict("name", "u")
	got := r.comment(t, other)
	require.True(t, strings.HasPrefix(got, "step 1 of "), got)
	require.NotContains(t, got, " "+pid+" ")
}

func TestStaleProcessIsReplaced(t *testing.T) {
	r := fakes(t)
	first := r.comment(t, r.input("one"))
	got := r.comment(t, r.input("stale"))
	require.True(t, strings.HasPrefix(got, "step 1 of "), got)
	require.NotEqual(t, strings.Fields(first)[3], strings.Fields(got)[3])
}

func TestDeathNamesTheStep(t *testing.T) {
	for name, how := range map[string]string{"die": "exit status 3", "killed": "signal 9"} {
		t.Run(name, func(t *testing.T) {
			r := fakes(t)
			_, err := r.session.Apply(t.Context(), r.input(name), sls.Discard{})
			require.ErrorContains(t, err, "run "+name)
			require.ErrorContains(t, err, "in state a (test.nop)")
			require.ErrorContains(t, err, how)
			require.ErrorContains(t, err, "the last words")
			require.Equal(t, fault.Internal, fault.KindOf(err))
			// The next step has a process of its own.
			require.True(t, strings.HasPrefix(r.comment(t, r.input("one")), "step 1 of "))
		})
	}
}

func TestStepWithoutResult(t *testing.T) {
	r := fakes(t)
	var s sink
	_, err := r.session.Apply(t.Context(), r.input("nothing"), &s)
	require.ErrorContains(t, err, "exit status 4 in state a (test.nop) and no result")
	require.Contains(t, strings.Join(s.lines, "\n"), "why not ")
	require.True(t, strings.HasPrefix(r.comment(t, r.input("one")), "step 2 of "))
}

func TestAnswerWithoutEndIsRefused(t *testing.T) {
	r := fakes(t)
	_, err := r.session.Apply(t.Context(), r.input("huge"), sls.Discard{})
	require.ErrorContains(t, err, "run huge")
	require.True(t, strings.HasPrefix(r.comment(t, r.input("one")), "step 1 of "))
}

// gone: no such process, or a zombie that nobody has waited for yet.
func gone(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(data), ") Z ")
}

func TestCancelEndsWhatTheStepStarted(t *testing.T) {
	r := fakes(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("cancelled by marie")
	pid := make(chan int, 1)
	go func() {
		for ctx.Err() == nil {
			if b, err := os.ReadFile(r.flag); err == nil && strings.HasSuffix(string(b), "\n") {
				n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
				pid <- n
				cancel(why)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	_, err := r.session.Apply(ctx, r.input("hang"), sls.Discard{})
	require.ErrorIs(t, err, why)
	child := <-pid
	require.Eventually(t, func() bool { return gone(child) }, 10*time.Second, 5*time.Millisecond)
	require.True(t, strings.HasPrefix(r.comment(t, r.input("one")), "step 1 of "))
}

func TestSaltThatDoesNotStart(t *testing.T) {
	r := fakes(t, "SALTPROC_FATAL=sync")
	_, err := r.session.Apply(t.Context(), r.input("one"), sls.Discard{})
	require.ErrorContains(t, err, "start Salt")
	require.ErrorContains(t, err, "no module named salt")
}

func TestWithoutSaltInPythonEachStepHasItsOwnSaltCall(t *testing.T) {
	r := fakes(t, "SALTPROC_FATAL=import")
	bin := filepath.Join(t.TempDir(), "salt-call")
	require.NoError(t, os.WriteFile(bin, []byte("#!/bin/sh\necho '{\"local\":{\"test_|-a_|-n_|-nop\":{\"result\":true,\"__run_num__\":0,\"comment\":\"own\",\"changes\":{}}}}'\n"), 0o755))
	r.session.Bin = bin
	var s sink
	res, err := r.session.Apply(t.Context(), r.input("one"), &s)
	require.NoError(t, err)
	require.Equal(t, "own", res.States[0].Comment)
	require.Contains(t, strings.Join(s.lines, "\n"), "one salt-call for each step: ")
	require.Equal(t, "own", r.comment(t, r.input("quiet")))
}

func TestClosedSessionTakesNoStep(t *testing.T) {
	r := fakes(t)
	r.comment(t, r.input("one"))
	require.NoError(t, r.session.Close())
	_, err := r.session.Apply(t.Context(), r.input("one"), sls.Discard{})
	require.ErrorContains(t, err, "closed")
	require.NoDirExists(t, r.session.Dir)
}

func TestMissingFileIsSaidWithoutSalt(t *testing.T) {
	r := fakes(t)
	_, err := r.session.Apply(t.Context(), r.input("absent"), sls.Discard{})
	require.ErrorContains(t, err, "absent")
	require.Equal(t, fault.Failed, fault.KindOf(err))
	require.NoDirExists(t, r.session.Dir)
}
