//go:build fleet

package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"corpus-git/cluster/member"
	"corpus-git/cluster/stream"
	"corpus-git/fleet"
	"corpus-git/internal/db"
	"corpus-git/layout"
	"corpus-git/project"
)

// records are those of the project, the newest first.
func (c *crashedCluster) records(h *clusterHub) []project.Record {
	c.t.Helper()
	var doc struct{ Deployments []project.Record }
	require.NoError(c.t, json.Unmarshal([]byte(c.cli(h.root, "deployments", "app", "--json", "--limit", "1000")), &doc))
	return doc.Deployments
}

func (c *crashedCluster) rollouts(h *clusterHub) ([]*fleet.Progress, error) {
	return fleet.History(filepath.Dir(h.root.DefaultState().Rollout("x")), "app")
}

// settle waits until the hubs agree, and the one that leads has ended all that was to be done.
func (c *crashedCluster) settle() {
	c.t.Helper()
	c.awaitHubs()
	c.until("the hub that leads still deploys", func() bool {
		h := c.leader()
		var doc struct {
			Projects []struct {
				Running json.RawMessage
				Waiting int
			}
		}
		out, err := c.command(h.root, c.exe, "project", "list", "--json").Output()
		if err != nil || json.Unmarshal(out, &doc) != nil || len(doc.Projects) != 1 || doc.Projects[0].Running != nil || doc.Projects[0].Waiting > 0 {
			return false
		}
		all, err := c.rollouts(h)
		return err == nil && !slices.ContainsFunc(all, func(p *fleet.Progress) bool { return !p.Complete() })
	})
	c.awaitHubs()
}

// check compares what every machine has with what the records say, and those with what the client heard.
func (c *crashedCluster) check(o outcome) (state string) {
	c.t.Helper()
	h := c.leader()
	records := c.records(h)
	all, err := c.rollouts(h)
	require.NoError(c.t, err)
	state = c.verdict(o, records, all)
	live := c.live(records)
	whole := true // but for what could not be rolled back since the last release
	for _, r := range records {
		if r.State == project.Live {
			break
		}
		whole = whole && c.rolloutOf(all, string(r.ID)) != fleet.Incomplete
	}
	var versions []int
	for _, v := range c.versions {
		versions = append(versions, v)
	}
	for _, a := range c.agents {
		paths := a.root.Project("app")
		c.until(fmt.Sprintf("%s is not %d: it is %s", a.name, live, c.holds(paths)), func() bool {
			holds := c.holds(paths)
			return holds == fmt.Sprint(live) || !whole && slices.Contains(versions, number1(holds))
		})
		c.once(a, all)
	}
	c.until(fmt.Sprintf("the tree of %s is not %d: it is %s", h.name, live, c.holds(h.root.Project("app"))), func() bool { return c.holds(h.root.Project("app")) == fmt.Sprint(live) })
	for _, x := range c.hubs {
		if got := c.git(".", "--git-dir", x.root.Project("app").ProjectGit(), "log", "-1", "--format=%s", "master"); got != fmt.Sprint(live) {
			c.fail("%s: the branch is at %s, and %d is live", x.name, got, live)
		}
	}
	c.note("every node is right")
	c.same()
	c.note("the hubs are the same")
	c.readLog()
	if o.kind != "" {
		c.did[o.kind+" "+state]++
	}
	if !whole {
		c.did["completed"]++
		c.commit("")
		c.note("push %d, which nothing disturbs", c.version)
		c.undisturbed("code", "project")
		c.settle()
		c.check(outcome{})
	}
	return state
}

func number1(text string) (n int) {
	if _, err := fmt.Sscanf(text+"\n", "%d\n", &n); err != nil || fmt.Sprint(n) != text {
		return -1
	}
	return n
}

// live is the version that the newest record of a deployment that went live says.
func (c *crashedCluster) live(records []project.Record) int {
	c.t.Helper()
	for _, r := range records {
		if r.State == project.Live && r.Result != nil {
			return c.versions[string(r.Result.Code)]
		}
	}
	return 0
}

func (c *crashedCluster) rolloutOf(all []*fleet.Progress, id string) string {
	for _, p := range all {
		if string(p.Deployment.ID) == id {
			return p.State
		}
	}
	return ""
}

