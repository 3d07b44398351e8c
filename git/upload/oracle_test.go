package upload

import (
	"bytes"
	"context"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/git/pktline"
)

// answer is what a server sent after its advertisement, up to the pack.
func answer(t *testing.T, out []byte) []string {
	t.Helper()
	r := pktline.NewReader(bytes.NewReader(out), pktline.Limits{})
	for k := pktline.Data; k != pktline.Flush; {
		var err error
		k, _, err = r.Line()
		require.NoError(t, err)
	}
	var said []string
	for {
		if b, err := r.Raw().Peek(4); err != nil || string(b) == "PACK" {
			return said
		}
		k, s, err := r.Line()
		switch {
		case err != nil:
			return append(said, err.Error())
		case k != pktline.Data:
			said = append(said, k.String())
		case s != "" && s[0] <= 3:
			return said // the side-band
		default:
			said = append(said, s)
		}
	}
}

// The same requests to git's own upload-pack and to ours get the same answers.
func TestAnswersAgreeWithGit(t *testing.T) {
	p := sample(t, 0)
	p.git(p.src, "config", "uploadpack.allowFilter", "true")
	p.git(p.src, "config", "uploadpack.allowReachableSHA1InWant", "true")
	rev := func(s string) string { return p.git(p.src, "rev-parse", s) }
	tip, side, old, tag, nowhere := rev("main"), rev("side"), rev("main~4"), rev("v1"), strings.Repeat("e", 40)
	caps := []string{"", " multi_ack", " multi_ack_detailed", " multi_ack_detailed no-done", " multi_ack_detailed side-band-64k thin-pack ofs-delta no-progress include-tag"}
	haves := [][]string{
		{"0000", "done"},
		{"0000", "have " + old, "done"},
		{"0000", "have " + old, "0000", "done"},
		{"0000", "have " + nowhere, "0000", "have " + old, "have " + nowhere, "0000", "done"},
		{"0000", "have " + old, "have " + old, "have " + side, "0000", "have " + tip, "0000", "done"},
		{"0000", "have " + tag, "have " + nowhere, "0000", "done"},
		{"shallow " + side, "deepen 1", "0000", "done"},
		{"deepen 2", "0000", "have " + old, "done"},
		{"shallow " + tip, "deepen 3", "0000", "have " + tip, "0000", "done"},
		{"shallow " + old, "deepen 2147483647", "0000", "have " + old, "done"},
		{"deepen-since 1700018000", "0000", "done"},
		{"deepen-not v1", "0000", "done"},
	}
	compare := func(version int, lines []string) {
		t.Helper()
		in := script(lines...)
		cmd := exec.Command("git", "upload-pack", "--strict", p.bare())
		cmd.Stdin = bytes.NewReader(in)
		cmd.Env = append(cmd.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_PROTOCOL=version="+strconv.Itoa(version))
		want, _ := cmd.Output()
		req := p.open()
		req.Version = version
		var got bytes.Buffer
		_ = Serve(context.Background(), req, bytes.NewReader(in), &got)
		require.ElementsMatch(t, answer(t, want), answer(t, got.Bytes()), "%q", lines)
		if !strings.Contains(strings.Join(lines, " "), "deepen") {
			require.Equal(t, answer(t, want), answer(t, got.Bytes()), "%q", lines)
		}
	}
	for _, c := range caps {
		for _, h := range haves {
			compare(0, append([]string{"want " + tip + c}, h...))
		}
	}
	compare(0, []string{"want " + tip, "want " + tag, "want " + old, "0000", "have " + side, "done"})
	compare(0, []string{"want " + nowhere, "0000", "done"})
	// git fetch --unshallow --tags wants only the tag that it lacks.
	compare(0, []string{"want " + old, "shallow " + tip, "deepen 2147483647", "0000", "have " + tip, "done"})
	compare(2, []string{"command=fetch", "object-format=sha1", "0001", "want " + old, "shallow " + tip, "deepen 2147483647", "have " + tip, "done", "0000", "0000"})
	for _, h := range haves {
		args := []string{"command=fetch", "object-format=sha1", "0001", "want " + tip, "thin-pack", "ofs-delta", "no-progress"}
		done := append([]string(nil), args...)
		for _, l := range h {
			if slices.Contains(done, l) {
				continue // git acknowledges twice what is sent twice
			}
			if l != "0000" {
				done = append(done, l)
			}
			if l != "0000" && l != "done" {
				args = append(args, l)
			}
		}
		compare(2, append(args, "0000", "0000"))
		compare(2, append(done, "0000", "0000"))
		compare(2, append(args, "wait-for-done", "0000", "0000"))
	}
	for _, ls := range [][]string{{}, {"peel"}, {"symrefs"}, {"peel", "symrefs", "unborn", "ref-prefix refs/tags/", "ref-prefix HEAD"}, {"ref-prefix nothing"}} {
		compare(2, append(append([]string{"command=ls-refs", "0001"}, ls...), "0000", "0000"))
	}
}

// boundaryLines are the packets about the client's boundary, byte for byte, with their lengths.
func boundaryLines(t *testing.T, out []byte) (found []string) {
	t.Helper()
	for len(out) >= 4 && string(out[:4]) != "PACK" {
		n, err := strconv.ParseUint(string(out[:4]), 16, 16)
		require.NoError(t, err)
		n = max(n, 4)
		if p := string(out[:n]); strings.HasPrefix(p[4:], "shallow ") || strings.HasPrefix(p[4:], "unshallow ") {
			found = append(found, p)
		}
		out = out[n:]
	}
	slices.Sort(found)
	return found
}

// libgit2 1.9 treats a line feed after a commit of the boundary as part of its name, and clones no shallow history: git itself sends none.
func TestBoundaryIsGitsToTheByte(t *testing.T) {
	p := sample(t, 0)
	rev := func(s string) string { return p.git(p.src, "rev-parse", s) }
	tip, old := rev("main"), rev("main~4")
	v2 := []string{"command=fetch", "object-format=sha1", "0001", "no-progress"}
	for version, scripts := range map[int][][]string{
		0: {
			{"want " + tip, "deepen 1", "0000", "done"},
			{"want " + tip, "shallow " + old, "deepen 2147483647", "0000", "have " + old, "0000", "done"},
			{"want " + tip, "shallow " + tip, "deepen 2", "0000", "have " + tip, "0000", "done"},
		},
		2: {
			append(slices.Clone(v2), "want "+tip, "deepen 1", "done", "0000"),
			append(slices.Clone(v2), "want "+tip, "shallow "+old, "deepen 2147483647", "have "+old, "done", "0000"),
			append(slices.Clone(v2), "want "+tip, "shallow "+tip, "deepen 2", "have "+tip, "done", "0000"),
		},
	} {
		for _, lines := range scripts {
			in := script(lines...)
			cmd := exec.Command("git", "upload-pack", "--strict", p.bare())
			cmd.Stdin = bytes.NewReader(in)
			cmd.Env = append(cmd.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_PROTOCOL=version="+strconv.Itoa(version))
			want, _ := cmd.Output()
			req := p.open()
			req.Version = version
			var got bytes.Buffer
			_ = Serve(context.Background(), req, bytes.NewReader(in), &got)
			require.NotEmpty(t, boundaryLines(t, want), lines)
			require.Equal(t, boundaryLines(t, want), boundaryLines(t, got.Bytes()), lines)
		}
	}
}
