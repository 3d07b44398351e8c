package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"corpus-git/internal/audit"
	"corpus-git/internal/db"
	"corpus-git/layout"
	"corpus-git/pipeline/records"
	"corpus-git/project"
	"corpus-git/project/configs"
)

// recordProjects is the number of projects that benchRecords gives each server, and manyRecords the number of records of the second server, in equal parts: as many for each project as the server
// keeps by default. CORPUS_GIT_BENCH_RECORDS makes manyRecords less or more. listings is how often each list is read.
const (
	recordProjects = 10
	manyRecords    = 100_000
	recordPushes   = 25
	listings       = 51
)

// benchRecords compares a server with 100,000 records of deployments with one of the same projects that has ten: listing what was applied by server, listing a project's deployments, one push, and a start.
func benchRecords(l *lab) error {
	if err := l.buildWithKey(); err != nil {
		return err
	}
	many := manyRecords
	if v := os.Getenv("CORPUS_GIT_BENCH_RECORDS"); v != "" {
		if n, err := fmt.Sscanf(v, "%d", &many); n != 1 || many < 2*recordProjects {
			return fmt.Errorf("CORPUS_GIT_BENCH_RECORDS is %q and should be a number, %d at least (%w)", v, 2*recordProjects, err)
		}
	}
	works, err := l.loadWorks(loadSize{projects: 1, pushes: recordPushes + 2*manyStarts + 8})
	if err != nil {
		return err
	}
	var both [2]*filledServer
	var most time.Duration
	for i, n := range []int{recordProjects, many} {
		c := &filledServer{lab: &lab{dir: l.path(fmt.Sprint("r", n)), bin: l.bin}, n: recordProjects, work: works[0], next: map[int]int{}}
		both[i] = c
		if err := c.fill(l); err != nil {
			return err
		}
		if most, err = c.recordsUpTo(n); err != nil {
			return err
		}
	}
	fmt.Printf("-- %d records, load %s\n", many, load())
	fmt.Printf("%-44s median %8.3f ms\n", "the query that lists 20 by server", float64(most.Microseconds())/1000)
	start := func(c *filledServer) func() error {
		return func() error {
			_, pid, stop, err := c.serveBin()
			if err != nil {
				return err
			}
			defer stop()
			return syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	nothing := func(int) error { return nil }
	against := func(what string, n int, large, small func() error) error {
		_, err := compare(n, nothing, fmt.Sprintf("%s, %d records", what, many), large, what+", ten records", small)
		return err
	}
	if err := against("start after a kill", 2*manyStarts, start(both[1]), start(both[0])); err != nil {
		return err
	}
	var urls [2]string
	for i, c := range both {
		base, _, stop, err := c.serveBin()
		if err != nil {
			return err
		}
		defer stop()
		urls[i] = base
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	for _, verb := range [][]string{{"configs", "--server", host}, {"deployments", "p5"}, {"project", "list"}} {
		run := func(c *filledServer) func() error { return func() error { return c.sh(c.dir, c.bin, verb...) } }
		if err := against(strings.Join(verb[:min(2, len(verb))], " "), listings, run(both[1]), run(both[0])); err != nil {
			return err
		}
	}
	return against("git push", recordPushes, func() error { return both[1].push(urls[1], 5) }, func() error { return both[0].push(urls[0], 5) })
}

// recordsUpTo gives a server's projects records by copying the one that each of them has, through the stores that a deployment uses: the deployment, what it applied, its event log, its audit entry.
// It returns the median time of the query that lists twenty of them by server.
func (c *filledServer) recordsUpTo(n int) (time.Duration, error) {
	ctx, state := context.Background(), layout.Root(c.path("srv")).DefaultState()
	d, err := db.Open(ctx, state.Database())
	if err != nil {
		return 0, err
	}
	defer d.Close()
	recs, err := records.Open(ctx, d)
	if err != nil {
		return 0, err
	}
	applied, err := configs.Open(ctx, d, time.Now)
	if err != nil {
		return 0, err
	}
	log, err := audit.Open(ctx, d, time.Now)
	if err != nil {
		return 0, err
	}
	var entries []audit.Entry
	server := ""
	for p := range c.n {
		name := project.Name(fmt.Sprintf("p%d", p))
		first, err := recs.Find(ctx, name, "")
		if err != nil {
			return 0, err
		}
		list, err := applied.List(ctx, configs.Filter{Deployment: first.ID, Limit: 1})
		if err != nil || len(list) == 0 {
			return 0, errors.Join(err, fmt.Errorf("%s applied nothing", name))
		}
		config, err := applied.Get(ctx, list[0].Config)
		if err != nil {
			return 0, err
		}
		server = list[0].Server
		from := state.EventLog(name.String(), string(first.ID))
		for range n/c.n - 1 {
			rec, did := first, list[0]
			rec.ID = project.NewID()
			did.Deployment = rec.ID
			if err := recs.Note(ctx, rec); err != nil {
				return 0, err
			}
			var failed error
			applied.Begin(config, did, func(err error) { failed = err })(did.State, did.Reason, did.Outputs)
			applied.Flush()
			if err := errors.Join(failed, os.Link(from, state.EventLog(name.String(), string(rec.ID)))); err != nil {
				return 0, err
			}
			entries = append(entries, audit.Entry{Actor: rec.Pusher.Key, From: "127.0.0.1", Action: "push", Project: name.String(), Object: rec.Change.Ref, Outcome: "ok", Deployment: string(rec.ID)})
		}
	}
	if err := log.RecordAll(ctx, entries); err != nil {
		return 0, err
	}
	var took []time.Duration
	for range listings {
		t, err := timed(func() error {
			list, err := applied.List(ctx, configs.Filter{Server: server, Limit: 20})
			if err == nil && len(list) < min(n, 10) {
				err = fmt.Errorf("%d of server %s are listed", len(list), server)
			}
			return err
		})
		if err != nil {
			return 0, err
		}
		took = append(took, t)
	}
	slices.Sort(took)
	return median(took), nil
}
