package web_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/project"
)

func TestUnitsOfAProject(t *testing.T) {
	s := server(newMachine())
	var err error
	s.Units = func(context.Context, project.Name) ([]project.UnitState, error) {
		return []project.UnitState{{Unit: "app-web.service", State: project.UnitActive, Detail: "running", PID: 4711, Since: noon.Add(-time.Hour), Log: []string{"<b>line"}}, {Unit: "own", State: project.UnitUnknown}}, err
	}
	_, body := get(t, s, "/projects/app/units")
	for _, want := range []string{"app-web.service", `<span class="state good">active</span>`, "4711", "&lt;b&gt;line", `<span class="state bad">unknown</span>`} {
		require.Contains(t, body, want)
	}
	require.NotContains(t, body, "<form", "a page acts on nothing")

	// What is wrong with units hides no other part of the page.
	err = fault.New(fault.Refused, "supervisorctl", "it is not installed here")
	_, body = get(t, s, "/projects/app/units")
	require.Contains(t, body, "Units: supervisorctl: it is not installed here")
	require.Contains(t, body, "Archives")
	err = errors.New("disk on fire at /secret/place")
	_, body = get(t, s, "/projects/app/units")
	require.NotContains(t, body, "/secret/place")
}

// checksOf is what is known of the checks of one project.
type checksOf []project.CheckPeriod

func (c checksOf) States(name project.Name) []project.CheckState {
	if name != "app" {
		return nil
	}
	return []project.CheckState{{Name: "home", Kind: project.CheckHTTP, Every: time.Minute, Now: &c[0]}, {Name: "new", Every: time.Hour}}
}

func (c checksOf) History(_ context.Context, _ project.Name, limit int) ([]project.CheckPeriod, error) {
	return c[:min(limit, len(c))], nil
}

func TestPeriodicChecksOfAProject(t *testing.T) {
	s := server(newMachine())
	s.Checks = checksOf{{Check: "home", Since: noon.Add(-time.Hour), Last: noon, Runs: 60, Reason: "the body is <b>wrong</b>"}, {Check: "home", Good: true, Since: noon.Add(-2 * time.Hour), Last: noon.Add(-time.Hour), Runs: 61}}
	_, body := get(t, s, "/projects/app/units")
	for _, want := range []string{"<h2>Checks</h2>", `<span class="state bad">failed</span> <span class="why">the body is &lt;b&gt;wrong&lt;/b&gt;</span>`, "has not run yet", "History of the checks", "61"} {
		require.Contains(t, body, want)
	}
	_, body = get(t, s, "/metrics")
	require.Contains(t, body, `corpus_check_failing{check="home",project="app"} 1`)
}
