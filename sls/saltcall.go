package sls

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/sls/jinja"
)

// SaltCall runs SLS files through `salt-call --local`, with a configuration directory of its own.
// Source: Salt documentation, "Salt Masterless Quickstart", and salt-call(1).
type SaltCall struct {
	// Bin is the path of salt-call.
	Bin string
	// Dir is a directory of this deployment alone; configuration, cache and pillar are written there, mode 0700.
	// The caller removes it.
	Dir string
}

var _ Runner = (*SaltCall)(nil)

// FindSaltCall looks for salt-call in PATH of an environment; "" where it is not installed.
func FindSaltCall(environ []string) string {
	path := ""
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, d := range append(filepath.SplitList(path), "/opt/saltstack/salt", "/usr/local/bin") {
		p := filepath.Join(d, "salt-call")
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 && filepath.IsAbs(p) {
			return p
		}
	}
	return ""
}

// Name implements Runner.
func (*SaltCall) Name() string { return "salt-call" }

// Check implements Runner. Salt has no compilation that looks at nothing, so a file that the built-in runner
// cannot compile is only looked for; the others are checked as the built-in runner does.
func (s *SaltCall) Check(ctx context.Context, in *Input) (*Checked, error) {
	f, err := in.Roots.SLS(in.SLS)
	if err != nil {
		return nil, notFound(pos{}, in.SLS, err)
	}
	out := &Checked{SLS: in.SLS, File: f.Display(), Runner: s.Name()}
	static := *in
	static.Mode = Static
	p, err := Compile(ctx, &static)
	if err == nil {
		out.States, out.Deferred = len(p.States()), p.Deferred
		return out, nil
	}
	if n, ok := NeedOf(err); ok {
		out.Needs = append(out.Needs, n)
		return out, nil
	}
	return nil, err
}

// Apply implements Runner.
func (s *SaltCall) Apply(ctx context.Context, in *Input, sink Sink) (*StepResult, error) {
	f, err := in.Roots.SLS(in.SLS)
	if err != nil {
		return nil, notFound(pos{}, in.SLS, err)
	}
	if in.Plan {
		return unplanned(in, f.Display(), s.Name()), nil
	}
	in, err = OnDisk(in, s.Dir)
	if err == nil {
		err = s.configure(in)
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "configure salt-call", "%w", err)
	}
	res := &StepResult{SLS: in.SLS, File: f.Display(), Runner: s.Name(), Started: in.Host.Now()}
	if hasModules(in) {
		if _, err := s.call(ctx, in, sink, "saltutil.sync_all"); err != nil {
			return nil, err
		}
	}
	args := []string{"state.sls", in.SLS, "concurrent=True"}
	if in.Test {
		args = append(args, "test=True")
	}
	out, err := s.call(ctx, in, sink, args...)
	if err != nil {
		return nil, err
	}
	res.States, err = s.parse(in, out)
	res.Duration = in.Host.Now().Sub(res.Started)
	if err != nil {
		return nil, err
	}
	for i := range res.States {
		sink.StateStart(res.States[i].StateRef)
		sink.StateDone(res.States[i])
	}
	return res, nil
}

// unplanned is the plan of a step for a salt-call of its own, which can't be kept from running what the files name.
func unplanned(in *Input, file, runner string) *StepResult {
	now := in.Host.Now()
	return &StepResult{SLS: in.SLS, File: file, Runner: runner, Started: now, States: []StateResult{{
		StateRef: StateRef{ID: in.SLS, Name: in.SLS, Function: "state.sls", SLS: in.SLS, File: file, Num: 1, Of: 1},
		Outcome:  WouldChange, Started: now, Unevaluated: []string{"the step"},
	}}}
}

// UndefinedError is an error of Salt's about an undefined variable of a template.
type UndefinedError struct{ Text string }

func (e *UndefinedError) Error() string { return e.Text }

// IsUndefined reports whether a template failed for an undefined variable, whichever runner says so.
func IsUndefined(err error) bool {
	var u *UndefinedError
	return jinja.IsUndefined(err) || errors.As(err, &u)
}

// Refusal is the error for what Salt says of a file that it cannot compile.
func Refusal(in *Input, problems []string) error {
	return saltProblem(in, strings.Join(problems, "\n"))
}

