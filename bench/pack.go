package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"corpus-git/git/pack"
	"corpus-git/git/pktline"
	"corpus-git/git/store"
)

const (
	packRounds = 3 // or BENCH_ROUNDS
	thinRounds = 40
	// packChild is the command by which the benchmark runs itself, so that our memory is a process's own, as git's is.
	packChild = "ingest-one-pack"
)

// benchPack ingests real packs as a push does, into a quarantine, beside git index-pack --stdin with two threads, in turn:
// wall time, processor time and the most memory that each process had. -packs names them.
func benchPack(l *lab) error {
	if l.packs == "" {
		fmt.Println("no packs were named: -packs a.pack,b/.git,... names packs, or repositories of one pack each")
	}
	for _, name := range strings.Split(l.packs, ",") {
		if name == "" {
			continue
		}
		p, err := findPack(name)
		if err != nil {
			return err
		}
		if err := l.onePack(p); err != nil {
			return err
		}
	}
	return l.thinPush()
}

// findPack returns the pack file that a name means.
func findPack(name string) (string, error) {
	if strings.HasSuffix(name, ".pack") {
		return filepath.Abs(name)
	}
	var all []string
	for _, at := range []string{"objects/pack", ".git/objects/pack"} {
		found, err := filepath.Glob(filepath.Join(name, at, "pack-*.pack"))
		if err != nil {
			return "", err
		}
		all = append(all, found...)
	}
	if len(all) != 1 {
		return "", fmt.Errorf("%s has %d packs: name one that ends in .pack", name, len(all))
	}
	return filepath.Abs(all[0])
}

// usage is what a process took.
type usage struct {
	wall, cpu time.Duration
	memory    int64 // bytes, the most that was resident
}

func (u usage) String() string {
	return fmt.Sprintf("%7.2f s wall %7.2f s cpu %6.0f MB", u.wall.Seconds(), u.cpu.Seconds(), float64(u.memory)/1e6)
}

// spent runs a process to its end. What it says on its standard output is returned.
func spent(dir string, stdin *os.File, env []string, name string, args ...string) (usage, string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdin, cmd.Env = dir, stdin, append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	t := time.Now()
	err := cmd.Run()
	u := usage{wall: time.Since(t)}
	if err != nil {
		return u, "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, errs.String())
	}
	u.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.memory = r.Maxrss << 10
	}
	return u, out.String(), nil
}

// side is one of those that are compared.
type side struct {
	name string
	run  func(dir string) (usage, string, error)
	all  []usage
}

func (l *lab) onePack(p string) error {
	st, err := os.Stat(p)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	tips, err := l.tips(p)
	if err != nil {
		return err
	}
	fed := func(dir string, env []string, name string, args ...string) (usage, string, error) {
		f, err := os.Open(p)
		if err != nil {
			return usage{}, "", err
		}
		defer f.Close()
		return spent(dir, f, env, name, args...)
	}
	peer := func(args ...string) func(string) (usage, string, error) {
		return func(dir string) (usage, string, error) {
			return fed(dir, nil, "git", append([]string{"-c", "core.bigFileThreshold=512m", "-c", "pack.writeReverseIndex=true", "index-pack", "--stdin", "--threads=2"}, args...)...)
		}
	}
	// Nothing else may look after what is written: the page cache is the same for all, and the disk's work is not measured.
	sides := []*side{
		{name: "corpus-git, all checks", run: func(dir string) (usage, string, error) { return fed(dir, nil, self, packChild, dir, tips, l.profile) }},
		{name: "git index-pack --threads=2", run: peer()},
		{name: "git index-pack --strict --threads=2", run: peer("--strict")},
	}
	fmt.Printf("-- %s, %.0f MB, load %s\n", filepath.Base(p), float64(st.Size())/1e6, load())
	var want string
	var wrote map[string]string
	var ratios [3][]float64
	for range rounds() {
		for i, s := range sides {
			dir := l.path(fmt.Sprintf("side-%d", i))
			if err := l.sh(l.dir, "git", "init", "-q", "--bare", dir); err != nil {
				return err
			}
			u, out, err := s.run(dir)
			if err != nil && i == 2 {
				fmt.Printf("%s does not take this pack: %.200s\n", s.name, err)
				sides = sides[:2]
				break
			}
			if err != nil {
				return err
			}
			s.all = append(s.all, u)
			ratios[i] = append(ratios[i], sides[0].all[len(sides[0].all)-1].wall.Seconds()/u.wall.Seconds())
			id := strings.TrimSpace(strings.TrimPrefix(strings.Fields(out)[len(strings.Fields(out))-1], "pack"))
			if want == "" {
				if want, wrote, err = l.checkFirst(p, dir, id); err != nil {
					return err
				}
			}
			if want != id {
				return fmt.Errorf("%s says that the pack is %s, and it is %s", s.name, id, want)
			}
			if i == 1 && len(s.all) == 1 {
				theirs, err := sums(dir, id)
				if err != nil {
					return err
				}
				if !maps.Equal(wrote, theirs) {
					return fmt.Errorf("what we wrote, %v, differs from what git wrote, %v", wrote, theirs)
				}
				fmt.Println("the same bytes as git's in .pack, .idx and .rev")
			}
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
	printSides(sides, ratios)
	return nil
}

// rounds returns how often each side is measured.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("BENCH_ROUNDS")); err == nil && n > 0 {
		return n
	}
	return packRounds
}