// verdict compares the records with the rollouts, and what is new in them with what the client heard. state is how the newest of them ended.
func (c *crashedCluster) verdict(o outcome, records []project.Record, all []*fleet.Progress) (state string) {
	c.t.Helper()
	state = "none"
	live := 0
	for i := len(records) - 1; i >= 0; i-- {
		r := records[i]
		if r.Result == nil || r.State == project.Running || r.State == project.Waiting {
			c.fail("%s has not ended: %s", r.ID, r.State)
		}
		was := c.rolloutOf(all, string(r.ID))
		if was != "" && (was == fleet.Live) != (r.State == project.Live) {
			c.fail("the record of %s says %q, its rollout %q", r.ID, r.State, was)
		}
		if o.known == nil || o.known[string(r.ID)] {
			continue
		}
		state = string(r.State)
		c.note("record %s %s of %d: %s, rollout %q: %s", r.ID.Short(), r.Trigger, c.versions[string(r.Code)], r.State, was, r.Result.Reason)
		if r.State == project.Failed {
			c.fail("%s could not be rolled back: %s", r.ID, r.Result.Reason)
		}
		if r.State == project.Live {
			live++
			if o.commit != "" && string(r.Code) != o.commit {
				c.fail("%s is live, and not what was pushed", r.Code)
			}
		}
	}
	switch {
	case o.heard == yes && state != string(project.Live):
		c.fail("the client heard that it is live; it is %s", state)
	case o.heard == no && state == string(project.Live):
		c.fail("the client heard that it is not live; it is")
	case live > 0 && o.breaks != "":
		c.fail("it is live, and fails on %s", o.breaks)
	case live > 1 && o.kind != "push":
		c.fail("it went live %d times", live)
	}
	return state
}

// once checks that nothing ran twice on a node, and no two at a time.
func (c *crashedCluster) once(a *clusterAgent, all []*fleet.Progress) {
	c.t.Helper()
	if text, err := os.ReadFile(filepath.Join(a.root.Path(), "wrong")); err == nil {
		c.fail("%s: %s", a.name, text)
	}
	target := map[string]int{}
	for _, p := range all {
		if p.Deployment.Trigger == project.TriggerPush {
			target[string(p.Deployment.ID)] = c.versions[string(p.Deployment.Code)]
		}
	}
	for file, counts := range map[string]func(id, rest string) bool{
		filepath.Join(a.root.Path(), "began"):              func(string, string) bool { return true },
		filepath.Join(a.root.Project("app").Data(), "ran"): func(id, version string) bool { return target[id] > 0 && fmt.Sprint(target[id]) == version },
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			c.fail("%s: %v", a.name, err)
		}
		seen := map[string]int{}
		for line := range strings.Lines(string(text)) {
			id, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			if seen[line]++; seen[line] > 1 && counts(id, rest) {
				c.fail("%s: %s has this twice: %s", a.name, file, line)
			}
		}
	}
}

// holds is which version a machine holds, or what is wrong with its tree.
func (c *crashedCluster) holds(paths layout.Project) string {
	f := crashedFleet{t: c.t, dir: c.dir, env: c.env}
	return f.holds(paths)
}

