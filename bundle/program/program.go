// Package program is the format in which corpus-git itself is sent to another machine, signed by the server as bundles are.
//
// It owns the format: a line that identifies it, a manifest as a line of JSON, the line of its signature, and the program, compressed by
// gzip. It never runs what it reads. The caller decides whom to trust.
//
// A crash leaves nothing here: Read writes to its argument.
package program

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/klauspost/compress/gzip"
	"golang.org/x/crypto/ssh"

	"corpus-git/bundle"
	"corpus-git/internal/fault"
)

const (
	magic  = "corpus-git program 1\n"
	signed = "corpus-git program manifest\x00"
	// maxManifest limits the manifest's line, maxProgram the program, in bytes.
	maxManifest = 16 << 10
	maxProgram  = 1 << 30
)

// Manifest describes a program.
type Manifest struct {
	// SHA256 is in hexadecimal, Bytes its length.
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	// System is GOOS/GOARCH. Write sets it to this machine's if it is "".
	System string `json:"system"`
}

// System returns Manifest.System for an architecture; "" is this machine's.
func System(arch string) string { return runtime.GOOS + "/" + cmp.Or(arch, runtime.GOARCH) }

// Write signs and writes a program.
func Write(w io.Writer, m Manifest, in io.Reader, signer ssh.Signer) error {
	m.System = cmp.Or(m.System, System(""))
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	sig, err := bundle.Sign(signed, line, signer)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "%s%s\n%s\n", magic, line, sig); err != nil {
		return err
	}
	zw, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if _, err := io.Copy(zw, in); err != nil {
		return err
	}
	return zw.Close()
}

// Read verifies the signature of a program, and writes it to out. trusted returns an error for a key to refuse. It reads to the end of the
// program and no further. After an error the content of out must not be run.
func Read(in *bufio.Reader, trusted func(ssh.PublicKey) error, out io.Writer) (m Manifest, err error) {
	bad := func(format string, args ...any) (Manifest, error) {
		return m, fault.New(fault.Refused, "", "the program: "+format, args...)
	}
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(in, head); err != nil || string(head) != magic {
		return bad("this corpus-git does not read what was sent")
	}
	line, err := bundle.ReadLine(in, maxManifest)
	if err != nil {
		return m, err
	}
	sig, err := bundle.ReadLine(in, bundle.MaxSignature)
	if err != nil {
		return m, err
	}
	key, err := bundle.Verify(signed, line, sig)
	if err == nil {
		err = trusted(key)
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return bad("%w", err)
	}
	if want := System(""); m.System != want {
		return bad("it is for %s, and this machine is %s", m.System, want)
	}
	if m.Bytes <= 0 || m.Bytes > maxProgram {
		return bad("%d bytes", m.Bytes)
	}
	zr, err := gzip.NewReader(in)
	if err != nil {
		return bad("%w", err)
	}
	zr.Multistream(false) // what follows is the next request's
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, sum), io.LimitReader(zr, m.Bytes+1))
	if err != nil {
		return bad("%w", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); n != m.Bytes || got != m.SHA256 {
		return bad("it arrived damaged: %d bytes, SHA-256 %s", n, got)
	}
	return m, nil
}
