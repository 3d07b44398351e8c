package checks

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"

	"corpus-git/internal/quantity"
	"corpus-git/project"
)

// wrong is an answer that differs from the expected one.
type wrong string

func (w wrong) Error() string { return string(w) }

func wrongf(format string, args ...any) error { return wrong(fmt.Sprintf(format, args...)) }

// reason formats an error in one line, without what Go adds to errors of the system.
func (r Runner) reason(ctx context.Context, c project.Check, err error) string {
	var w wrong
	if errors.As(err, &w) {
		return string(w)
	}
	if ctx.Err() == context.DeadlineExceeded {
		return "no answer within " + quantity.FormatDuration(c.Timeout)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		if dns.IsNotFound {
			return fmt.Sprintf("%s is not known to the name servers", dns.Name)
		}
		return fmt.Sprintf("the name of %s could not be looked up: %s", dns.Name, dns.Err)
	}
	var op *net.OpError
	if errors.As(err, &op) {
		var no syscall.Errno
		if errors.As(op.Err, &no) {
			if op.Op == "dial" && op.Addr != nil {
				return fmt.Sprintf("connect to %s: %s", op.Addr, no)
			}
			return no.Error()
		}
		err = op.Err
	}
	var path *os.PathError
	if errors.As(err, &path) {
		return fmt.Sprintf("%s: %s", path.Path, path.Err)
	}
	var cert *tls.CertificateVerificationError
	if errors.As(err, &cert) {
		return "the certificate is not valid: " + strings.TrimPrefix(cert.Err.Error(), "x509: ")
	}
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "net/http: "), "HTTP/1.x transport connection broken: ")
	line, _, _ := strings.Cut(r.hidden(strings.TrimPrefix(text, "net/http: ")), "\n")
	return line
}

// hidden returns text as it may be shown.
func (r Runner) hidden(text string) string {
	if r.Hide == nil {
		return text
	}
	return r.Hide(text)
}

const (
	// maxAnswer is how much of an answer is read.
	maxAnswer = 1 << 20
	// shownLines and shownBytes limit what is shown of a failure's answer.
	shownLines = 10
	shownBytes = 200
)

// firstLines returns the first non-empty lines of an answer, as far as they are text.
func (r Runner) firstLines(answer []byte) []string {
	if bytes.IndexByte(answer[:min(len(answer), 4096)], 0) >= 0 {
		return []string{fmt.Sprintf("(%d bytes that are not text)", len(answer))}
	}
	var out []string
	for line := range bytes.Lines([]byte(r.hidden(string(answer)))) {
		line = bytes.TrimRight(line, " \t\r\n")
		if len(line) == 0 {
			continue
		}
		if len(out) == shownLines {
			return append(out, "...")
		}
		if len(line) > shownBytes {
			line = line[:shownBytes]
			for len(line) > 0 && !utf8.Valid(line[max(0, len(line)-utf8.UTFMax):]) && len(line) > shownBytes-utf8.UTFMax {
				line = line[:len(line)-1]
			}
			line = append(line[:len(line):len(line)], "..."...)
		}
		out = append(out, strings.ToValidUTF8(string(line), "?"))
	}
	return out
}