// checkFirst checks what the first side made of a pack: its name, the sums of its files, and by git fsck where that is asked for.
func (l *lab) checkFirst(p, dir, id string) (want string, wrote map[string]string, err error) {
	if want, err = checkPack(p, dir, id); err != nil {
		return "", nil, err
	}
	if wrote, err = sums(dir, id); err == nil && l.verify {
		err = l.fsck(p, dir, id)
	}
	return want, wrote, err
}

// printSides prints the medians.
func printSides(sides []*side, ratios [3][]float64) {
	for i, s := range sides {
		slices.SortFunc(s.all, func(a, b usage) int { return int(a.wall - b.wall) })
		slices.Sort(ratios[i])
		u := s.all[len(s.all)/2]
		fmt.Printf("%-38s %s", s.name, u)
		if i > 0 {
			o := sides[0].all[len(sides[0].all)/2]
			fmt.Printf("   corpus-git takes %.3f of its time and %.2f of its memory", ratios[i][len(ratios[i])/2], float64(o.memory)/float64(u.memory))
		}
		fmt.Println()
	}
}

// tips lists what the refs of the pack's repository point to. A repository that has not all that its refs need, such as a partial
// clone, has none: nobody could push that.
func (l *lab) tips(p string) (string, error) {
	repo := filepath.Dir(filepath.Dir(filepath.Dir(p)))
	if _, err := os.Stat(filepath.Join(repo, "HEAD")); err != nil {
		fmt.Printf("%s lies in no repository: connectivity is not checked\n", p)
		return "", nil
	}
	out := l.path("tips")
	script := `git rev-list --objects --all --missing=print | grep -c '^?' ; git for-each-ref --format='%(objectname)' | sort -u > "$0"`
	cmd := exec.Command("sh", "-c", script, out)
	cmd.Dir, cmd.Env = repo, l.env()
	n, err := cmd.Output()
	if err != nil {
		return "", err
	}
	if n := strings.TrimSpace(string(n)); n != "0" {
		fmt.Printf("%s: %s objects that its refs need are missing: connectivity is not checked\n", p, n)
		return "", nil
	}
	return out, nil
}

// checkPack compares the index that we wrote with that beside the pack, which git wrote.
func checkPack(p, dir, id string) (string, error) {
	for _, ext := range []string{".idx", ".rev"} {
		theirs, err := os.ReadFile(strings.TrimSuffix(p, ".pack") + ext)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		ours, err := os.ReadFile(filepath.Join(dir, "objects/pack/pack-"+id+ext))
		if err != nil {
			return "", err
		}
		if !bytes.Equal(ours, theirs) {
			return "", fmt.Errorf("our %s differs from git's", ext)
		}
	}
	return id, nil
}

