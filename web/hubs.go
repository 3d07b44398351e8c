package web

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"corpus-git/project/status"
)

// hubs collects what is known of the hubs at scrape time.
type hubs struct{ s *Server }

//nolint:gochecknoglobals // descriptions, never changed
var (
	hubUpDesc       = prometheus.NewDesc("corpus_hub_up", "1 where a hub leads, follows or copies, 0 where it is not heard.", []string{"hub"}, nil)
	hubBehindDesc   = prometheus.NewDesc("corpus_hub_behind_messages", "How many messages of the log of the hubs a hub has not applied yet.", []string{"hub"}, nil)
	hubEpochDesc    = prometheus.NewDesc("corpus_hub_epoch", "The number of the leadership: it grows when another hub leads.", nil, nil)
	hubLogDesc      = prometheus.NewDesc("corpus_hub_log_bytes", "Size of the log of the hubs.", nil, nil)
	hubProblemsDesc = prometheus.NewDesc("corpus_hub_problems", "How much is wrong with the hubs, as hub list shows it.", nil, nil)
)

// Describe implements prometheus.Collector.
func (hubs) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{hubUpDesc, hubBehindDesc, hubEpochDesc, hubLogDesc, hubProblemsDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (h hubs) Collect(ch chan<- prometheus.Metric) {
	if h.s.Hubs == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	d, err := h.s.Hubs(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(hubUpDesc, err)
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, one := range d.Hubs {
		up := 0.0
		if one.State == status.HubLeads || one.State == status.HubFollows || one.State == status.HubCopies {
			up = 1
		}
		gauge(hubUpDesc, up, one.Name)
		gauge(hubBehindDesc, float64(one.Behind), one.Name)
	}
	gauge(hubEpochDesc, float64(d.Epoch))
	gauge(hubLogDesc, float64(d.LogBytes))
	gauge(hubProblemsDesc, float64(len(d.Problems)))
}
