package web

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
)

// Outbox counts pending and failed deliveries of notifications.
type Outbox struct {
	Waiting, GivenUp int64
	// Oldest is the time of the oldest pending event; zero if there is none.
	Oldest time.Time
}

// machine collects the state of the outbox and free disk space at scrape time.
type machine struct{ s *Server }

//nolint:gochecknoglobals // descriptions, never changed
var (
	deliveriesDesc = prometheus.NewDesc("corpus_notification_deliveries", "Deliveries of notifications that wait, and those given up that are not pruned yet.", []string{"state"}, nil)
	oldestDesc     = prometheus.NewDesc("corpus_notification_oldest_waiting_seconds", "Age of the oldest notification that waits for its delivery, 0 where none waits.", nil, nil)
	diskSizeDesc   = prometheus.NewDesc("corpus_filesystem_size_bytes", "Size of the file system of the server's root and state directories.", []string{"path"}, nil)
	diskFreeDesc   = prometheus.NewDesc("corpus_filesystem_avail_bytes", "What is left there for processes other than root's.", []string{"path"}, nil)
)

// Describe implements prometheus.Collector.
func (machine) Describe(ch chan<- *prometheus.Desc) {
	ch <- deliveriesDesc
	ch <- oldestDesc
	ch <- diskSizeDesc
	ch <- diskFreeDesc
}

// Collect implements prometheus.Collector.
func (m machine) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	if m.s.Outbox != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if o, err := m.s.Outbox(ctx); err != nil {
			ch <- prometheus.NewInvalidMetric(deliveriesDesc, err)
		} else {
			gauge(deliveriesDesc, float64(o.Waiting), "waiting")
			gauge(deliveriesDesc, float64(o.GivenUp), "given up")
			age := 0.0
			if !o.Oldest.IsZero() {
				age = max(0, m.s.Now().Sub(o.Oldest).Seconds())
			}
			gauge(oldestDesc, age)
		}
	}
	for _, path := range slices.Compact(slices.Sorted(slices.Values(m.s.Disks))) { // the same name twice would spoil the whole scrape
		var st unix.Statfs_t
		if err := unix.Statfs(path, &st); err != nil {
			ch <- prometheus.NewInvalidMetric(diskSizeDesc, err)
			continue
		}
		gauge(diskSizeDesc, float64(st.Blocks)*float64(st.Bsize), path)
		gauge(diskFreeDesc, float64(st.Bavail)*float64(st.Bsize), path)
	}
}
