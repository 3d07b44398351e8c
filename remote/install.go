package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"

	"corpus-git/bundle/program"
)

// machine returns the name of uname(1) for one of Go's architectures.
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

// runsOn reports whether a program for one of Go's architectures is for a machine with this output of uname -s and -m.
func runsOn(goarch, on string) bool {
	return on == "Linux "+machine(goarch) || goarch == "arm" && strings.HasPrefix(on, "Linux armv")
}

// needs ends with the names of those programs that the scripts below need, and the machine lacks.
const needs = `m=; for t in chmod cut gzip mkdir mv rm sha256sum sync uname wc; do command -v $t >/dev/null 2>&1 || m="$m $t"; done; ` +
	`test -z "$m" || { echo "error: programs that this login needs are not installed, or not in its PATH:$m" >&2; echo "hint: Debian has them in coreutils and gzip, busybox has all of them" >&2; exit 3; }; `

// begin runs the program if it is there, and reports the type of machine otherwise: the program was verified before it got its name.
const begin = `f=${XDG_CACHE_HOME:-$HOME/.cache}/corpus-git/%[1]s/corpus-git; if test -f "$f" && test "$(wc -c <"$f")" -eq %[2]d; then test -x "$f" || chmod 700 "$f"; ` +
	`test -x "$f" || { echo "error: the filesystem of $f does not run programs: it is mounted with noexec" >&2; echo "hint: set XDG_CACHE_HOME of this login to a directory on another one" >&2; exit 3; }; ` +
	`echo "program $f"; exec "$f" %[3]s; fi; ` + needs + `echo "missing $(uname -s) $(uname -m)"`

// verify reports whether the program that did not respond is what was copied. A damaged one is removed, and missing.
const verify = needs + `f=${XDG_CACHE_HOME:-$HOME/.cache}/corpus-git/%[1]s/corpus-git; if test "$(sha256sum <"$f" | cut -c1-64)" = %[1]s; then echo intact; else rm -f "$f" && echo "missing $(uname -s) $(uname -m)"; fi`

// store reads the program from standard input, and renames it when it is complete and on the disk.
const store = `umask 077; d=${XDG_CACHE_HOME:-$HOME/.cache}/corpus-git/%[1]s; m=$(mkdir -p "$d" 2>&1) || ` +
	`{ echo "error: no directory for the program: $m" >&2; echo "hint: give this login a home, or set its XDG_CACHE_HOME" >&2; exit 3; }; ` +
	`t=$d/.new.$$; trap 'rm -f "$t"' EXIT; m=$(gzip -dc 2>&1 >"$t") || { set -f; echo "error: the program was not copied to $d:" $m >&2; case $m in *"No space left"*|*"uota exceeded"*) echo "hint: free some space there, and try again" >&2; exit 4;; esac; exit 1; }; ` +
	`test "$(sha256sum <"$t" | cut -c1-64)" = %[1]s || { echo "error: the program arrived damaged" >&2; exit 4; }; chmod 700 "$t" && sync "$t" && mv "$t" "$d/corpus-git" && sync "$d"`

// Release is a program that is copied to other machines.
type Release struct {
	// Path is where it is on this machine.
	Path string
	// Sum is its SHA-256 in hex, Size its length in bytes.
	Sum  string
	Size int64
	// Arch is the GOARCH that it is for, "" for this machine's.
	Arch string
}

// ReadRelease reads a program to its end.
func ReadRelease(path string) (r Release, err error) {
	f, err := os.Open(path)
	if err != nil {
		return r, err
	}
	defer f.Close()
	r.Path = path
	if r.Arch, err = program.Architecture(f); err != nil {
		return r, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return r, err
	}
	h := sha256.New()
	r.Size, err = io.Copy(h, f)
	r.Sum = hex.EncodeToString(h.Sum(nil))
	return r, err
}

// Install copies a program there. on is the output of uname -s and -m; another type of machine than the program is for is fault.Refused. sent is how
// many bytes were sent.
func (h *Host) Install(ctx context.Context, program Release, on string) (sent int64, err error) {
	if err := program.fits(h, on); err != nil {
		return 0, err
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
