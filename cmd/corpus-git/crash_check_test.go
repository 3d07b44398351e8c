package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/archive"
	"corpus-git/internal/execx"
	"corpus-git/layout"
	"corpus-git/pipeline/journal"
	"corpus-git/project"
	"corpus-git/project/status"
)

// moment is what must be the old or the new after a crash.
type moment struct {
	trees        string
	outside      string // what steps wrote outside of the trees
	code, pillar string // the branches, as git ls-remote sees them
	records      []project.Record
}

func (m *crashed) now() moment {
	m.t.Helper()
	var w moment
	var err error
	w.trees, err = trees(m.paths())
	require.NoError(m.t, err)
	w.outside, err = contents(m.outside())
	require.NoError(m.t, err)
	w.code, w.pillar = m.branch("code"), m.branch("pillar")
	w.records = m.records()
	return w
}

// contents are the paths, modes and contents below a folder that may be missing.
func contents(dir string) (string, error) {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) && path == dir {
			return nil
		}
		if err != nil {
			return err
		}
		var text []byte
		switch {
		case d.Type().IsRegular():
			text, err = os.ReadFile(path)
		case d.Type()&fs.ModeSymlink != 0:
			var to string
			to, err = os.Readlink(path)
			text = []byte(to)
		}
		fi, ierr := d.Info()
		if err = errors.Join(err, ierr); err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %s %s\n", fi.Mode(), strings.TrimPrefix(path, dir), bytes.TrimSpace(text))
		return nil
	})
	return b.String(), err
}

// branch is the commit that the deployed branch holds, asked over ssh.
func (m *crashed) branch(repo string) string {
	m.t.Helper()
	commit := ""
	for line := range strings.Lines(m.git("code", "ls-remote", m.remote(repo))) {
		c, ref, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if ref == "refs/heads/master" {
			commit = c
		}
		if strings.HasPrefix(ref, "refs/corpus") {
			m.fail("ls-remote shows %s", ref)
		}
	}
	return commit
}

func (m *crashed) records() []project.Record {
	m.t.Helper()
	var doc struct{ Deployments []project.Record }
	require.NoError(m.t, json.Unmarshal([]byte(m.must("deployments", m.project, "--json", "--limit", "1000")), &doc))
	return doc.Deployments
}

// entries are those of the last deployment in the journal.
func (m *crashed) entries() (kinds []journal.Kind, id project.ID) {
	text, err := os.ReadFile(m.state().Journal(m.project))
	if os.IsNotExist(err) {
		return nil, ""
	}
	require.NoError(m.t, err)
	for line := range strings.Lines(string(text)) {
		e, ok := parseEntry(line)
		if !ok {
			continue // torn
		}
		if e.Kind == journal.Accepted {
			kinds, id = nil, e.Deployment
		}
		kinds = append(kinds, e.Kind)
	}
	return kinds, id
}

// parseEntry reads one line of a journal: a checksum, a space, JSON.
func parseEntry(line string) (e journal.Entry, ok bool) {
	return e, len(line) > 10 && json.Unmarshal([]byte(line[9:]), &e) == nil
}