// same waits until the three hubs have the same state.
func (c *crashedCluster) same() {
	c.t.Helper()
	different := ""
	begun, told := time.Now(), false
	for {
		different = ""
		want := c.state(c.hubs[0])
		for _, h := range c.hubs[1:] {
			if got := c.state(h); got != want {
				different = h.name + " differs from hub1:\n" + difference(want, got)
			}
		}
		if different == "" {
			return
		}
		switch took := time.Since(begun); {
		case took > 45*time.Second: // less than the minute after which a hub sends what nobody waited for
			c.fail("%s", different)
		case took > 5*time.Second && !told:
			c.note("%s", different)
			told = true
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// state is the hub's part of what the hubs have in common: refs, journals, records of rollouts, event logs, and the rows of the database.
func (c *crashedCluster) state(h *clusterHub) string {
	var b strings.Builder
	for _, dir := range []string{h.root.Project("app").ProjectGit(), h.root.Project("app").PillarGit()} {
		out, err := c.command(h.root, "git", "--git-dir", dir, "for-each-ref").CombinedOutput()
		fmt.Fprintf(&b, "%s%v\n", out, err)
	}
	s := h.root.DefaultState()
	for _, dir := range []string{filepath.Dir(s.Journal("x")), filepath.Dir(s.Rollout("x")), s.Events("app")} {
		text, err := contents(dir)
		for line := range strings.Lines(text) {
			if !strings.Contains(line, " /.tmp-") { // left by a hub that was killed, and part of nothing
				b.WriteString(line)
			}
		}
		fmt.Fprintf(&b, "%v\n", err)
	}
	b.WriteString(c.rows(s))
	return b.String()
}

// rows are those of the database, read from a copy: nobody else may open it.
func (c *crashedCluster) rows(s layout.State) string {
	dir := c.t.TempDir()
	defer os.RemoveAll(dir)
	to := filepath.Join(dir, "copy.db")
	for _, suffix := range []string{"", "-wal"} {
		text, err := os.ReadFile(s.Database() + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(to+suffix, text, 0o600)
		}
		if err != nil {
			return err.Error()
		}
	}
	d, err := db.Open(c.t.Context(), to)
	if err != nil {
		return err.Error()
	}
	defer d.Close()
	names, err := d.Query(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`)
	if err != nil {
		return err.Error()
	}
	var tables []string
	for names.Next() {
		var name string
		if err := names.Scan(&name); err != nil {
			return err.Error()
		}
		tables = append(tables, name)
	}
	_ = names.Close()
	var b strings.Builder
	for _, name := range tables {
		rows, err := d.Query(`SELECT * FROM "` + name + `"`)
		if err != nil {
			continue // a virtual table's own
		}
		columns, _ := rows.Columns()
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := rows.Scan(values...); err != nil {
				return err.Error()
			}
			fmt.Fprintf(&b, "%s:", name)
			for _, v := range values {
				fmt.Fprintf(&b, " %v", *v.(*any))
			}
			b.WriteByte('\n')
		}
		_ = rows.Close()
	}
	return b.String()
}

// logCheck is how far the log of the hubs was read, and who led then.
type logCheck struct {
	next, epoch uint64
	hubs        map[uint64]string
}

// readLog checks that each part of the log is of the hub that led when it was written, and that no epoch has two leaders.
func (c *crashedCluster) readLog() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	connect, err := member.Connect(c.hubs[0].root.DefaultState())
	require.NoError(c.t, err)
	conn, err := connect(nats.SetCustomDialer(c.client), nats.Timeout(10*time.Second))
	if err != nil {
		c.fail("connect to the log of the hubs: %v", err)
	}
	defer conn.Close()
	log, err := stream.Open(ctx, conn)
	if err != nil {
		c.fail("%v", err)
	}
	l := &c.log
	if l.hubs == nil {
		l.hubs = map[uint64]string{}
	}
	state, err := log.State(ctx)
	for ; err != nil && ctx.Err() == nil; state, err = log.State(ctx) {
		time.Sleep(100 * time.Millisecond)
	}
	if state.First > l.next {
		l.next, l.epoch = state.First, 0 // what is not needed any more was removed
	}
	for l.next <= state.Last {
		data, at, ok, err := log.Read(ctx, l.next)
		switch {
		case ctx.Err() != nil:
			c.fail("the log of the hubs cannot be read: %v", err)
		case err != nil || !ok || len(data) < 10:
			time.Sleep(50 * time.Millisecond)
			continue
		}
		l.next = at + 1
		c.did["messages of the log"]++
		var begin struct {
			Epoch uint64
			Hub   string
		}
		switch data[0] {
		case 'e':
			require.NoError(c.t, json.Unmarshal(data[1:], &begin))
			if begin.Epoch <= l.epoch || l.hubs[begin.Epoch] != "" {
				c.fail("message %d of the log: %s begins epoch %d after %d, which %q led", at, begin.Hub, begin.Epoch, l.epoch, l.hubs[begin.Epoch])
			}
			l.epoch, l.hubs[begin.Epoch] = begin.Epoch, begin.Hub
		default:
			epoch := binary.BigEndian.Uint64(data[2:10])
			if l.epoch != 0 && epoch != l.epoch {
				c.fail("message %d of the log is of epoch %d, and %d is the last", at, epoch, l.epoch)
			}
			l.epoch = epoch
		}
	}
}
