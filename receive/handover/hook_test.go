package handover_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/git/pktline"
	"corpus-git/project"
	"corpus-git/receive/handover"
)

// asked is what git's receive-pack sends.
func asked(caps string, commands, options []string) io.Reader {
	var b bytes.Buffer
	w := pktline.NewWriter(&b)
	_ = w.Linef("version=1\x00%s", caps)
	_ = w.Flush()
	for _, c := range commands {
		_ = w.Linef("%s", c)
	}
	_ = w.Flush()
	if strings.Contains(caps, "push-options") {
		for _, o := range options {
			_ = w.Linef("%s", o)
		}
		_ = w.Flush()
	}
	return &b
}

// answered returns the results that git receives.
func answered(t *testing.T, out []byte) (lines []string) {
	t.Helper()
	r := pktline.NewReader(bytes.NewReader(out), pktline.Limits{})
	for sections := 0; sections < 2; {
		k, line, err := r.Line()
		require.NoError(t, err)
		switch {
		case k == pktline.Flush:
			sections++
		case sections == 1:
			lines = append(lines, line)
		}
	}
	return lines
}

var (
	one = strings.Repeat("1", 40)
	two = strings.Repeat("2", 40)
)

func noPack(_ context.Context, _, _ []string, w io.Writer) error {
	_, err := io.WriteString(w, "PACK")
	return err
}

func TestReportIsHandedOn(t *testing.T) {
	var got bytes.Buffer
	server := func(_ context.Context, in io.Reader, out io.Writer) (int, error) {
		w := pktline.NewWriter(out)
		_ = w.Linef("%s refs/heads/master\x00report-status", one)
		_ = w.Flush()
		for r, flushes := pktline.NewReader(in, pktline.Limits{}), 0; flushes < 2; {
			k, line, err := r.Line()
			if err != nil {
				return 1, err
			}
			if k == pktline.Flush {
				flushes++
			}
			got.WriteString(line + "\n")
		}
		m := pktline.NewMux(out, pktline.SideBand64k)
		_, _ = m.Send(pktline.BandProgress, []byte("-----> app\n"))
		var b bytes.Buffer
		r := pktline.NewWriter(&b)
		_ = r.Linef("unpack ok")
		_ = r.Linef("ok refs/heads/master")
		_ = r.Linef("ng refs/tags/a b no, never")
		_ = r.Flush()
		_, _ = m.Send(pktline.BandData, b.Bytes())
		_ = m.Close()
		return 0, nil
	}
	var out, progress bytes.Buffer
	in := asked("push-options atomic", []string{one + " " + two + " refs/heads/master", one + " " + project.ZeroCommit + " refs/tags/a", one + " " + two + " refs/notes/x"}, []string{"verbose"})
	require.NoError(t, handover.ProcReceive(t.Context(), in, &out, &progress, server, noPack))
	require.Equal(t, []string{"ok refs/heads/master", "ng refs/tags/a b no, never", "ng refs/notes/x no response from the server"}, answered(t, out.Bytes()))
	require.Equal(t, "-----> app\n", progress.String())
	require.Contains(t, got.String(), "refs/heads/master\x00report-status side-band-64k ofs-delta agent=git-hook atomic push-options")
	require.Contains(t, got.String(), "verbose")
}

// Whatever happens to the server, git is told that no ref was moved: without an answer it would assume that the hook left
// the refs to it.
func TestServerThatDoesNotAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		server handover.Server
		want   string
	}{
		"none": {func(context.Context, io.Reader, io.Writer) (int, error) { return 0, errors.New("no server is running") }, "no server is running"},
		"refuses": {func(_ context.Context, _ io.Reader, out io.Writer) (int, error) {
			return 3, pktline.NewWriter(out).Errorf("not you")
		}, "not you"},
		"dies": {func(_ context.Context, in io.Reader, out io.Writer) (int, error) {
			_ = pktline.NewWriter(out).Flush()
			_, _ = io.ReadFull(in, make([]byte, 10))
			return 0, errors.New("the server went away")
		}, "the server went away"},
	} {
		var out, progress bytes.Buffer
		in := asked("", []string{one + " " + two + " refs/heads/master"}, nil)
		require.NoError(t, handover.ProcReceive(t.Context(), in, &out, &progress, c.server, noPack), name)
		require.Equal(t, []string{"ng refs/heads/master no response from the server"}, answered(t, out.Bytes()), name)
		require.Contains(t, progress.String(), c.want, name)
	}
}

func TestWhatIsNoRequest(t *testing.T) {
	for _, in := range []string{"", "0000", "000eversion=2\n0000", "0010version=1\x00\n", "garbage"} {
		var out bytes.Buffer
		require.Error(t, handover.ProcReceive(t.Context(), strings.NewReader(in), &out, io.Discard, nil, nil), in)
	}
}
