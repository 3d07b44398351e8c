package tool

import (
	"context"
	_ "embed" // the type of outputs
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"corpus-git/internal/fault"
	"corpus-git/sls"
)

//go:embed corpus_output.rb
var outputType string

// Puppet is the runner of manifests: puppet apply. cfg is the fact corpus ($facts['corpus']); modules of the recipe are in its folder modules. The type
// corpus_output writes outputs.
//
// Source: Puppet documentation, puppet-apply(8), "Report format" 12.
type Puppet struct{}

var _ sls.Runner = Puppet{}

// maxReport limits the size of the report that is read.
const maxReport = 64 << 20

// Name implements Runner.
func (Puppet) Name() string { return "puppet" }

// Check implements Runner: puppet parser validate, which compiles no catalog.
func (p Puppet) Check(ctx context.Context, in *sls.Input) (*sls.Checked, error) {
	if err := find(in, "puppet", "on Debian: apt-get install puppet-agent"); err != nil {
		return nil, err
	}
	there, err := exists(in)
	if err != nil {
		return nil, err
	}
	if there {
		w, end, err := begin(in)
		if err != nil {
			return nil, err
		}
		defer end()
		if err := w.check(ctx, nil, append([]string{"puppet", "parser", "validate", in.Script}, p.options(w)...)...); err != nil {
			return nil, err
		}
	}
	return &sls.Checked{SLS: in.SLS, File: shown(in), Runner: p.Name()}, nil
}

// options returns the options that keep what puppet writes, including facts and diffs of files, in the folder of this run. puppet.conf is the
// machine's.
func (Puppet) options(w *work) []string {
	dir := func(name string) string { return filepath.Join(w.dir, name) }
	return []string{
		"--vardir", dir("var"), "--publicdir", dir("public"), "--rundir", dir("run"), "--logdir", dir("log"), "--color=false",
		"--modulepath", filepath.Join(filepath.Dir(w.in.Script), "modules") + ":" + dir("modules") + ":$basemodulepath",
	}
}

// Apply implements Runner. A test run is --noop.
func (p Puppet) Apply(ctx context.Context, in *sls.Input, sink sls.Sink) (*sls.StepResult, error) {
	if err := manual(in, "manifest"); err != nil {
		return nil, err
	}
	w, end, err := begin(in)
	if err != nil {
		return nil, err
	}
	defer end()
	facts, err := w.cfg("corpus")
	if err != nil {
		return nil, err
	}
	file, err := w.file("facts/corpus.json", facts)
	if err != nil {
		return nil, err
	}
	if _, err := w.file("modules/corpus/lib/puppet/type/corpus_output.rb", outputType); err != nil {
		return nil, err
	}
	report := filepath.Join(w.dir, "report.yaml")
	argv := append([]string{"puppet", "apply", "--detailed-exitcodes", "--show_diff", "--lastrunreport", report, "--pluginfactdest", filepath.Dir(file)}, p.options(w)...)
	if in.Test {
		argv = append(argv, "--noop")
	}
	s := newStates(in, sink, p.Name())
	exit, tail, err := w.run(ctx, append(argv, in.Script), nil, "", func(stream sls.Stream, l string) {
		if !in.Test {
			sink.Output("", stream, l)
		}
	})
	if err != nil {
		return s.res, err
	}
	if err := s.report(report); err != nil && !(errors.Is(err, os.ErrNotExist) && exit != 0) {
		return s.res, fault.New(fault.Failed, "run "+shown(in), "the report of puppet: %w", err)
	}
	// 0: nothing changed, 2: changed, 1: did not compile, 4 and 6: resources failed.
	return s.end(exit != 0 && exit != 2, fmt.Sprintf("puppet apply ended with exit status %d\n%s", exit, tail)), nil
}

// puppetReport is the part of a report that is read.
type puppetReport struct {
	Logs []struct {
		Level, Message, Source string
	}
	Statuses yaml.Node `yaml:"resource_statuses"`
}

type puppetResource struct {
	Title       string
	File        string
	Line        int
	Type        string  `yaml:"resource_type"`
	Took        float64 `yaml:"evaluation_time"`
	Failed      bool
	FailedTo    bool `yaml:"failed_to_restart"`
	Changed     bool
	OutOfSync   bool `yaml:"out_of_sync"`
	Skipped     bool
	Containment []string `yaml:"containment_path"`
	Events      []struct {
		Message, Status string
		Property        string
	}
}

// report adds the resources of a report, in the order in which they were evaluated. Those that Puppet adds itself (schedules, stages) are omitted.
func (s *states) report(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxReport+1))
	if err != nil {
		return err
	}
	if len(text) > maxReport {
		return fmt.Errorf("larger than %d MiB", maxReport>>20)
	}
	var r puppetReport
	if err := yaml.Unmarshal(text, &r); err != nil {
		return err
	}
	said := map[string][]string{}
	for _, l := range r.Logs {
		source, _ := cutProperty(l.Source)
		said[source] = append(said[source], strings.TrimRight(l.Message, "\n"))
	}
	nodes := r.Statuses.Content
	for i := 0; i+1 < len(nodes); i += 2 {
		var res puppetResource
		if err := nodes[i+1].Decode(&res); err != nil {
			return err
		}
		if res.File != "" || res.Failed || res.Changed {
			s.done(s.resource(nodes[i].Value, res, said["/"+strings.Join(res.Containment, "/")]))
		}
	}
	return nil
}

// cutProperty splits the property off the source of a log line: /Stage[main]/Main/File[/x]/ensure.
func cutProperty(source string) (resource, property string) {
	i := strings.LastIndex(source, "]/")
	if i < 0 || strings.Contains(source[i+2:], "[") || strings.HasSuffix(source, "]") {
		return source, ""
	}
	return source[:i+1], source[i+2:]
}

// resource returns one resource as a state.
func (s *states) resource(id string, res puppetResource, said []string) sls.StateResult {
	out := sls.StateResult{
		StateRef: sls.StateRef{ID: id, Name: res.Title, Function: strings.ToLower(res.Type), SLS: s.in.SLS, File: s.shown(res.File), Line: res.Line},
		Outcome:  sls.Succeeded, Duration: time.Duration(res.Took * float64(time.Second)),
	}
	var comment []string
	for _, l := range said {
		if diff := strings.TrimLeft(l, "\n"); strings.HasPrefix(diff, "--- ") {
			out.Diff = strings.TrimRight(diff, "\n")
		} else {
			comment = append(comment, l)
		}
	}
	out.Comment = strings.Join(comment, "\n")
	switch {
	case res.Failed || res.FailedTo:
		out.Outcome = sls.FailedState
	case res.Skipped && strings.Contains(out.Comment, "failed dependencies"):
		out.Outcome, out.Skipped = sls.FailedState, true
	case res.Skipped:
		out.Skipped = true
	case s.in.Test && res.OutOfSync:
		out.Outcome, out.Changed = sls.WouldChange, true
	default:
		out.Changed = res.Changed
	}
	return out
}
