// Package testreports reads the reports of tests that a step left: the files *.xml in the folder that $CORPUS_TEST_REPORTS names, in JUnit's form.
//
// It owns the limits of that folder, and how it is read: what is in it was made by the project's user, so links are not followed out of it and nothing is waited for. It never
// fails a step: what cannot be read is said in the summary. The folder itself is procedures/outfile's, which makes it before each step and removes it after.
package testreports

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"corpus-git/project/junit"
)

// What is read of one step: how many entries its folder may have, how many reports, how many bytes of them.
const (
	maxEntries = 10_000
	maxFiles   = 500
	maxBytes   = 64 << 20
)

// Read adds up the reports in a folder, in the order of their names; nil if there are none. show hides the secrets of a text.
func Read(dir, step string, show func(string) string) *junit.Summary {
	out := &junit.Summary{Step: step}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil // the step removed it: so it has none
	}
	defer func() { _ = root.Close() }()
	names, err := reports(root)
	if err != nil {
		out.Problem("the folder", err)
	}
	left := maxBytes
	for i, name := range names {
		if i == maxFiles || left <= 0 {
			out.Problem("the folder", fmt.Errorf("only %d of %d reports were read, because of the limit", i, len(names)))
			break
		}
		src, err := read(root, name)
		if err != nil {
			out.Problem(show(name), err)
			continue
		}
		left -= len(src)
		_ = out.Add(name, src, show) // the summary says it
	}
	if out.Files == 0 && len(out.Problems) == 0 {
		return nil
	}
	return out
}

// reports returns the names of the files in the folder that may be reports.
func reports(root *os.Root) ([]string, error) {
	d, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	names, err := d.Readdirnames(maxEntries)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(strings.ToLower(n), ".xml") })
	slices.Sort(names)
	return names, err
}

// read reads a regular file, without waiting as a pipe would have one do.
func read(root *os.Root, name string) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, cause(err)
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return nil, cause(err)
	}
	if !st.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	src, err := io.ReadAll(io.LimitReader(f, junit.MaxBytes+1))
	return src, cause(err)
}

// cause is an error without the path, which is known.
func cause(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
