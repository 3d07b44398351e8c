package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	if len(os.Args) == 5 && os.Args[1] == packChild {
		if err := ingestOne(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	all := map[string]func(*lab) error{
		"agents": benchAgents, "agentsnats": benchAgentsNATS, "archive": benchArchive, "burst": benchBurst, "checkout": benchCheckout, "files": benchFiles, "fixperms": benchFixperms, "idle": benchIdle, "jinja": benchJinja,
		"load": benchLoad, "nodes": benchNodes, "onefile": benchOneFile, "pack": benchPack, "packs": benchPacks, "projects": benchProjects, "push": benchPush, "records": benchRecords, "rollback": benchRollback, "sls": benchSLS, "stages": benchStages, "watch": benchWatch,
	}
	var l lab
	flag.StringVar(&l.packs, "packs", "", "what the benchmark pack ingests: `names` of packs, or of repositories that have one pack, with commas between; and of which repositories checkout and onefile check the newest trees out")
	flag.StringVar(&l.profile, "profile", "", "write a CPU profile of the last ingestion to this `file`")
	flag.BoolVar(&l.verify, "verify", false, "have git verify-pack and git fsck --strict check what the benchmark pack wrote, once for each pack")
	flag.IntVar(&l.rounds, "rounds", 0, "how many rounds the benchmarks agents, agentsnats, nodes, stages and watch measure, in place of their own `number`")
	flag.DurationVar(&l.quiet, "quiet", time.Minute, "how long the benchmarks agents and agentsnats watch a hub to which nothing happens")
	flag.Parse()
	names := flag.Args()
	if len(names) == 0 {
		for n := range all {
			names = append(names, n)
		}
		slices.Sort(names)
	}
	for _, n := range names {
		run := all[n]
		if run == nil {
			fmt.Fprintf(os.Stderr, "bench: there is no benchmark %q\n", n)
			os.Exit(2)
		}
		if err := measure(n, l, run); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", n, err)
			os.Exit(1)
		}
	}
}

// lab is a folder for one benchmark, and the program that is measured once it is built.
type lab struct {
	dir string
	bin string
	// packs, profile and verify are flags of the benchmark pack; packs, of checkout and onefile, too.
	packs, profile string
	verify         bool
	// rounds and quiet are flags of the benchmarks agents, agentsnats and nodes; rounds is 0 for their own.
	rounds int
	quiet  time.Duration
}

// roundsOr returns the number of rounds: the flag, or own where it is not set.
func (l *lab) roundsOr(own int) int {
	if l.rounds > 0 {
		return l.rounds
	}
	return own
}

func measure(name string, l lab, run func(*lab) error) error {
	dir, err := os.MkdirTemp("", "corpus-git-bench-")
	if err != nil {
		return err
	}
	if os.Getenv("CORPUS_GIT_BENCH_KEEP") == "" {
		defer os.RemoveAll(dir)
	}
	l.dir, l.bin = dir, filepath.Join(dir, "corpus-git")
	fmt.Printf("== %s: %s, %d cores, %s\n", name, cpu(), runtime.NumCPU(), time.Now().UTC().Format("2006-01-02"))
	return run(&l)
}

// build makes the program, for the benchmarks that run it.
func (l *lab) build() error {
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", l.bin, "./cmd/corpus-git")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	return nil
}

// buildWithKey makes the program and the key to push with.
func (l *lab) buildWithKey() error {
	if err := l.build(); err != nil {
		return err
	}
	return l.sh(l.dir, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", l.path("key"))
}

func cpu() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(data)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return runtime.GOARCH
}

// compare runs ours and the peer's in turn, n times after one that is not counted, each pair after before, which is not
// timed. It prints the medians, the spread, and the median of the ratios of neighbours, which it returns.
func compare(n int, before func(i int) error, oursName string, ours func() error, peerName string, peer func() error) (float64, error) {
	return compareApart(n, before, func() error { return nil }, oursName, ours, peerName, peer)
}

// compareApart is compare with something that is not timed before each side: what the one leaves to be done (writing back) must not fall to the other.
func compareApart(n int, before func(i int) error, between func() error, oursName string, ours func() error, peerName string, peer func() error) (float64, error) {
	var a, b []time.Duration
	var ratios []float64
	for i := range n + 1 {
		if err := before(i); err != nil {
			return 0, err
		}
		if err := between(); err != nil {
			return 0, err
		}
		t, err := timed(ours)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", oursName, err)
		}
		if err := between(); err != nil {
			return 0, err
		}
		u, err := timed(peer)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", peerName, err)
		}
		if i > 0 {
			a, b = append(a, t), append(b, u)
			ratios = append(ratios, t.Seconds()/u.Seconds())
		}
	}
	slices.Sort(a)
	slices.Sort(b)
	slices.Sort(ratios)
	show := func(name string, d []time.Duration) {
		fmt.Printf("%-44s median %8.1f ms   (%.1f to %.1f, %d runs)\n", name, ms(d[len(d)/2]), ms(d[0]), ms(d[len(d)-1]), len(d))
	}
	show(oursName, a)
	show(peerName, b)
	ratio := ratios[len(ratios)/2]
	fmt.Printf("ratio %.3f\n", ratio)
	return ratio, nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func timed(f func() error) (time.Duration, error) {
	t := time.Now()
	err := f()
	return time.Since(t), err
}
