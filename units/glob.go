package units

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxNames limits how many names of one folder are read: the project's programs can fill their folders.
const maxNames = 100_000

// matchingFiles is filepath.Glob with at most maxNames for each element, and without blocking on a fifo in place of a folder. What can't be
// listed has no matches.
func matchingFiles(ctx context.Context, glob string) ([]string, error) {
	found := []string{""}
	if strings.HasPrefix(glob, "/") {
		found[0] = "/"
	}
	for el := range strings.SplitSeq(strings.Trim(glob, "/"), "/") {
		if _, err := filepath.Match(el, ""); err != nil {
			return nil, err
		}
		var next []string
		for _, dir := range found {
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			if len(next) >= maxNames {
				break
			}
			for _, name := range namesLike(dir, el) {
				next = append(next, filepath.Join(dir, name))
			}
		}
		found = next
	}
	return slices.DeleteFunc(found, func(path string) bool {
		_, err := os.Lstat(path)
		return errors.Is(err, fs.ErrNotExist)
	}), nil
}

// namesLike returns the names in a folder that match one element of a glob.
func namesLike(dir, el string) (out []string) {
	if !strings.ContainsAny(el, `*?[\`) {
		return []string{el}
	}
	if dir == "" {
		dir = "."
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	for seen := 0; seen < maxNames; {
		names, err := f.Readdirnames(1000)
		for _, n := range names {
			if ok, _ := filepath.Match(el, n); ok {
				out = append(out, n)
			}
		}
		seen += len(names)
		if err != nil { // including its end, io.EOF
			break
		}
	}
	slices.Sort(out)
	return out
}