// OwnModules reports whether a recipe among the mounts brings Python modules of its own, which Salt would load with its own rights.
func OwnModules(in *Input) bool {
	for _, r := range in.Roots {
		if r.Mount == "" || r.Foreign {
			continue
		}
		if found, err := fs.Glob(r.FS, ownModules); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// ownModules is where a recipe has them.
const ownModules = "_*/*.py"

// hasModules reports whether the file roots hold custom modules that Salt must sync first.
func hasModules(in *Input) bool {
	for _, d := range []string{"_modules", "_states", "_grains", "_renderers", "_utils", "_sdb", "_returners", "_outputters"} {
		if _, err := in.Roots.FindDir(d); err == nil {
			return true
		}
	}
	return false
}

// call runs salt-call and gives what it wrote to standard output. Its log is handed to the sink.
func (s *SaltCall) call(ctx context.Context, in *Input, sink Sink, args ...string) ([]byte, error) {
	var out limitedBuffer
	tail := &execx.Tail{Max: 16 << 10}
	log := execx.NewLines(func(l string) {
		_, _ = tail.Write([]byte(l + "\n"))
		if l = saltLog(l); l != "" {
			sink.Output("", Log, l)
		}
	})
	argv := append([]string{s.Bin, "--local", "-c", filepath.Join(s.Dir, "conf"), "--retcode-passthrough", "--out=json",
		"--no-color", "--log-level=info"}, args...)
	st, err := in.Host.Exec.Run(ctx, execx.Cmd{Argv: argv, Dir: "/", Env: in.Host.Environ, Stdout: &out, Stderr: log})
	_ = log.Close()
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "run salt-call", "%w", err)
	}
	if out.over {
		return nil, fault.New(fault.Internal, "run salt-call", "it wrote more than %d bytes", maxSaltOutput)
	}
	if !json.Valid(bytes.TrimSpace(out.Bytes())) {
		return nil, fault.New(fault.Internal, "run salt-call", "exit status %d and no result; the end of its log: %s",
			st.Exit, lastLines(tail.String(), 10))
	}
	return out.Bytes(), nil
}

const maxSaltOutput = 64 << 20

// limitedBuffer keeps what salt-call writes, up to a bound.
type limitedBuffer struct {
	bytes.Buffer
	over bool
}

// Write implements io.Writer and never fails.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxSaltOutput {
		b.over = true
		return len(p), nil
	}
	return b.Buffer.Write(p)
}

var (
	logLine   = regexp.MustCompile(`^\[(\w+)\s*\] ?(.*)$`)
	executing = regexp.MustCompile(`^Executing state (\S+) for \[`)
)

// saltLog keeps what a reader of a push wants of Salt's log: which function runs, warnings and errors.
func saltLog(l string) string {
	m := logLine.FindStringSubmatch(strings.TrimSpace(l))
	if m == nil {
		return l
	}
	switch m[1] {
	case "WARNING", "ERROR", "CRITICAL":
		return strings.ToLower(m[1]) + ": " + m[2]
	case "INFO":
		if executing.MatchString(m[2]) {
			return strings.TrimPrefix(m[2], "Executing state ")
		}
	}
	return ""
}

// saltState is one state in Salt's result.
type saltState struct {
	Changes  json.RawMessage `json:"changes"`
	Result   *bool           `json:"result"`
	Comment  json.RawMessage `json:"comment"`
	SLS      string          `json:"__sls__"`
	ID       string          `json:"__id__"`
	Num      int             `json:"__run_num__"`
	Ran      *bool           `json:"__state_ran__"`
	Start    string          `json:"start_time"`
	Duration json.RawMessage `json:"duration"`
	// Unevaluated is what the driver of a plan left out.
	Unevaluated []string `json:"__unevaluated__"`
}

// parse turns Salt's result into ours.
func (s *SaltCall) parse(in *Input, out []byte) ([]StateResult, error) {
	var doc struct {
		Local json.RawMessage `json:"local"`
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		return nil, fault.New(fault.Internal, "read salt-call's result", "%w", err)
	}
	var problems []string
	if json.Unmarshal(doc.Local, &problems) == nil {
		return nil, saltProblem(in, strings.Join(problems, "\n"))
	}
	var text string
	if json.Unmarshal(doc.Local, &text) == nil {
		return nil, saltProblem(in, text)
	}
	var states map[string]saltState
	if err := json.Unmarshal(doc.Local, &states); err != nil {
		return nil, fault.New(fault.Internal, "read salt-call's result", "%w", err)
	}
	tags := make([]string, 0, len(states))
	for t := range states {
		tags = append(tags, t)
	}
	sort.Slice(tags, func(i, j int) bool {
		a, b := states[tags[i]], states[tags[j]]
		if a.Num != b.Num {
			return a.Num < b.Num
		}
		return tags[i] < tags[j]
	})
	began := in.Host.Now()
	var res []StateResult
	for _, t := range tags {
		p := strings.Split(t, "_|-")
		if len(p) != 4 {
			continue
		}
		if p[0] == "no" && p[1] == "no" { // no_|-states_|-states_|-None: nothing to do
			return nil, nil
		}
		res = append(res, saltResult(in, p, states[t], began))
	}
	for i := range res {
		res[i].Num, res[i].Of = i+1, len(res)
	}
	return res, nil
}

