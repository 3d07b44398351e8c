package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/klauspost/compress/gzip"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
)

// machines maps Go's names of architectures to those of uname(1) if they differ.
func machine(goarch string) string {
	switch goarch {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	case "386":
		return "i686"
	}
	return goarch
}

// begin runs the program if it is there, and reports the type of machine otherwise: the program was verified before it got its name.
const begin = `f=${XDG_CACHE_HOME:-$HOME/.cache}/corpus-git/%[1]s/corpus-git; if test -x "$f" && test "$(wc -c <"$f")" -eq %[2]d; then echo "program $f"; exec "$f" %[3]s; fi; echo "missing $(uname -s) $(uname -m)"`

// store reads the program from standard input, and renames it when it is complete.
const store = `umask 077; d=${XDG_CACHE_HOME:-$HOME/.cache}/corpus-git; mkdir -p "$d/%[1]s" || exit; t=$d/%[1]s/.new.$$; trap 'rm -f "$t"' EXIT; gzip -dc >"$t" || exit; ` +
	`test "$(sha256sum <"$t" | cut -c1-64)" = %[1]s || { echo "it arrived damaged" >&2; exit 4; }; chmod 700 "$t" && mv "$t" "$d/%[1]s/corpus-git"`

// Release is a program that is copied to other machines.
type Release struct {
	// Path is where it is on this machine.
	Path string
	// Sum is its SHA-256 in hex, Size its length in bytes.
	Sum  string
	Size int64
}

// ReadRelease reads a program to its end.
func ReadRelease(path string) (Release, error) {
	sum, size, err := digest(path)
	return Release{path, sum, size}, err
}

// Install copies a program there. on is the output of uname -s and -m; another type of machine than this one is fault.Refused. sent is how
// many bytes were sent.
func (h *Host) Install(ctx context.Context, program Release, on string) (sent int64, err error) {
	if want := "Linux " + machine(runtime.GOARCH); on != want {
		return 0, fault.New(fault.Refused, "", "%s is %s, and this program is for %s", printable.Text(h.Target), printable.Text(on), want).
			WithHint("--program FILE  names a corpus-git for that machine, where its name is the same")
	}
	f, err := os.Open(program.Path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r, w := io.Pipe()
	count := &Counter{W: w}
	go func() {
		zw, err := gzip.NewWriterLevel(count, gzip.BestSpeed)
		if err == nil {
			_, err = io.Copy(zw, f)
		}
		if err == nil {
			err = zw.Close()
		}
		w.CloseWithError(err)
	}()
	defer r.Close()
	if _, err := h.output(ctx, []string{"sh", "-c", fmt.Sprintf(store, program.Sum)}, r); err != nil {
		return 0, err
	}
	return count.N, nil
}

// Counter counts what is written to W.
type Counter struct {
	W io.Writer
	N int64
}

// Write implements io.Writer.
func (c *Counter) Write(p []byte) (int, error) {
	n, err := c.W.Write(p)
	c.N += int64(n)
	return n, err
}

func digest(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), size, err
}
