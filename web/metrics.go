package web

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"

	"corpus-git/internal/audit"
	"corpus-git/project"
)

// Metrics counts events. It is safe for concurrent use, before and while a Server serves.
type Metrics struct {
	deployments *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	queued      *prometheus.HistogramVec
	lead        *prometheus.HistogramVec
	procedures  *prometheus.HistogramVec
	steps       *prometheus.HistogramVec
	refused     *prometheus.CounterVec
	sessions    prometheus.Counter
	logins      prometheus.Counter
}

// NewMetrics starts at zero.
func NewMetrics() *Metrics {
	return &Metrics{
		deployments: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "corpus_deployments_total", Help: "Deployments that ended, by project, trigger and verdict."},
			[]string{"project", "trigger", "verdict"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "corpus_deployment_duration_seconds", Help: "How long deployments took that ran.",
			Buckets: durations(),
		}, []string{"project", "verdict"}),
		queued: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "corpus_deployment_queue_seconds", Help: "How long deployments that ran had waited for their turn.", Buckets: durations(),
		}, []string{"trigger"}),
		lead: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "corpus_deployment_lead_time_seconds", Help: "From the request to the verdict, waiting included, of deployments that ran.", Buckets: durations(),
		}, []string{"trigger"}),
		procedures: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "corpus_procedure_duration_seconds", Help: "How long each procedure took, over all projects.", Buckets: durations(),
		}, []string{"procedure"}),
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "corpus_step_duration_seconds", Help: "How long steps of the install procedure took. Steps are not named: a push may bring any number of names.", Buckets: durations(),
		}, []string{"project"}),
		refused:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "corpus_refusals_total", Help: "Requests refused before a deployment was asked for, by action."}, []string{"action"}),
		sessions: prometheus.NewCounter(prometheus.CounterOpts{Name: "corpus_ssh_sessions_total", Help: "SSH sessions of keys that logged in."}),
		logins:   prometheus.NewCounter(prometheus.CounterOpts{Name: "corpus_ssh_refused_logins_total", Help: "SSH connections that offered keys and could not log in."}),
	}
}

// metricsLog logs collection errors; the other metrics are still served.
type metricsLog struct{ log zerolog.Logger }

// Println implements promhttp.Logger.
func (l metricsLog) Println(v ...any) { l.log.Error().Msg("metrics: " + fmt.Sprint(v...)) }

// durations returns the histograms' upper bounds, in seconds: from a procedure that does nothing to an hour.
func durations() []float64 {
	return []float64{0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}
}

// Ended counts an ended deployment.
func (m *Metrics) Ended(r project.Record) {
	verdict := string(r.State)
	if r.Result != nil && r.Result.Unhealthy != "" {
		verdict = project.Incomplete
	}
	m.deployments.WithLabelValues(string(r.Project), string(r.Trigger), verdict).Inc()
	if r.Result != nil && r.State != project.Refused {
		m.duration.WithLabelValues(string(r.Project), string(r.State)).Observe(r.Result.Ended.Sub(r.Result.Started).Seconds())
		m.timed(r)
	}
}

// timed records the durations of a deployment and its parts. Negative durations, after the clock was set back, count as 0.
func (m *Metrics) timed(r project.Record) {
	m.queued.WithLabelValues(string(r.Trigger)).Observe(max(0, r.Result.Started.Sub(r.At).Seconds()))
	m.lead.WithLabelValues(string(r.Trigger)).Observe(max(0, r.Result.Ended.Sub(r.At).Seconds()))
	for _, t := range r.Result.Timings {
		switch strings.Count(t.Name, "/") {
		case 0:
			m.procedures.WithLabelValues(t.Name).Observe(t.Duration.Seconds())
		case 1: // install/STEP; what has more parts is a state
			m.steps.WithLabelValues(string(r.Project)).Observe(t.Duration.Seconds())
		}
	}
}

// Audited counts refusals.
func (m *Metrics) Audited(e audit.Entry) {
	if e.Outcome == "refused" && e.Deployment == "" {
		m.refused.WithLabelValues(e.Action).Inc()
	}
}

// Session counts a session of a key that logged in.
func (m *Metrics) Session() { m.sessions.Inc() }

// RefusedLogin counts a connection that could not log in.
func (m *Metrics) RefusedLogin() { m.logins.Inc() }

// registry collects the counters and, at scrape time, the queues.
func (m *Metrics) registry(s *Server) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(m.deployments, m.duration, m.queued, m.lead, m.procedures, m.steps, m.refused, m.sessions, m.logins, queues{s}, machine{s}, hubs{s},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// queues collects running and waiting deployments at scrape time.
type queues struct{ s *Server }

//nolint:gochecknoglobals // descriptions, never changed
var (
	runningDesc   = prometheus.NewDesc("corpus_deployments_running", "Deployments that run now.", []string{"project"}, nil)
	waitingDesc   = prometheus.NewDesc("corpus_deployments_waiting", "Deployments that wait in line.", []string{"project"}, nil)
	driftDesc     = prometheus.NewDesc("corpus_converge_differences", "Differences from the live release that the last report found.", []string{"project"}, nil)
	convergeDesc  = prometheus.NewDesc("corpus_converge_failing", "1 where applying the live release again failed the last time, 0 where it succeeded.", []string{"project"}, nil)
	convergesDesc = prometheus.NewDesc("corpus_converges_total", "How often the live release was applied again or compared (ran), how often that failed, and how often it gave way to a deployment (skipped).", []string{"project", "result"}, nil)
	failingDesc   = prometheus.NewDesc("corpus_check_failing", "1 where a check that runs periodically failed when it ran last, 0 where it succeeded.", []string{"project", "check"}, nil)
)

// Describe implements prometheus.Collector.
func (queues) Describe(ch chan<- *prometheus.Desc) {
	ch <- runningDesc
	ch <- waitingDesc
	ch <- failingDesc
	ch <- driftDesc
	ch <- convergeDesc
	ch <- convergesDesc
}

// Collect implements prometheus.Collector.
func (q queues) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	all, err := q.s.Status.All(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(runningDesc, err)
		return
	}
	for _, p := range all {
		running := 0.0
		if p.Running != nil {
			running = 1
		}
		ch <- prometheus.MustNewConstMetric(runningDesc, prometheus.GaugeValue, running, string(p.Name))
		ch <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(p.Waiting), string(p.Name))
		q.checks(ch, p.Name)
		if c := p.Converge; c != nil {
			gauge := func(d *prometheus.Desc, v float64) {
				ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, string(p.Name))
			}
			drift, failing := 0.0, 0.0
			switch c.State {
			case project.Drifted:
				drift = float64(c.Changed)
			case project.ConvergeFailing:
				failing = 1
			}
			gauge(driftDesc, drift)
			gauge(convergeDesc, failing)
			for result, n := range map[string]int64{"ran": c.Runs, "failed": c.Failed, "skipped": c.Skipped} {
				ch <- prometheus.MustNewConstMetric(convergesDesc, prometheus.CounterValue, float64(n), string(p.Name), result)
			}
		}
	}
}

func (q queues) checks(ch chan<- prometheus.Metric, name project.Name) {
	if q.s.Checks == nil {
		return
	}
	for _, c := range q.s.Checks.States(name) {
		if c.Now == nil {
			continue
		}
		failing := 0.0
		if c.Failing() {
			failing = 1
		}
		ch <- prometheus.MustNewConstMetric(failingDesc, prometheus.GaugeValue, failing, string(name), c.Name)
	}
}