// check holds everything that must be true after a crash and a restart against what was before the action.
func (m *crashed) check(before moment, a action) (live bool) {
	m.t.Helper()
	after := m.now()
	// What was live before, or what was complete when the journal said "committing".
	if after.trees != before.trees {
		text, err := os.ReadFile(filepath.Join(m.hook, "new"))
		if kinds, _ := m.entries(); os.IsNotExist(err) && slices.Contains(kinds, journal.Committing) {
			// It died between the journal's entry and the hook: what git tracks must be the commit's, and a.trees may be known.
			if s := m.git("code", "--no-optional-locks", "-C", m.paths().Live(), "status", "--porcelain", "--untracked-files=no"); s != "" {
				m.fail("the new tree is not the commit's:\n%s", s)
			}
			text, err = []byte(after.trees), nil
		}
		if err != nil {
			m.fail("the trees are not the old ones, and no new ones were ready (%v):\n%s", err, difference(before.trees, after.trees))
		}
		if after.trees != string(text) {
			m.fail("the trees are neither the old ones nor the new ones\n--- old\n%s\n--- new\n%s", difference(before.trees, after.trees), difference(string(text), after.trees))
		}
		live = true
	}
	if live && !a.good {
		m.fail("what had to fail is live")
	}
	if live && a.trees != "" && after.trees != a.trees {
		m.fail("not the tree of the archive came back:\n%s", difference(a.trees, after.trees))
	}
	code, pillar := before.code, before.pillar
	if live {
		code, pillar = a.code, a.pillar
	}
	if after.code != code || after.pillar != pillar {
		m.fail("live=%v, but the branches are at %q and %q, not at %q and %q", live, after.code, after.pillar, code, pillar)
	}
	// Outside of the trees: what was there before, or what the steps of the deployment that is live wrote.
	switch {
	case !live && after.outside != before.outside:
		m.fail("outside of the trees it is not as before:\n%s", difference(before.outside, after.outside))
	case live && len(after.records) > 0 && !strings.Contains(after.outside, "/site "+strings.TrimPrefix(m.git("code", "show", after.code+":page"), "number ")+" "):
		m.fail("outside of the trees it is not as the deployment that is live wrote it:\n%s", after.outside)
	}
	// The record.
	if n := len(after.records) - len(before.records); n < 0 || n > 1 {
		m.fail("%d new records", n)
	} else if n == 0 && live {
		m.fail("no record of what is live")
	} else if n == 1 {
		r := after.records[0]
		good := r.State == project.Live
		if good != live || (!live && r.State != project.RolledBack && r.State != project.Refused) || r.Result == nil || r.Result.Reason == "" && !live {
			m.fail("live=%v, but the record says %s: %+v", live, r.State, r.Result)
		}
		if r.Result.Code != project.Commit(code) || r.Result.Pillar != project.Commit(pillar) {
			m.fail("the record says that %q and %q are live: %q and %q are", r.Result.Code, r.Result.Pillar, code, pillar)
		}
		if live && r.Result.Kind != "" {
			m.fail("what is live has failed with %s", r.Result.Kind)
		}
		want := "rolled back in"
		switch r.State {
		case project.Live:
			want = "live in"
		case project.Refused:
			want = "refused: nothing was changed"
		}
		if text := m.must("logs", m.project, string(r.ID)); !strings.Contains(text, "=====> "+want) {
			m.fail("the log of %s does not say %q:\n%s", r.ID, want, text)
		}
	}
	for i, r := range after.records {
		if !r.State.Terminal() {
			m.fail("the record of %s is still %s", r.ID, r.State)
		}
		if i > 0 && after.records[i-1].At.Before(r.At) {
			m.fail("the records are out of order")
		}
	}
	kinds, id := m.entries()
	if len(kinds) > 0 && kinds[len(kinds)-1] != journal.Ended {
		m.fail("the journal is open: %v", kinds)
	}
	if len(after.records) > len(before.records) && after.records[0].ID == id {
		committed := strings.Contains(strings.Join(strs(kinds), " "), "committing")
		if committed != live {
			m.fail("live=%v, and the journal says %v", live, kinds)
		}
	}
	m.settled()
	m.leaks()
	m.wholeRepositories()
	return live
}

func strs(kinds []journal.Kind) (out []string) {
	for _, k := range kinds {
		out = append(out, string(k))
	}
	return out
}

// half are the names of what is being made or deleted.
var half = regexp.MustCompile(`^(\.tmp-.*|\.trash-.*|incoming-.*|.*\.lock|tmp_(obj|pack|idx)_.*|\.corpus-git-tmp-.*|corpus-git\.checkout)$`)

// leaks fails on whatever a crash left lying about.
func (m *crashed) leaks() {
	m.t.Helper()
	var left []string
	// Deleting goes on in the background.
	for range 200 {
		left = m.leftovers()
		if len(left) == 0 {
			break
		}
		time.Sleep(25 * time.Millisecond)
	}
	if len(left) > 0 {
		m.fail("left over:\n%s", strings.Join(left, "\n"))
	}
	if n, err := marked(m.state()); err != nil || len(n) > 0 {
		m.fail("processes of steps run still: %v (%v)", n, err)
	}
	if n, err := filepath.Glob(filepath.Join(m.state().Processes(), "[^.]*")); err != nil || len(n) > 0 {
		m.fail("a process is still noted: %v", n)
	}
	// Archives are whole or absent, and those that are there have a verdict.
	store := archive.New(m.paths(), archive.Config{})
	list, err := store.List()
	require.NoError(m.t, err)
	ids := map[string]bool{}
	for _, a := range list {
		ids[a.ID] = true
		if a.Verdict == archive.Pending {
			m.fail("the archive of %s has no verdict", a.ID)
		}
		if a.Rollback != nil && a.Rollback.Done.IsZero() {
			m.fail("the rollback of %s is not done", a.ID)
		}
		if a.Rollback != nil && !a.Rollback.Proof.Exact() {
			m.fail("the rollback of %s was not exact: %+v", a.ID, a.Rollback.Proof)
		}
		m.oneForm(a)
		if !a.Whole {
			continue
		}
		p, err := store.Verify(m.t.Context(), a.ID)
		if err != nil || !p.Exact() {
			m.fail("the archive of %s is not whole: %+v (%v)", a.ID, p, err)
		}
	}
	m.rollBackAgain(store, list)
	names, err := os.ReadDir(m.paths().Archives())
	require.NoError(m.t, err)
	for _, n := range names {
		if _, id, ok := layout.ParseArchiveName(n.Name()); n.Name() != ".spare" && (!ok || !ids[id]) {
			m.fail("%s is in archives, and is not an archive", n.Name())
		}
	}
	// Event logs belong to a record.
	known := map[string]bool{}
	for _, r := range m.records() {
		known[string(r.ID)+".jsonl"] = true
	}
	logs, err := os.ReadDir(m.state().Events(m.project))
	if err != nil && !os.IsNotExist(err) {
		require.NoError(m.t, err)
	}
	for _, l := range logs {
		if !known[l.Name()] {
			m.fail("%s is the log of no deployment", l.Name())
		}
	}
	// Pins belong to an archive, and name what its tree was made from.
	holds := map[string]archive.Commits{}
	for _, a := range list {
		if a.Whole {
			holds[a.ID] = a.Held
		}
	}
	pinless := map[string]bool{}
	for id, held := range holds {
		if held.Code != "" {
			pinless[m.paths().ProjectGit()+" "+id] = true
		}
		if held.Pillar != "" {
			pinless[m.paths().PillarGit()+" "+id] = true
		}
	}
	for _, dir := range []string{m.paths().ProjectGit(), m.paths().PillarGit()} {
		for line := range strings.Lines(m.refs(dir)) {
			c, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
			id, pin := strings.CutPrefix(ref, "refs/corpus/archives/")
			held, there := holds[id]
			want := held.Code
			if dir == m.paths().PillarGit() {
				want = held.Pillar
			}
			switch {
			case !pin && ref != "refs/heads/master":
				m.fail("%s has %s", dir, ref)
			case pin && !there:
				m.fail("%s pins for nothing: %s", dir, ref)
			case pin && c != want:
				m.fail("%s is %s, and the archive holds %s", ref, c, want)
			}
			delete(pinless, dir+" "+id)
		}
	}
	for id := range pinless {
		m.fail("nothing holds the commit of an archive: %s", id)
	}
}

