package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"

	"corpus-git/git/pack"
	"corpus-git/git/store"
)

// printGitSettings prints the version of git and those of its settings that a checkout's time depends on.
func (l *lab) printGitSettings(bare string) error {
	version, err := exec.Command("git", "version").Output()
	if err != nil {
		return err
	}
	var set []string
	for _, key := range []string{"checkout.workers", "core.fsync", "core.fsyncMethod", "core.preloadIndex", "core.splitIndex", "core.untrackedCache", "core.fsmonitor", "feature.manyFiles", "index.threads", "index.version"} {
		value := "git's own"
		cmd := exec.Command("git", "config", "--get", key)
		cmd.Dir, cmd.Env = bare, l.env()
		if out, err := cmd.Output(); err == nil {
			value = strings.TrimSpace(string(out))
		}
		set = append(set, key+": "+value)
	}
	fmt.Printf("%s; %s\n", strings.TrimSpace(string(version)), strings.Join(set, ", "))
	return nil
}

// storedFile is a file of a commit, and where its content is.
type storedFile struct {
	path string
	p    *pack.Pack
	e    pack.Entry
}

// storedFiles lists the files of a commit, folder by folder, all in packs and none of them a delta.
func (l *lab) storedFiles(bare, commit string, db *store.DB) (out []storedFile, err error) {
	cmd := exec.Command("git", "ls-tree", "-r", "-z", commit)
	cmd.Dir, cmd.Env = bare, l.env()
	list, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		head, path, _ := strings.Cut(line, "\t")
		name := plumbing.NewHash(head[strings.LastIndexByte(head, ' ')+1:])
		p, off, ok, err := db.Locate(name)
		if err != nil || !ok {
			return nil, fmt.Errorf("%s is in no pack: %w", name, err)
		}
		e, err := p.Entry(off)
		if err != nil || e.Delta() {
			return nil, fmt.Errorf("%s is not stored whole: %w", name, err)
		}
		out = append(out, storedFile{path, p, e})
	}
	return out, nil
}

// makeFiles does the least that a checkout can do: each worker makes a folder, opens it, and makes its files in it, of zeros or of what is inflated from where it is
// known to be. No object is looked for, no tree read, no file looked at, no index written.
func makeFiles(dir string, files []storedFile, workers int, inflate bool) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	var folders [][]storedFile
	for n := 0; len(files) > 0; files = files[n:] {
		for n = 1; n < len(files) && filepath.Dir(files[n].path) == filepath.Dir(files[0].path); n++ {
		}
		folders = append(folders, files[:n])
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, workers)
	for w := range workers {
		wg.Go(func() {
			m := maker{root: root, inflate: inflate}
			for i := next.Add(1) - 1; i < int64(len(folders)) && errs[w] == nil; i = next.Add(1) - 1 {
				errs[w] = m.folder(folders[i])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// maker is a worker of makeFiles.
type maker struct {
	root    int
	inflate bool
	window  pack.Window
	data    []byte
}

func (m *maker) folder(files []storedFile) error {
	at := filepath.Dir(files[0].path)
	if err := unix.Mkdirat(m.root, filepath.Dir(at), 0o755); err != nil && err != unix.EEXIST {
		return err
	}
	if err := unix.Mkdirat(m.root, at, 0o755); err != nil {
		return err
	}
	fd, err := unix.Openat(m.root, at, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for _, f := range files {
		if m.inflate {
			if m.data, err = m.window.Inflate(f.p, f.e, m.data); err != nil {
				return err
			}
		} else if int64(len(m.data)) < f.e.Size {
			m.data = make([]byte, f.e.Size)
		}
		w, err := unix.Openat(fd, filepath.Base(f.path), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
		if err != nil {
			return err
		}
		_, err = unix.Write(w, m.data[:f.e.Size])
		if err := errors.Join(err, unix.Close(w)); err != nil {
			return err
		}
	}
	return nil
}
