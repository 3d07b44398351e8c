// Package testreports reads the test reports that a step left: the files *.xml, in JUnit's format, in the folder named by $CORPUS_TEST_REPORTS.
//
// It owns the limits of that folder, and how it is read: its content was made by the project's user, so links are not followed out of it and reading never blocks. It never
// fails a step: files that cannot be read are listed in the summary. The folder itself belongs to procedures/outfile, which creates it before each step and removes it
// afterwards.
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

// Read adds up the reports in a folder, in the order of their names; nil if there are none. show hides the secrets in a text.
func Read(dir, step string, show func(string) string) *junit.Summary {
	out := &junit.Summary{Step: step}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil // the step removed the folder, so it has no reports
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
		_ = out.Add(name, src, show) // the summary has the error
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

// read reads a regular file, without blocking, as reading a pipe would.
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

// cause returns an error without its path, which is already known.
func cause(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
