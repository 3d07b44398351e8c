package fleet

import (
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/internal/strictyaml"
	"corpus-git/project"
)

// Stage is a set of nodes that are deployed together.
type Stage struct {
	Name string `yaml:"name"`
	// Roles are the roles whose nodes are in it; none means every node that is not in an earlier stage.
	Roles []string `yaml:"roles"`
	// Canary is the number of nodes that are deployed, and must succeed, before the others.
	Canary int `yaml:"canary"`
	// Parallel is how many are deployed at once: a number or a percentage of the stage's nodes. "" means all.
	Parallel string `yaml:"parallel"`
	// Rolling divides the stage into batches, of a number or a percentage of its nodes: one is complete before the next begins. "" means
	// one batch.
	Rolling string `yaml:"rolling"`
	// MaxFailures is the number of nodes that may fail: they roll themselves back and keep the old release, and the rollout continues.
	MaxFailures int `yaml:"max_failures"`
	// WaitFor lists what is waited for, one after the other, before the stage begins.
	WaitFor []Wait `yaml:"wait_for"`
	// Settle is the maximum number of times that a node is deployed, until a run changes nothing; 0 deploys once.
	Settle int `yaml:"settle"`
	// Before and After are tasks of the project that run on the hub around each batch.
	Before []string `yaml:"before"`
	After  []string `yaml:"after"`
	// Line is its line in the file, for messages.
	Line int `yaml:"-"`
}

// Wait is what a stage waits for: exactly one of TCP, HTTP, Command, Checks and Key is set.
type Wait struct {
	// TCP is HOST:PORT that accepts connections, HTTP a URL that answers with a status of 200 to 299.
	TCP  string `yaml:"tcp" json:"tcp,omitempty"`
	HTTP string `yaml:"http" json:"http,omitempty"`
	// Command is a command line for /bin/sh on the hub, as the project's user in its live tree, that exits with status 0.
	Command string `yaml:"command" json:"command,omitempty"`
	// Checks is green: every check of the project succeeds on each node that is live at that time.
	Checks string `yaml:"checks" json:"checks,omitempty"`
	// Key is a key of package kv that must exist, Is the value that it must have; "" allows any.
	Key string `yaml:"key" json:"key,omitempty"`
	Is  string `yaml:"is" json:"is,omitempty"`
	// For is how long to wait, Every the interval between tries: Go durations, such as 90s.
	For   string `yaml:"for" json:"for,omitempty"`
	Every string `yaml:"every" json:"every,omitempty"`
}

// Green is the value of Wait.Checks.
const Green = "green"

// Defaults and bounds of waits.
const (
	waitFor     = 5 * time.Minute
	maxWait     = 24 * time.Hour
	askEvery    = time.Second
	checksEvery = 10 * time.Second
	maxSettle   = 100
)

// String returns what is waited for, for people.
func (w Wait) String() string {
	switch {
	case w.TCP != "":
		return "tcp " + w.TCP
	case w.HTTP != "":
		return w.HTTP
	case w.Command != "":
		return "command " + w.Command
	case w.Key != "" && w.Is != "":
		return "key " + w.Key + " to be " + w.Is
	case w.Key != "":
		return "key " + w.Key
	}
	return "checks " + w.Checks
}

// times returns For and Every, or their defaults.
func (w Wait) times() (limit, every time.Duration, err error) {
	limit, every = waitFor, askEvery
	if w.Checks != "" {
		every = checksEvery
	}
	for _, x := range []struct {
		key, text string
		to        *time.Duration
	}{{"for", w.For, &limit}, {"every", w.Every, &every}} {
		if x.text == "" {
			continue
		}
		d, err := time.ParseDuration(x.text)
		if err != nil || d <= 0 || d > maxWait {
			return 0, 0, fmt.Errorf("%s is %q: a duration such as 90s or 5m, at most %s", x.key, x.text, maxWait)
		}
		*x.to = d
	}
	return limit, every, nil
}

// Probe is the check that asks once for what is waited for, other than checks and keys.
func (w Wait) Probe() project.Check {
	switch {
	case w.TCP != "":
		return project.NewCheck(project.CheckTCP, w.TCP)
	case w.HTTP != "":
		return project.NewCheck(project.CheckHTTP, w.HTTP)
	}
	return project.NewCheck(project.CheckCommand, w.Command)
}

