package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/audit"
	"corpus-git/project"
	"corpus-git/project/status"
	"corpus-git/web"
)

// scraped is what /metrics answers after a deployment that ran, with one notification that waits.
func scraped(t *testing.T) string {
	t.Helper()
	m := newMachine()
	m.live.At = m.live.Result.Started.Add(-2 * time.Second)
	m.live.Result.Timings = []project.Timing{
		{Name: "archive", Duration: time.Second}, {Name: "install/0100_a", Duration: 3 * time.Second}, {Name: "install/0200_b", Duration: time.Second},
		{Name: "install/0100_a/a state", Duration: time.Hour}, {Name: "install/0100_a/file/with/slashes", Duration: time.Hour}, {Name: "install", Duration: 4 * time.Second},
	}
	s := server(m)
	dir := t.TempDir()
	s.Disks = []string{dir, dir}
	s.Outbox = func(context.Context) (web.Outbox, error) {
		return web.Outbox{Waiting: 1, GivenUp: 2, Oldest: noon.Add(-time.Minute)}, nil
	}
	s.Hubs = func(context.Context) (status.Hubs, error) {
		return status.Hubs{Epoch: 3, LogBytes: 77, Problems: []status.HubProblem{{}}, Hubs: []status.Hub{{Name: "hub1", State: status.HubLeads}, {Name: "hub2", State: "unreachable", Behind: 9}}}, nil
	}
	s.Metrics.Ended(m.live)
	s.Metrics.Audited(audit.Entry{Action: "push", Outcome: "refused"})
	res, body := get(t, s, "/metrics")
	require.Equal(t, 200, res.StatusCode, body)
	return body
}

func TestTimesOutboxAndDisks(t *testing.T) {
	body := scraped(t)
	for _, line := range []string{
		`corpus_deployment_queue_seconds_sum{trigger="push"} 2`, `corpus_deployment_lead_time_seconds_sum{trigger="push"} 3`,
		`corpus_procedure_duration_seconds_sum{procedure="archive"} 1`, `corpus_procedure_duration_seconds_sum{procedure="install"} 4`,
		`corpus_step_duration_seconds_sum{project="app"} 4`, `corpus_step_duration_seconds_count{project="app"} 2`,
		`corpus_notification_deliveries{state="waiting"} 1`, `corpus_notification_deliveries{state="given up"} 2`, `corpus_notification_oldest_waiting_seconds 60`,
		`corpus_hub_up{hub="hub1"} 1`, `corpus_hub_up{hub="hub2"} 0`, `corpus_hub_behind_messages{hub="hub2"} 9`, `corpus_hub_epoch 3`, `corpus_hub_log_bytes 77`, `corpus_hub_problems 1`,
	} {
		require.Contains(t, body, line+"\n")
	}
	require.Regexp(t, `(?m)^corpus_filesystem_size_bytes\{path="[^"]+"\} [1-9]`, body)
	require.Regexp(t, `(?m)^corpus_filesystem_avail_bytes\{path="[^"]+"\} [0-9]`, body)
	require.NotContains(t, body, "0100_a", "a push brings any number of names of steps")
}

// A disk that cannot be asked, or an outbox, takes no other metric away.
func TestMetricsWithoutTheOutbox(t *testing.T) {
	s := server(newMachine())
	s.Outbox = func(context.Context) (web.Outbox, error) { return web.Outbox{}, errors.New("the database is locked") }
	s.Disks = []string{filepath.Join(t.TempDir(), "gone")}
	res, body := get(t, s, "/metrics")
	require.Equal(t, 200, res.StatusCode, body)
	require.Contains(t, body, "corpus_deployments_running")
	require.NotContains(t, body, "corpus_filesystem_size_bytes{")
}

// known are metrics that the machine of these tests has no values of: it checks and converges nothing.
func known() []string { return []string{"corpus_check_failing", "corpus_converge_failing"} }

// TestShippedMetricsExist holds the names that the alert rules and the dashboard ask for against what the server serves.
func TestShippedMetricsExist(t *testing.T) {
	dir := filepath.Join("..", "packaging", "prometheus")
	rules, err := os.ReadFile(filepath.Join(dir, "alerts.yml"))
	require.NoError(t, err)
	dashboard, err := os.ReadFile(filepath.Join(dir, "dashboard.json"))
	require.NoError(t, err)
	require.True(t, json.Valid(dashboard))
	body := scraped(t)
	source, err := os.ReadFile("metrics.go")
	require.NoError(t, err)
	names := regexp.MustCompile(`corpus_[a-z_]+`).FindAllString(string(rules)+string(dashboard), -1)
	require.Greater(t, len(names), 10)
	for _, name := range names {
		there := regexp.MustCompile(`(?m)^` + name + `[{ ]`).MatchString(body)
		for _, k := range known() {
			there = there || k == name && strings.Contains(string(source), `"`+name+`"`)
		}
		require.True(t, there, "%s is not served", name)
	}
}

// TestPromtool has Prometheus' own program look at the metrics and the rules.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("promtool is missing: apt-get install prometheus")
		}
		t.Skip("promtool is not installed (Debian's prometheus)")
	}
	cmd := exec.Command(promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(scraped(t))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, strings.TrimSpace(string(out)))
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = filepath.Join("..", "packaging", "prometheus")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}