// oneForm checks that an archive holds each tree as a folder or as a file, as its record says, and nothing else.
func (m *crashed) oneForm(a archive.Archive) {
	m.t.Helper()
	want := map[string]bool{"deployment.json": true, "manifest": true, "project.failed": a.FailedTree, "pillar.failed": a.FailedTree}
	for _, tree := range a.Trees {
		two := a.Packed != nil && a.Packed.Trees[tree].Base != nil
		want[tree], want[tree+".tar.zst"] = a.Whole && a.Packed == nil, a.Packed != nil && !two
		want[tree+".base.tar.zst"], want[tree+".changed.tar.zst"] = two, two
	}
	names, err := os.ReadDir(a.Path)
	require.NoError(m.t, err)
	for _, n := range names {
		if !want[n.Name()] {
			m.fail("%s is in the archive of %s, whole=%v packed=%v", n.Name(), a.ID, a.Whole, a.Packed != nil)
		}
	}
}

// foreignLogs are kept undo logs of deployments that did not go live.
func (m *crashed) foreignLogs() (left []string) {
	var doc status.Deployments
	require.NoError(m.t, json.Unmarshal([]byte(m.must("deployments", m.project, "-n", "1000", "--json")), &doc))
	live := map[string]bool{}
	for _, r := range doc.Deployments {
		live[string(r.ID)] = r.State == project.Live
	}
	logs, err := os.ReadDir(m.state().LiveUndo(m.project))
	if err != nil && !os.IsNotExist(err) {
		left = append(left, err.Error())
	}
	for _, l := range logs {
		if _, id, ok := strings.Cut(l.Name(), "-"); !ok || !live[id] {
			left = append(left, "the undo log "+l.Name()+" of a deployment that did not go live")
		}
	}
	return left
}

// leftovers are half made things anywhere below the root.
func (m *crashed) leftovers() (left []string) {
	// At rest nothing is under way.
	notes, err := os.ReadDir(m.state().Underway())
	if err != nil {
		left = append(left, err.Error())
	}
	for _, n := range notes {
		left = append(left, "the note of "+n.Name())
	}
	logs, err := os.ReadDir(filepath.Dir(m.state().Undo("x")))
	if err != nil && !os.IsNotExist(err) {
		left = append(left, err.Error())
	}
	for _, l := range logs {
		if l.Name() == "live" {
			left = append(left, m.foreignLogs()...)
			continue
		}
		left = append(left, "the undo log of "+l.Name())
	}
	err = filepath.WalkDir(m.root.Path(), func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil // deleted meanwhile
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(m.root.Path(), path)
		if err != nil {
			return err
		}
		switch {
		case !half.MatchString(d.Name()):
		case strings.HasSuffix(rel, "/.git/corpus-git.lock") && !strings.Contains(rel, "/.git/refs/"):
			// flock(2) guards a working copy; the file stays.
		case strings.Contains(rel, ".failed/") || strings.Contains(rel, "/.spare/"):
			// A failed tree is kept as it fell.
		default:
			left = append(left, rel)
			if d.IsDir() {
				return fs.SkipDir
			}
		}
		return nil
	})
	if err != nil {
		left = append(left, err.Error())
	}
	return left
}

// marked are the processes that belong to steps of this server.
func marked(state layout.State) (found []string, err error) {
	key := execx.Key + "=" + state.Processes()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		text, err := os.ReadFile(filepath.Join(d, "environ"))
		if err == nil && strings.Contains("\x00"+string(text), "\x00"+key) {
			line, _ := os.ReadFile(filepath.Join(d, "cmdline"))
			found = append(found, filepath.Base(d)+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found, err
}

func (m *crashed) refs(dir string) string {
	m.t.Helper()
	return m.git("code", "--git-dir", dir, "for-each-ref", "--format=%(objectname) %(refname)")
}
