package handover

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"corpus-git/git/pktline"
	"corpus-git/project"
)

// Server conducts one conversation with the server, as a client of git-receive-pack: it reads from in and writes to out until the server
// has ended, and returns the exit status.
type Server func(ctx context.Context, in io.Reader, out io.Writer) (exit int, err error)

// Pack writes a pack with all objects that are reachable from tips and not from have.
type Pack func(ctx context.Context, tips, have []string, w io.Writer) error

// maxLines and maxBytes limit what either side sends before the pack.
const (
	maxLines = 1_000_000
	maxBytes = 256 << 20
)

// push is what git's receive-pack requests from the hook proc-receive.
type push struct {
	atomic, options bool
	commands        []command
	given           []string // push options
}

type command struct{ old, new, ref string }

// ProcReceive is the hook proc-receive: in and out are the hook's, progress is shown to the pusher. A push that the server refused is not
// an error: git receives the reason for each ref. Source: githooks(5), "proc-receive".
func ProcReceive(ctx context.Context, in io.Reader, out, progress io.Writer, server Server, pack Pack) error {
	p, err := readPush(pktline.NewReader(in, pktline.Limits{Lines: maxLines, Bytes: maxBytes}), out)
	if err != nil {
		return fmt.Errorf("git's receive-pack: %w", err)
	}
	results, err := p.deliver(ctx, progress, server, pack)
	if err != nil {
		fmt.Fprintf(progress, "error: %s\n", err)
	}
	w := pktline.NewWriter(out)
	for _, c := range p.commands {
		r, ok := results[c.ref]
		switch {
		case !ok:
			r = "ng " + c.ref + " no response from the server"
		case r == "":
			r = "ok " + c.ref
		default:
			r = "ng " + c.ref + " " + r
		}
		if err := w.Linef("%s", r); err != nil {
			return err
		}
	}
	return w.Flush()
}

// readPush reads the commands, and answers the greeting.
func readPush(r *pktline.Reader, out io.Writer) (*push, error) {
	p := &push{}
	err := section(r, func(n int, line string) error {
		version, caps, _ := strings.Cut(line, "\x00")
		if n > 0 || version != "version=1" {
			return fmt.Errorf("%.60q instead of version=1", line)
		}
		for c := range strings.FieldsSeq(caps) {
			p.atomic, p.options = p.atomic || c == "atomic", p.options || c == "push-options"
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	w := pktline.NewWriter(out)
	greeting := "version=1\x00"
	if p.atomic {
		greeting += " atomic"
	}
	if p.options {
		greeting += " push-options"
	}
	if err := errors.Join(w.Linef("%s", greeting), w.Flush()); err != nil {
		return nil, err
	}
	err = section(r, func(_ int, line string) error {
		f := strings.SplitN(line, " ", 3)
		if len(f) != 3 {
			return fmt.Errorf("%.60q is not a command", line)
		}
		p.commands = append(p.commands, command{f[0], f[1], f[2]})
		return nil
	})
	if err == nil && p.options {
		err = section(r, func(_ int, line string) error { p.given = append(p.given, line); return nil })
	}
	return p, err
}

// section reads lines up to a flush-pkt.
func section(r *pktline.Reader, f func(n int, line string) error) error {
	for n := 0; ; n++ {
		k, line, err := r.Line()
		switch {
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case k == pktline.Flush:
			return nil
		case k != pktline.Data:
			return fmt.Errorf("%w: a %s in a list", pktline.ErrSyntax, k)
		}
		if err := f(n, line); err != nil {
			return err
		}
	}
}

// deliver conducts the conversation and returns the report: "" for a ref that was updated, otherwise the reason.
func (p *push) deliver(ctx context.Context, progress io.Writer, server Server, pack Pack) (map[string]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sin, toServer := io.Pipe()
	fromServer, sout := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := server(ctx, sin, sout)
		_ = sin.Close() // nothing reads what is still being sent
		_ = sout.Close()
		ended <- err
	}()
	defer func() {
		_ = fromServer.Close()
		_ = toServer.Close()
	}()
	results, err := p.converse(ctx, fromServer, toServer, progress, pack)
	_ = toServer.Close()
	if err != nil {
		cancel()
		_ = fromServer.Close()
		// The server's own error is the cause.
		if serr := <-ended; serr != nil {
			err = serr
		}
		return results, err
	}
	_, _ = io.Copy(io.Discard, fromServer)
	return results, <-ended
}

func (p *push) converse(ctx context.Context, from io.Reader, to io.Writer, progress io.Writer, pack Pack) (map[string]string, error) {
	r := pktline.NewReader(from, pktline.Limits{Lines: maxLines, Bytes: maxBytes})
	var have []string
	err := section(r, func(_ int, line string) error {
		ref, _, _ := strings.Cut(line, "\x00")
		if id, _, ok := strings.Cut(ref, " "); ok && id != project.ZeroCommit {
			have = append(have, id)
		}
		return nil
	})
	if err != nil {
		return nil, notTaken(err)
	}
	bw := bufio.NewWriterSize(to, 64<<10)
	if err := p.send(pktline.NewWriter(bw)); err != nil {
		return nil, err
	}
	var tips []string
	for _, c := range p.commands {
		if c.new != project.ZeroCommit {
			tips = append(tips, c.new)
		}
	}
	sent := make(chan error, 1)
	go func() {
		var err error
		if len(tips) > 0 {
			err = pack(ctx, tips, have, bw)
		}
		sent <- errors.Join(err, bw.Flush())
	}()
	band := pktline.NewDemux(r)
	band.Progress = func(b []byte) { _, _ = progress.Write(b) }
	r.Reset(pktline.Limits{}) // the server's own words, for as long as a deployment takes
	results, err := report(pktline.NewReader(band, pktline.Limits{Lines: maxLines, Bytes: maxBytes}))
	if err == nil {
		_, err = io.Copy(io.Discard, band)
	}
	if err != nil {
		select {
		case serr := <-sent: // the server gave up because the pack could not be made
			err = errors.Join(serr, err)
		default:
		}
	}
	return results, err
}

// notTaken returns the reason why the server does not begin.
func notTaken(err error) error {
	var line *pktline.ErrorLine
	if errors.As(err, &line) {
		return errors.New(line.Text)
	}
	return fmt.Errorf("the server refused the push: %w", err)
}

func (p *push) send(w *pktline.Writer) error {
	caps := "\x00report-status side-band-64k ofs-delta agent=git-hook"
	if p.atomic {
		caps += " atomic"
	}
	if p.options {
		caps += " push-options"
	}
	for _, c := range p.commands {
		if err := w.Linef("%s %s %s%s", c.old, c.new, c.ref, caps); err != nil {
			return err
		}
		caps = ""
	}
	if err := w.Flush(); err != nil || !p.options {
		return err
	}
	for _, o := range p.given {
		if err := w.Linef("%s", o); err != nil {
			return err
		}
	}
	return w.Flush()
}

// report reads the server's report (gitprotocol-pack(5), "Report Status").
func report(r *pktline.Reader) (map[string]string, error) {
	out := map[string]string{}
	return out, section(r, func(_ int, line string) error {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "ok":
			out[rest] = ""
		case "ng":
			ref, why, _ := strings.Cut(rest, " ")
			if why == "" {
				why = "rejected"
			}
			out[ref] = why
		}
		return nil
	})
}
