package verbs_test

import (
	"context"
	"corpus-git/cmd/corpus-git/doctor"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/testutil"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/project/status"
)

// hostileCfg is a project whose configuration holds texts that are not what they seem, as keys and values.
type hostileCfg struct{}

func (hostileCfg) Cfg(ctx context.Context, name project.Name) (*project.Cfg, error) {
	sample := py.NewDict("makina-projects."+string(name), py.NewDict("data", py.NewDict("text", testutil.Hostile, testutil.Hostile, "value", "list", py.NewList(testutil.Hostile))))
	return project.BuildCfg(ctx, project.CfgInputs{
		Name: name, Layout: layout.Root("/srv").Project(string(name)), Env: "prod",
		Sample: func(context.Context) (*py.Dict, error) { return sample, nil },
		Pillar: func(context.Context) (*py.Dict, error) { return py.NewDict(), nil },
	})
}

// sources gives a machine of which every text that somebody else wrote is hostile.
func sources(t *testing.T) *house {
	h := build(t)
	for _, recs := range h.runs.records {
		for i := range recs {
			recs[i].Step, recs[i].Procedure, recs[i].Task = "x", "x", "x"
			require.NotZero(t, testutil.Fill(&recs[i], testutil.Hostile))
		}
	}
	running := project.Record{Deployment: project.Deployment{ID: idRun, Project: "app", Trigger: project.TriggerTask, At: noon}, State: project.Running}
	waiting := running
	testutil.Fill(&running, testutil.Hostile)
	testutil.Fill(&waiting, testutil.Hostile)
	h.runs.queue["app"] = project.Queue{Running: &running, Waiting: []project.Record{waiting}}
	testutil.Fill(&h.archives.all, testutil.Hostile)
	h.runs.events = testutil.Events(testutil.Hostile)
	h.Backend.Cfg = hostileCfg{}
	h.Doctor.Inspect = func(context.Context) []doctor.Finding {
		c := status.Check{Hint: "x"}
		testutil.Fill(&c, testutil.Hostile)
		return []doctor.Finding{{Check: c}}
	}
	entry := audit.Entry{}
	testutil.Fill(&entry, testutil.Hostile)
	entry.Project, entry.Outcome = "app", "failed"
	require.NoError(t, h.audit.Record(t.Context(), entry))
	return h
}

// What is printed of names, subjects, steps, output, configuration, archives, audit, errors: every character is seen, and no text begins a line of its own.
func TestEveryCharacterIsSeen(t *testing.T) {
	lines := []string{"project list", "project show app", "deployments app", "logs app 0198c2f4", "logs app 0198c2f4 --short", "report", "report app", "archives list app",
		"archives show app 0198c2f4", "archives prune app --dry-run", "archives pin app 0198c2f4", "cfg app", "cfg app data", "cfg app data:list", "audit", "audit app", "doctor", "key list", "access list app", "task app x",
		"cancel app", "deploy app", "plan app", "rollback app 0198c2f4"}
	h := sources(t)
	for _, line := range lines {
		for _, json := range []bool{false, true} {
			for _, term := range []verbs.Terminal{{Width: verbs.MaxWidth, Colour: true}, {}} {
				argv := strings.Fields(line)
				if json {
					argv = append(argv, "--json")
				}
				_, out, errs := h.runIn(t.Context(), "local", "", term, argv...)
				require.NotEmpty(t, out+errs, line)
				seen := testutil.Seen
				if shows := strings.Fields(line)[0]; shows == "logs" || shows == "deploy" || shows == "task" || shows == "plan" || shows == "rollback" {
					seen = testutil.SeenLog
				}
				seen(t, line, out)
				seen(t, line, errs)
			}
		}
	}
}

// Arguments come back in errors, and errors hold names, places and hints.
func TestEveryCharacterOfAnErrorIsSeen(t *testing.T) {
	h := build(t)
	for _, argv := range [][]string{
		{testutil.Hostile}, {"project", "show", testutil.Hostile}, {"logs", "app", testutil.Hostile}, {"deploy", "app", "--only", testutil.Hostile}, {"deploy", "app", testutil.Hostile + "=1"},
		{"key", "remove", testutil.Hostile}, {"access", "grant", "app", testutil.Hostile, "read"}, {"access", "grant", "app", "marie", testutil.Hostile}, {"deployments", "app", "--" + testutil.Hostile},
		{"task", "app", testutil.Hostile}, {"archives", "show", "app", testutil.Hostile}, {"archives", testutil.Hostile}, {"cfg", "app", testutil.Hostile},
	} {
		for _, who := range []string{"local", "ops"} {
			_, out, errs := h.run(t, who, "", argv...)
			testutil.Seen(t, strings.Join(argv, " "), out)
			testutil.Seen(t, strings.Join(argv, " "), errs)
		}
	}
	for _, err := range []error{
		errors.New(testutil.Hostile),
		fault.New(fault.Refused, testutil.Hostile, "%s", testutil.Hostile).WithHint("%s", testutil.Hostile).WithPos(fault.Pos{File: testutil.Hostile, Line: 1, Col: 3, Text: "\t" + testutil.Hostile}),
	} {
		h.runs.startErr = err
		for _, json := range []string{"", "--json"} {
			_, out, errs := h.run(t, "local", "", strings.Fields("deploy app "+json)...)
			testutil.Seen(t, "deploy", out)
			testutil.Seen(t, "deploy", errs)
		}
	}
}

func (c hostileCfg) Explain(ctx context.Context, name project.Name, key string, show project.Show) ([]project.Explained, error) {
	cfg, err := c.Cfg(ctx, name)
	if err != nil {
		return nil, err
	}
	return cfg.Explain(key, show, func(_ []string, all []project.LayerSetting) []project.LayerSetting { return all })
}