func saltResult(in *Input, tag []string, st saltState, began time.Time) StateResult {
	r := StateResult{
		StateRef: StateRef{ID: st.ID, Name: tag[2], Function: tag[0] + "." + tag[3], SLS: st.SLS},
		Started:  began,
	}
	if r.ID == "" {
		r.ID = tag[1]
	}
	switch {
	case st.Result == nil:
		r.Outcome = WouldChange
	case *st.Result:
		r.Outcome = Succeeded
	default:
		r.Outcome = FailedState
	}
	var comment string
	if json.Unmarshal(st.Comment, &comment) != nil {
		var many []string
		if json.Unmarshal(st.Comment, &many) == nil {
			comment = strings.Join(many, "\n")
		}
	}
	r.Comment = comment
	r.Skipped = st.Ran != nil && !*st.Ran
	r.Unevaluated = st.Unevaluated
	var ms float64
	if json.Unmarshal(st.Duration, &ms) != nil {
		var s string
		if json.Unmarshal(st.Duration, &s) == nil {
			ms, _ = strconv.ParseFloat(strings.TrimSuffix(s, " ms"), 64)
		}
	}
	r.Duration = time.Duration(ms * float64(time.Millisecond))
	var changes map[string]json.RawMessage
	if json.Unmarshal(st.Changes, &changes) == nil && len(changes) > 0 {
		r.Changed, r.Changes = true, st.Changes
		_ = json.Unmarshal(changes["diff"], &r.Diff)
		if r.Diff == "New file" || !strings.HasPrefix(r.Diff, "---") {
			r.Diff = ""
		}
		var code int
		if tag[0] == "cmd" && changes["retcode"] != nil && json.Unmarshal(changes["retcode"], &code) == nil {
			r.Command = &CommandResult{Line: tag[2], ExitStatus: code}
			var e string
			if json.Unmarshal(changes["stderr"], &e) == nil {
				r.Command.StderrTail = lastLines(e, 40)
			}
		}
	}
	r.File, r.Line = findID(in, st.SLS, r.ID)
	return r
}

// findID guesses where a state is declared: the line that begins with its ID.
func findID(in *Input, sls, id string) (file string, line int) {
	f, err := in.Roots.SLS(sls)
	if err != nil {
		return "", 0
	}
	file = f.Display()
	b, err := f.Read()
	if err != nil {
		return file, 0
	}
	for i, l := range strings.Split(string(b), "\n") {
		if k := strings.Trim(strings.SplitN(l, ":", 2)[0], `"'`); k == id && strings.Contains(l, ":") {
			return file, i + 1
		}
	}
	return file, 0
}

var saltAt = regexp.MustCompile(`line (\d+)`)

// saltProblem is what Salt says of a file that does not compile. The excerpts of rendered text that it shows are
// left out: they can hold secrets.
func saltProblem(in *Input, text string) error {
	first, _, _ := strings.Cut(text, "\n")
	if strings.Contains(text, "is running as PID") {
		return fault.New(fault.Busy, "run salt-call", "another Salt run holds the lock")
	}
	at := fault.Pos{}
	if f, err := in.Roots.SLS(in.SLS); err == nil {
		at.File = f.Display()
		if m := saltAt.FindStringSubmatch(text); m != nil {
			at.Line, _ = strconv.Atoi(m[1])
		}
	}
	err := errors.New(strings.TrimSpace(first))
	if strings.Contains(first, "is undefined") {
		err = &UndefinedError{strings.TrimSpace(first)}
	}
	return (&fault.Error{Op: compileOp + " " + in.SLS, Kind: fault.Failed, Err: err}).
		WithPos(at).WithHint("this is Salt's own message; the file was given to salt-call")
}