// sums returns those of the three files of a pack.
func sums(dir, id string) (map[string]string, error) {
	out := map[string]string{}
	for _, ext := range []string{".pack", ".idx", ".rev"} {
		f, err := os.Open(filepath.Join(dir, "objects/pack/pack-"+id+ext))
		if err != nil {
			return nil, err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		_ = f.Close()
		if err != nil {
			return nil, err
		}
		out[ext] = fmt.Sprintf("%x", h.Sum(nil))
	}
	return out, nil
}

// fsck asks git whether what we wrote into dir is a good pack, and which of its objects are not. Complaints must be those about the pack p
// itself: old repositories hold what --strict does not like, and a partial clone has not everything.
func (l *lab) fsck(p, dir, id string) error {
	began := time.Now()
	if err := l.sh(dir, "git", "verify-pack", "objects/pack/pack-"+id+".idx"); err != nil {
		return err
	}
	verified := time.Since(began)
	say := func(dir string) ([]string, error) {
		cmd := exec.Command("git", "fsck", "--strict", "--full", "--no-dangling", "--no-progress")
		cmd.Dir, cmd.Env = dir, l.env()
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			return nil, err
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		slices.Sort(lines)
		lines = slices.DeleteFunc(lines, func(s string) bool { return s == "" || strings.HasPrefix(s, "notice: ") })
		if err != nil && len(lines) == 0 {
			return nil, fmt.Errorf("git fsck: %w", err)
		}
		return lines, nil
	}
	ours, err := say(dir)
	if err != nil {
		return err
	}
	fmt.Printf("git verify-pack: all right, in %.1f s; git fsck --strict, in %.1f s: %d complaints\n", verified.Seconds(), (time.Since(began) - verified).Seconds(), len(ours))
	if len(ours) == 0 {
		return nil
	}
	source := l.path("source.git")
	if err := l.sh(l.dir, "git", "init", "-q", "--bare", source); err != nil {
		return err
	}
	defer os.RemoveAll(source)
	for _, ext := range []string{".pack", ".idx"} {
		if err := os.Symlink(strings.TrimSuffix(p, ".pack")+ext, filepath.Join(source, "objects/pack", "pack-"+id+ext)); err != nil {
			return err
		}
	}
	theirs, err := say(source)
	if err != nil {
		return err
	}
	if !slices.Equal(ours, theirs) {
		return fmt.Errorf("git fsck says of what we wrote\n%s\nand of the source\n%s", strings.Join(ours, "\n"), strings.Join(theirs, "\n"))
	}
	// "error in tag 0123…: missingTaggerEntry: …", "missing blob 0123…"
	kinds, known := map[string]int{}, regexp.MustCompile(`^[^:]*: (\w+):`)
	for _, c := range ours {
		kind, _, _ := strings.Cut(c, " ")
		if m := known.FindStringSubmatch(c); m != nil {
			kind = m[1]
		}
		kinds[kind]++
	}
	fmt.Printf("the same complaints about the source: %v\n", kinds)
	return nil
}

// ingestOne is the child: it reads one pack from standard input, as a push into the repository dir does, and says its name.
// The file tips, if it is named, lists what refs are to point to.
func ingestOne(args []string) error {
	debug.SetGCPercent(50) // as cmd/corpus-git does
	dir, tips, profile := args[0], args[1], args[2]
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	db, err := store.Open(dir, store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	q, err := db.NewQuarantine("bench")
	if err != nil {
		return err
	}
	in, err := q.Ingest(context.Background(), bufio.NewReaderSize(os.Stdin, pktline.MaxLine), store.IngestOptions{Workers: 2, Limits: pack.Limits{PackBytes: -1}})
	if err != nil {
		return err
	}
	if tips != "" {
		data, err := os.ReadFile(tips)
		if err != nil {
			return err
		}
		var c store.Connect
		for line := range strings.Lines(string(data)) {
			c.Tips = append(c.Tips, plumbing.NewHash(strings.TrimSpace(line)))
		}
		if err := q.Connected(context.Background(), c); err != nil {
			return err
		}
	}
	for _, name := range []string{in.Pack, in.Rev, in.Idx} {
		if name == "" {
			continue
		}
		if err := os.Rename(name, filepath.Join(dir, "objects/pack", filepath.Base(name))); err != nil {
			return err
		}
	}
	fmt.Println(in.ID)
	return nil
}

// thinPush is the smallest push: a changed file, its folders and the commit, in a thin pack. Ours is a call in a server that runs;
// the peer is what receive-pack starts for it: git unpack-objects and git rev-list, in a quarantine as well.
func (l *lab) thinPush() error {
	src := l.path("thin")
	for i := range 1000 {
		if err := writeFile(filepath.Join(src, fmt.Sprintf("d%d", i%20), fmt.Sprintf("f%d", i)), fmt.Sprintf("file %d\n%s", i, strings.Repeat("some words of text\n", i%200)), 0o644); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "master"}, {"add", "-A"}, {"commit", "-qm", "first"}, {"gc", "-q"}} {
		if err := l.sh(src, "git", args...); err != nil {
			return err
		}
	}
	base := l.path("thin.git")
	if err := l.sh(l.dir, "git", "clone", "-q", "--bare", src, base); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(src, "d19/f999"), "file 999\n"+strings.Repeat("some words of text\n", 199)+"more\n", 0o644); err != nil {
		return err
	}
	if err := l.sh(src, "git", "commit", "-qam", "second"); err != nil {
		return err
	}
	out := func(in string, args ...string) ([]byte, error) {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env, cmd.Stdin = src, l.env(), strings.NewReader(in)
		return cmd.Output()
	}
	data, err := out("master\n^master~1\n", "pack-objects", "--thin", "--revs", "--stdout", "--delta-base-offset", "-q")
	if err != nil {
		return err
	}
	tips, err := out("", "rev-parse", "master", "master~1")
	if err != nil {
		return err
	}
	next, old, _ := strings.Cut(strings.TrimSpace(string(tips)), "\n")
	db, err := store.Open(base, store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	fmt.Printf("-- a thin pack of %d objects, %d bytes\n", data[11], len(data))
	n := 0
	ours := func() error {
		n++
		q, err := db.NewQuarantine(fmt.Sprintf("thin-%d", n))
		if err != nil {
			return err
		}
		defer func() { _ = q.Discard() }()
		if _, err := q.Ingest(context.Background(), bufio.NewReaderSize(bytes.NewReader(data), pktline.MaxLine), store.IngestOptions{Workers: 2}); err != nil {
			return err
		}
		return q.Connected(context.Background(), store.Connect{Tips: []plumbing.Hash{plumbing.NewHash(next)}, Refs: []plumbing.Hash{plumbing.NewHash(old)}})
	}
	peer := func() error {
		dir, err := os.MkdirTemp(l.dir, "quarantine-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		run := func(in io.Reader, args ...string) error {
			cmd := exec.Command("git", args...)
			cmd.Dir, cmd.Stdin = base, in
			cmd.Env = append(l.env(), "GIT_OBJECT_DIRECTORY="+dir, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+filepath.Join(base, "objects"), "GIT_QUARANTINE_PATH="+dir)
			msg, err := cmd.CombinedOutput()
			if err != nil {
				return fmt.Errorf("git %s: %w: %s", args[0], err, msg)
			}
			return nil
		}
		if err := run(bytes.NewReader(data), "unpack-objects", "-q", "--strict"); err != nil {
			return err
		}
		return run(strings.NewReader(next+"\n"), "rev-list", "--objects", "--stdin", "--not", "--all", "--quiet")
	}
	_, err = compare(thinRounds, func(int) error { return nil }, "corpus-git", ours, "git unpack-objects --strict + rev-list", peer)
	return err
}
