package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"corpus-git/internal/vfs"
	"corpus-git/undo"
)

// rollbackSize is how large the project is and how many pushes of each kind are timed: CORPUS_GIT_BENCH_ROLLBACK=<files>x<pushes>.
const rollbackSize = "5000x7"

// betweenPushes is how long the server is left alone, so that what it does after a deployment counts for none.
const betweenPushes = 3 * time.Second

// benchRollback pushes, in turn, a release that is good, one that changes three files outside of its tree, and one that does so and then fails in its last step, so that the tree, those
// files and the steps of what is live come back. The peer is the good push. CORPUS_GIT_BENCH_ROLLBACK=5000x7.
func benchRollback(l *lab) error {
	files, pushes, err := filesAndPushes("CORPUS_GIT_BENCH_ROLLBACK", rollbackSize, 2, 1)
	if err != nil {
		return err
	}
	if err := l.buildWithKey(); err != nil {
		return err
	}
	work := l.path("work")
	if err := makeProject(work, files); err != nil {
		return err
	}
	if err := l.outside(work, 0); err != nil {
		return err
	}
	if err := l.commitAll(work); err != nil {
		return err
	}
	url, stop, err := l.serveCorpus()
	if err != nil {
		return err
	}
	defer stop()
	if err := l.sh(work, "git", "push", "-q", url, "master"); err != nil {
		return err
	}
	var good, outside, failing []time.Duration
	last := filepath.Join(work, ".salt", "900_last.sls")
	for i := 1; i <= pushes; i++ {
		for _, kind := range []*[]time.Duration{&good, &outside, &failing} {
			err := writeFile(filepath.Join(work, "index.html"), fmt.Sprintf("<h1>%d %d</h1>\n", i, time.Now().UnixNano()), 0o644)
			if kind != &good {
				err = errors.Join(err, l.outside(work, time.Now().UnixNano()))
			}
			if kind == &failing {
				err = errors.Join(err, writeFile(last, "last:\n  cmd.run:\n    - name: exit 1\n", 0o644))
			}
			if err = errors.Join(err, l.sh(work, "git", "add", "-A"), l.sh(work, "git", "commit", "-qm", "change")); err != nil {
				return err
			}
			time.Sleep(betweenPushes)
			t, err := timed(func() error { return l.sh(work, "git", "push", "-q", url, "master") })
			if (err != nil) != (kind == &failing) {
				return fmt.Errorf("push %d: failed: %t (%w)", i, err != nil, err)
			}
			*kind = append(*kind, t)
			if kind == &failing {
				if err := l.sh(work, "git", "reset", "-q", "--hard", "HEAD~"); err != nil {
					return err
				}
			}
		}
	}
	for _, d := range [][]time.Duration{good, outside, failing} {
		slices.Sort(d)
	}
	say := func(what string, d []time.Duration) {
		fmt.Printf("%-48s least %7.1f ms   median %7.1f ms   ratio to the good push: least %.3f, median %.3f\n", what, ms(d[0]), ms(median(d)), d[0].Seconds()/good[0].Seconds(), median(d).Seconds()/median(good).Seconds())
	}
	say("good, nothing changes outside", good)
	say("good, three files outside change", outside)
	say("fails in its last step, and all of it comes back", failing)
	notes, err := l.noting(20)
	if err != nil {
		return err
	}
	fmt.Printf("%-48s least %7.1f ms   median %7.1f ms   part of the good push: least %.3f, median %.3f\n", "the undo log of these three files, without them", ms(notes[0]), ms(median(notes)),
		notes[0].Seconds()/good[0].Seconds(), median(notes).Seconds()/median(good).Seconds())
	fmt.Printf("load %s\n", load())
	return nil
}

// noting times what the undo log itself does of a deployment that changes the three files outside: their notes before they change, durably, and after.
func (l *lab) noting(rounds int) ([]time.Duration, error) {
	var out []time.Duration
	m := undo.Machine{FS: vfs.OS{}}
	for i := range rounds {
		log, err := undo.New(m, l.path(fmt.Sprintf("noted/%d", i)))
		if err != nil {
			return nil, err
		}
		var took time.Duration
		for f := range 3 {
			path := l.path(fmt.Sprintf("outside/f%d", f))
			before, err := timed(func() error { return log.Before(context.Background(), path) })
			if err != nil {
				return nil, err
			}
			if err := writeFile(path, fmt.Sprintf("noted %d", i), 0o644); err != nil {
				return nil, err
			}
			after, err := timed(func() error { return log.After(context.Background()) })
			if err != nil {
				return nil, err
			}
			took += before + after
		}
		end, err := timed(log.Close)
		if err != nil {
			return nil, err
		}
		out = append(out, took+end)
	}
	slices.Sort(out)
	return out, nil
}

// outside writes the step that manages three files outside of the tree.
func (l *lab) outside(work string, version int64) error {
	text := ""
	for i := range 3 {
		text += fmt.Sprintf("%s:\n  file.managed:\n    - makedirs: true\n    - contents: version %d\n", l.path(fmt.Sprintf("outside/f%d", i)), version)
	}
	return writeFile(filepath.Join(work, ".salt", "800_outside.sls"), text, 0o644)
}