func (w Wait) check() error {
	n := 0
	for _, s := range []string{w.TCP, w.HTTP, w.Command, w.Checks, w.Key} {
		if s != "" {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("wait_for needs one of tcp, http, command, checks, key in each of its items")
	}
	if w.Is != "" && w.Key == "" {
		return fmt.Errorf("is belongs to key")
	}
	if w.Checks != "" && w.Checks != Green {
		return fmt.Errorf("checks is %q: it can be %s", w.Checks, Green)
	}
	if w.HTTP != "" && !strings.HasPrefix(w.HTTP, "http://") && !strings.HasPrefix(w.HTTP, "https://") {
		return fmt.Errorf("http is %q: a URL that begins with http:// or https://", w.HTTP)
	}
	if host, port, err := net.SplitHostPort(w.TCP); w.TCP != "" && (err != nil || host == "" || port == "") {
		return fmt.Errorf("tcp is %q: HOST:PORT", w.TCP)
	}
	if first, _, _ := strings.Cut(w.Key, "/"); w.Key != "" && !slices.Contains([]string{"projects", "shared", "services", "nodes"}, first) {
		return fmt.Errorf("key is %q: keys begin with projects/NAME/, shared/, services/ or nodes/NAME/", w.Key)
	}
	_, _, err := w.times()
	return err
}

// Stages is the part of the configuration that is in the code.
type Stages struct {
	// OnFailure says what is rolled back if more nodes fail than the stage allows.
	OnFailure string  `yaml:"on_failure"`
	Stages    []Stage `yaml:"stages"`
	// Leader names steps that run on one node; nil means that every step runs on each node.
	Leader *Leader `yaml:"leader"`
	// Partial leaves out nodes that no stage takes, which is otherwise an error.
	Partial bool `yaml:"-"`
}

// The values of OnFailure.
const (
	// All rolls back every node that the deployment reached. It is the default.
	All = "all"
	// OnlyStage rolls back the nodes of stages that are not complete.
	OnlyStage = "stage"
	// Halt rolls back none: live nodes stay live.
	Halt = "halt"
)

// ReadStages reads .salt/stages.yaml of the code; without it all nodes are one stage.
func ReadStages(code fs.FS) (s Stages, err error) {
	if code != nil {
		text, err := read(code, StagesFile, &s)
		if err != nil {
			return s, err
		}
		return s, s.complete(StagesFile, text)
	}
	return s, s.complete(StagesFile, nil)
}

// complete sets the defaults and checks the rest; errors name the file, and the line in its text.
func (s *Stages) complete(file string, text []byte) error {
	if s.OnFailure == "" {
		s.OnFailure = All
	}
	lines := strictyaml.Parse(text)
	bad := func(path []any, format string, args ...any) error {
		return fault.New(fault.Usage, At(file, lines.Of(path...)), format, args...)
	}
	if s.OnFailure != All && s.OnFailure != OnlyStage && s.OnFailure != Halt {
		return bad([]any{"on_failure"}, "on_failure is %q: it can be %s, %s or %s", s.OnFailure, All, OnlyStage, Halt)
	}
	if s.Leader != nil && len(s.Leader.Steps) == 0 {
		return bad([]any{"leader"}, "leader names no steps")
	}
	if len(s.Stages) == 0 {
		s.Stages = []Stage{{Name: "nodes"}}
	}
	seen := map[string]bool{}
	for i := range s.Stages {
		st := &s.Stages[i]
		st.Line = lines.Of("stages", i)
		if st.Name == "" || seen[st.Name] {
			return bad([]any{"stages", i, "name"}, "each stage needs a name of its own: %q", st.Name)
		}
		seen[st.Name] = true
		if path, err := st.check(); err != nil {
			return bad(append([]any{"stages", i}, path...), "stage %s: %w", st.Name, err)
		}
	}
	return nil
}

// check refuses values that have no meaning; path leads to the value within the stage.
func (s Stage) check() (path []any, err error) {
	if s.Canary < 0 {
		return []any{"canary"}, fmt.Errorf("canary is %d: a number of nodes", s.Canary)
	}
	if s.MaxFailures < 0 {
		return []any{"max_failures"}, fmt.Errorf("max_failures is %d: a number of nodes", s.MaxFailures)
	}
	for i, role := range s.Roles {
		if !validRole.MatchString(role) {
			return []any{"roles", i}, fmt.Errorf("%q is not a valid role name", role)
		}
	}
	if s.Settle < 0 || s.Settle > maxSettle {
		return []any{"settle"}, fmt.Errorf("settle is %d: how often a node is deployed at most, from 1 to %d", s.Settle, maxSettle)
	}
	for key, text := range map[string]string{"parallel": s.Parallel, "rolling": s.Rolling} {
		if _, err := share(key, text, 1); err != nil {
			return []any{key}, err
		}
	}
	for key, names := range map[string][]string{"before": s.Before, "after": s.After} {
		for i, name := range names {
			if name == "" || strings.ContainsAny(name, "/\x00") || strings.HasPrefix(name, ".") {
				return []any{key, i}, fmt.Errorf("%s: %q is not a valid task name", key, name)
			}
		}
	}
	for i, w := range s.WaitFor {
		if err := w.check(); err != nil {
			return []any{"wait_for", i}, err
		}
	}
	return nil, nil
}

// share returns how many of n nodes a number or a percentage means: all for "", and at least one.
func share(key, text string, n int) (int, error) {
	if text == "" {
		return max(n, 1), nil
	}
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.Atoi(number)
	if err != nil || v < 1 || percent && v > 100 {
		return 0, fmt.Errorf("%s is %q: a number of nodes from 1, or a percentage", key, text)
	}
	if percent {
		return max(1, n*v/100), nil
	}
	return v, nil
}
