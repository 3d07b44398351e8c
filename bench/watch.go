package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// benchWatch changes a key that a project watches, and measures from the end of the command to the first step of the run that follows. That time contains the server's watch_debounce,
// 1 s by default, from the change on. No peer has this: the target is 2 s.
func benchWatch(l *lab) error {
	if err := l.buildWithKey(); err != nil {
		return err
	}
	if err := errors.Join(l.sh(l.dir, l.bin, "key", "add", "bench", "--file", l.path("key.pub")), l.createProject("app"), l.sh(l.dir, l.bin, "access", "grant", "app", "bench", "configure")); err != nil {
		return err
	}
	base, _, stop, err := l.serveBin()
	if err != nil {
		return err
	}
	defer stop()
	work, ran := l.path("work"), l.path("ran")
	if err := errors.Join(
		writeFile(filepath.Join(work, ".salt/PILLAR.sample"), "makina-projects.app:\n  watch: [shared/key]\n", 0o644),
		writeFile(filepath.Join(work, ".salt/010_run.sh"), "#!/bin/sh\ndate +%s.%N >>"+ran+"\n", 0o755),
		l.commitAll(work), l.sh(work, "git", "push", "-q", base+"app/project.git", "HEAD:master"),
	); err != nil {
		return err
	}
	var all []time.Duration
	for i := range l.roundsOr(5) {
		before, err := os.ReadFile(ran)
		if err != nil {
			return err
		}
		if err := l.sh(l.dir, l.bin, "kv", "set", "shared/key", fmt.Sprint(i)); err != nil {
			return err
		}
		set := time.Now()
		var text []byte
		for text = before; len(text) == len(before); {
			if time.Since(set) > time.Minute {
				return errors.New("the change of a key was not applied")
			}
			time.Sleep(10 * time.Millisecond)
			if text, err = os.ReadFile(ran); err != nil {
				return err
			}
		}
		var at float64
		if _, err := fmt.Sscan(strings.TrimSpace(string(text[len(before):])), &at); err != nil {
			return err
		}
		all = append(all, time.Duration((at-float64(set.UnixMicro())/1e6)*1e9))
		time.Sleep(time.Second) // the run ends
	}
	slices.Sort(all)
	fmt.Printf("-- from a key's change to the first step: median of %d %.2f s (%.2f to %.2f), load %s\n", len(all), median(all).Seconds(), all[0].Seconds(), all[len(all)-1].Seconds(), load())
	return nil
}
