package upload

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/git/pktline"
)

// outcome is everything that a server sent after its advertisement, in a form that two servers share: the lines, the number of objects of a pack, and how
// it ended. The text of an error is specific to each server.
func outcome(t *testing.T, out []byte, stateless, failed bool) []string {
	t.Helper()
	r := pktline.NewReader(bytes.NewReader(out), pktline.Limits{})
	for k := pktline.Data; !stateless && k != pktline.Flush; {
		var err error
		if k, _, err = r.Line(); err != nil {
			break
		}
	}
	var said []string
	pack, banded := []byte(nil), false
	for {
		if b, err := r.Raw().Peek(4); err == nil && string(b) == "PACK" {
			pack, _ = io.ReadAll(r.Raw())
			break
		}
		k, p, err := r.Next()
		if err != nil {
			break
		}
		switch {
		case k != pktline.Data:
			said = append(said, k.String())
		case len(p) > 0 && p[0] == 1:
			pack, banded = append(pack, p[1:]...), true
		case len(p) > 0 && p[0] <= 3:
		case bytes.HasPrefix(p, []byte("ERR ")):
			failed = true
		default:
			said = append(said, strings.TrimSuffix(string(p), "\n"))
		}
	}
	switch {
	case failed:
		return append(said, "failed") // after part of a pack or none
	case len(pack) >= 12:
		said = append(said, fmt.Sprintf("%d objects, banded %v", binary.BigEndian.Uint32(pack[8:]), banded))
	}
	return said
}

// requests are packets of a client after the advertisement. "<" begins bytes that are sent unchanged; names in braces are revisions of sample.
type requests struct {
	name    string
	version int // with stateless added, there is no advertisement
	lines   []string
	differs string // why git 2.39 responds differently
}

const stateless = 16

// To requests of every kind, valid, unusual and broken ones, we respond as git's own upload-pack does.
func TestRequestsAgreeWithGit(t *testing.T) {
	p := sample(t, 0)
	p.git(p.src, "config", "uploadpack.allowFilter", "true")
	p.git(p.src, "config", "uploadpack.allowAnySHA1InWant", "false")
	p.git(p.src, "config", "uploadpack.allowReachableSHA1InWant", "true")
	p.git(p.src, "symbolic-ref", "refs/heads/release", "refs/heads/main")
	p.git(p.src, "update-ref", "refs/notes/commits", "side")
	p.git(p.src, "update-ref", "refs/odd/tree", "main^{tree}")
	loose := strings.TrimSpace(p.git(p.src, "hash-object", "-w", "-t", "blob", "--stdin"))
	nowhere := strings.Repeat("e", 40)
	fill := func(s string) string {
		for {
			at := strings.IndexByte(s, '{')
			end := strings.IndexByte(s, '}')
			if at < 0 || end < at || strings.HasPrefix(s, "<") {
				return s
			}
			name := s[at+1 : end]
			if strings.Contains(name, "^{") { // {main^{tree}}
				name, end = name+"}", end+1
			}
			h := map[string]string{"nowhere": nowhere, "loose": loose}[name]
			if h == "" {
				h = p.git(p.src, "rev-parse", name)
			}
			s = s[:at] + h + s[end+1:]
		}
	}
	for _, c := range requestTable {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var in bytes.Buffer
			for _, l := range c.lines {
				if raw, ok := strings.CutPrefix(l, "<"); ok {
					in.WriteString(raw)
					continue
				}
				in.Write(script(fill(l)))
			}
			version, bare := c.version&3, c.version&stateless != 0
			args := []string{"upload-pack", "--strict"}
			if bare {
				args = append(args, "--stateless-rpc")
			}
			cmd := exec.Command("git", append(args, p.bare())...)
			cmd.Stdin = bytes.NewReader(in.Bytes())
			cmd.Env = append(cmd.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_PROTOCOL=version="+strconv.Itoa(version))
			theirs, failed := cmd.Output()
			want := outcome(t, theirs, bare, failed != nil)
			req := p.open()
			req.Version, req.Stateless = version, bare
			var ours bytes.Buffer
			err := Serve(context.Background(), req, bytes.NewReader(in.Bytes()), &ours)
			got := outcome(t, ours.Bytes(), bare, err != nil)
			if c.differs != "" {
				require.NotEqual(t, want, got, "it differs no more: %s", c.differs)
				return
			}
			require.Equal(t, want, got, "%v", err)
		})
	}
}

// many repeats a line n times.
func many(n int, line string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = line
	}
	return out
}

func with(parts ...any) (out []string) {
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			out = append(out, p)
		case []string:
			out = append(out, p...)
		}
	}
	return out
}

var requestTable = []requests{
	// Data of a client that is not a pkt-line, or not one that is allowed there.
	{"text", 0, []string{"<GET / HTTP/1.1\r\n\r\n"}, ""},
	{"length of three", 0, []string{"<0003"}, ""},
	{"length beyond the longest", 0, []string{"<fff5" + strings.Repeat("x", 65521)}, ""},
	{"length in capitals", 0, []string{"<002Bwant " + strings.Repeat("e", 39)}, ""},
	{"empty line first", 0, []string{"<0004", "0000"}, ""},
	{"delimiter first", 0, []string{"0001"}, "it takes any special packet for the end of the list; refused here, in words"},
	{"end of response first", 0, []string{"<0002"}, "it takes any special packet for the end of the list; refused here, in words"},
	{"cut in the digits", 0, []string{"<00"}, ""},
	{"cut in the line", 0, []string{"<0032want 123"}, ""},
	{"end after the wants", 0, []string{"want {main}"}, ""},
	{"end after the flush", 0, []string{"want {main}", "0000"}, ""},
	{"done at once", 0, []string{"done"}, ""},
	{"have at once", 0, []string{"have {main}", "0000"}, ""},
	{"want of 39 digits", 0, []string{"want " + strings.Repeat("1", 39), "0000"}, ""},
	{"want of 41 digits", 0, []string{"want " + strings.Repeat("1", 41), "0000"}, ""},
	{"want of 64 digits", 0, []string{"want " + strings.Repeat("1", 64), "0000", "done"}, ""},
	{"want in capitals", 0, []string{"want " + strings.Repeat("E", 40), "0000", "done"}, ""},
	{"want of a ref", 0, []string{"want refs/heads/main", "0000", "done"}, ""},
	{"want of the zero name", 0, []string{"want " + strings.Repeat("0", 40), "0000", "done"}, ""},
	{"want without a space", 0, []string{"want{main}", "0000", "done"}, ""},
	{"WANT", 0, []string{"WANT {main}", "0000", "done"}, ""},
	{"have of 39 digits", 0, []string{"want {main}", "0000", "have " + strings.Repeat("1", 39), "done"}, ""},
	{"have of a ref", 0, []string{"want {main}", "0000", "have main", "done"}, ""},
	{"unknown line among the haves", 0, []string{"want {main}", "0000", "want {side}", "done"}, ""},
	{"unknown capability", 0, []string{"want {main} multi_ack_sometimes x=y", "0000", "done"}, ""},
	{"capabilities of a later want", 0, []string{"want {main}", "want {side} side-band-64k", "0000", "done"}, ""},
	{"object format of another kind", 0, []string{"want {main} object-format=sha256", "0000", "done"}, "it passes over the capability, and sends objects that the client cannot read"},
	{"agent and session", 0, []string{"want {main} agent=x session-id=1", "0000", "done"}, ""},
	{"both side-bands", 0, []string{"want {main} side-band side-band-64k no-progress", "0000", "done"}, ""},
	// Depth.
	{"depth 0", 0, []string{"want {main}", "deepen 0", "0000", "done"}, ""},
	{"depth -1", 0, []string{"want {main}", "deepen -1", "0000", "done"}, ""},
	{"depth of text", 0, []string{"want {main}", "deepen x", "0000", "done"}, ""},
	{"depth with text behind", 0, []string{"want {main}", "deepen 1x", "0000", "done"}, ""},
	{"depth in hexadecimal", 0, []string{"want {main}", "deepen 0x1", "0000", "done"}, ""},
	{"depth in octal", 0, []string{"want {main}", "deepen 010", "0000", "done"}, ""},
	{"depth beyond an int", 0, []string{"want {main}", "deepen 99999999999", "0000", "done"}, ""},
	{"depth twice", 0, []string{"want {main}", "deepen 1", "deepen 2", "0000", "done"}, ""},
	{"since 0", 0, []string{"want {main}", "deepen-since 0", "0000", "done"}, ""},
	{"since text", 0, []string{"want {main}", "deepen-since x", "0000", "done"}, ""},
	{"since the future", 0, []string{"want {main}", "deepen-since 4000000000", "0000", "done"}, ""},
	{"not an object name", 0, []string{"want {main}", "deepen-not {side}", "0000", "done"}, ""},
	{"not a whole name", 0, []string{"want {main}", "deepen-not refs/heads/side", "0000", "done"}, ""},
	{"not everything", 0, []string{"want {side}", "deepen-not main", "0000", "done"}, ""},
	{"not and since", 0, []string{"want {main}", "deepen-not light", "deepen-since 1", "0000", "done"}, ""},
	{"depth and not", 0, []string{"want {main}", "deepen 1", "deepen-not light", "0000", "done"}, ""},
	{"relative without depth", 0, []string{"want {main} deepen-relative", "0000", "done"}, ""},
	{"relative depth", 0, []string{"want {main} deepen-relative", "shallow {main}", "deepen 2", "0000", "done"}, ""},
	{"shallow of what is not there", 0, []string{"want {main}", "shallow {nowhere}", "deepen 1", "0000", "done"}, ""},
	{"shallow of a tree", 0, []string{"want {main}", "shallow {main^{tree}}", "deepen 1", "0000", "done"}, ""},
	{"shallow of a tag", 0, []string{"want {main}", "shallow {v1}", "deepen 1", "0000", "done"}, ""},
	{"shallow of 39 digits", 0, []string{"want {main}", "shallow " + strings.Repeat("1", 39), "0000", "done"}, ""},
	{"shallow before the wants", 0, []string{"shallow {main}", "want {main}", "0000", "done"}, ""},
	{"shallow alone", 0, []string{"shallow {main~1}", "0000"}, ""},
	{"depth of a tag", 0, []string{"want {v1-again}", "deepen 1", "0000", "done"}, ""},
	{"depth of a tree", 0, []string{"want {refs/odd/tree}", "deepen 1", "0000", "done"}, ""},
	// Filters.
	{"blob:none", 0, []string{"want {main} filter", "filter blob:none", "0000", "done"}, ""},
	{"blob:limit", 0, []string{"want {main} filter", "filter blob:limit=0", "0000", "done"}, ""},
	{"blob:limit in kilobytes", 0, []string{"want {main} filter", "filter blob:limit=1k", "0000", "done"}, ""},
	{"blob:limit of text", 0, []string{"want {main} filter", "filter blob:limit=x", "0000", "done"}, ""},
	{"tree:0", 0, []string{"want {main} filter", "filter tree:0", "0000", "done"}, ""},
	{"tree:1", 0, []string{"want {main} filter", "filter tree:1", "0000", "done"}, ""},
	{"tree of text", 0, []string{"want {main} filter", "filter tree:x", "0000", "done"}, ""},
	{"object:type=tree", 0, []string{"want {main} filter", "filter object:type=tree", "0000", "done"}, ""},
	{"object:type of nothing", 0, []string{"want {main} filter", "filter object:type=x", "0000", "done"}, ""},
	{"combined filters", 0, []string{"want {main} filter", "filter combine:tree:2+blob:none", "0000", "done"}, ""},
	{"combined of nothing", 0, []string{"want {main} filter", "filter combine:", "0000", "done"}, ""},
	{"two filters", 0, []string{"want {main} filter", "filter blob:none", "filter tree:1", "0000", "done"}, ""},
	{"an unknown filter", 0, []string{"want {main} filter", "filter x:y", "0000", "done"}, ""},
	{"a filter of nothing", 0, []string{"want {main} filter", "filter ", "0000", "done"}, ""},
	// Which objects may be requested.
	{"an object that no ref reaches", 0, []string{"want {loose}", "0000", "done"}, "it looks for unreachable commits only, so that any other object can be had by name"},
	{"a tree that a ref reaches", 0, []string{"want {main^{tree}}", "0000", "done"}, ""},
	{"a blob", 0, []string{"want {main:a}", "0000", "done"}, ""},
	{"an old commit", 0, []string{"want {main~2}", "0000", "done"}, ""},
	{"a note and a tag", 0, []string{"want {refs/notes/commits}", "want {v1}", "0000", "done"}, ""},
	{"the same want often", 0, with(many(50, "want {main}"), "0000", "done"), ""},
	// Acknowledging.
	{"a tree twice", stateless, []string{"want {main}", "0000", "have {main^{tree}}", "have {main^{tree}}", "0000"}, "git 2.39 acknowledges once; later ones each time, as here"},
	{"a blob and nothing", 0, []string{"want {main} multi_ack_detailed", "0000", "have {main:a}", "have {nowhere}", "0000", "done"}, "it leaves out a blob that the client says it has; no client says so, and here it is sent"},
	{"what it wants", 0, []string{"want {main} multi_ack_detailed", "0000", "have {main}", "0000", "done"}, ""},
	{"a stateless look", stateless, []string{"0000"}, ""},
	{"stateless and nothing", stateless, nil, "it ends with an error; nobody is there to read one"},
	{"stateless, end after the wants", stateless, []string{"want {main}", "0000"}, ""},
	{"stateless depth, end after the wants", stateless, []string{"want {main}", "shallow {main}", "deepen 2", "0000"}, ""},
	{"stateless, twice a flush", stateless, []string{"want {main} multi_ack_detailed", "0000", "have {side}", "0000", "0000", "done"}, ""},
	{"version 1", 1, []string{"want {main}", "0000", "done"}, ""},
	// Protocol 2.
	{"v2 nothing", 2, nil, ""},
	{"v2 flush", 2, []string{"0000"}, ""},
	{"v2 empty line", 2, []string{"<0004", "0000"}, ""},
	{"v2 delimiter first", 2, []string{"0001", "0000"}, ""},
	{"v2 end of response first", 2, []string{"<0002", "0000"}, ""},
	{"v2 unknown capability", 2, []string{"foobar", "0000"}, ""},
	{"v2 unknown capability beside a command", 2, []string{"command=ls-refs", "foobar=1", "0000", "0000"}, ""},
	{"v2 a command as a capability", 2, []string{"command=ls-refs", "fetch", "0000", "0000"}, ""},
	{"v2 a capability as a command", 2, []string{"command=agent", "0000", "0000"}, ""},
	{"v2 a value of a command", 2, []string{"command=ls-refs=x", "0000", "0000"}, ""},
	{"v2 no command", 2, []string{"agent=git/test", "object-format=sha1", "0000"}, ""},
	{"v2 two commands", 2, []string{"command=ls-refs", "command=fetch", "0000"}, ""},
	{"v2 the same command twice", 2, []string{"command=ls-refs", "command=ls-refs", "0000", "0000"}, ""},
	{"v2 bundle-uri", 2, []string{"command=bundle-uri", "0000", "0000"}, ""},
	{"v2 object-info", 2, []string{"command=object-info", "0001", "size", "oid {main}", "0000"}, "it serves this command though it does not announce it"},
	{"v2 other object format", 2, []string{"command=fetch", "object-format=sha256", "0000"}, ""},
	{"v2 agent without a value", 2, []string{"command=ls-refs", "agent", "0000", "0000"}, ""},
	{"v2 server options", 2, []string{"command=ls-refs", "server-option=a", "server-option=b=c", "0000", "0000"}, ""},
	{"v2 server option without a value", 2, []string{"command=ls-refs", "server-option", "0000", "0000"}, ""},
	{"v2 session", 2, []string{"command=ls-refs", "session-id=x", "0000", "0000"}, ""},
	{"v2 cut before the flush", 2, []string{"command=ls-refs", "0001", "peel"}, ""},
	{"v2 second delimiter in ls-refs", 2, []string{"command=ls-refs", "object-format=sha1", "0001", "0001", "0000"}, ""},
	{"v2 second delimiter in fetch", 2, []string{"command=fetch", "object-format=sha1", "0001", "want {main}", "0001", "0000"}, ""},
	{"v2 end of response in fetch", 2, []string{"command=fetch", "0001", "want {main}", "<0002"}, ""},
	{"v2 ls-refs unknown argument", 2, []string{"command=ls-refs", "0001", "no-such", "0000"}, ""},
	{"v2 ls-refs argument with text behind", 2, []string{"command=ls-refs", "0001", "peelx", "0000"}, ""},
	{"v2 ls-refs prefix without a name", 2, []string{"command=ls-refs", "0001", "ref-prefix ", "0000", "0000"}, ""},
	{"v2 ls-refs prefix without a space", 2, []string{"command=ls-refs", "0001", "ref-prefix", "0000", "0000"}, ""},
	{"v2 ls-refs of two", 2, []string{"command=ls-refs", "0001", "ref-prefix refs/heads/main", "ref-prefix refs/tags/light", "0000", "0000"}, ""},
	{"v2 ls-refs of heads", 2, []string{"command=ls-refs", "0001", "ref-prefix refs/heads/", "symrefs", "0000", "0000"}, ""},
	{"v2 ls-refs of part of a name", 2, []string{"command=ls-refs", "0001", "ref-prefix refs/he", "0000", "0000"}, ""},
	{"v2 ls-refs peeled tags", 2, []string{"command=ls-refs", "0001", "peel", "ref-prefix refs/tags/", "ref-prefix refs/odd", "0000", "0000"}, ""},
	{"v2 ls-refs of very many", 2, with("command=ls-refs", "0001", many(65536, "ref-prefix refs/nothing/"), "0000", "0000"), ""},
	{"v2 ls-refs of one less", 2, with("command=ls-refs", "0001", many(65535, "ref-prefix refs/nothing/"), "0000", "0000"), ""},
	{"v2 ls-refs twice", 2, []string{"command=ls-refs", "0001", "ref-prefix HEAD", "0000", "command=ls-refs", "0001", "ref-prefix refs/tags/light", "0000", "0000"}, ""},
	{"v2 fetch without arguments", 2, []string{"command=fetch", "0000", "0000"}, ""},
	{"v2 fetch of nothing", 2, []string{"command=fetch", "0001", "done", "0000", "0000"}, ""},
	{"v2 fetch of nothing, with haves", 2, []string{"command=fetch", "0001", "have {main}", "0000", "0000"}, ""},
	{"v2 wait for done of nothing", 2, []string{"command=fetch", "0001", "wait-for-done", "have {main}", "have {nowhere}", "0000", "0000"}, ""},
	{"v2 fetch unknown argument", 2, []string{"command=fetch", "0001", "want {main}", "no-such", "0000"}, ""},
	{"v2 fetch argument with text behind", 2, []string{"command=fetch", "0001", "want {main}", "done x", "0000"}, ""},
	{"v2 want-ref", 2, []string{"command=fetch", "0001", "want-ref refs/heads/main", "done", "0000"}, ""},
	{"v2 sideband-all", 2, []string{"command=fetch", "0001", "want {main}", "sideband-all", "done", "0000"}, ""},
	{"v2 packfile-uris", 2, []string{"command=fetch", "0001", "want {main}", "packfile-uris https", "done", "0000"}, "it passes over what it did not announce"},
	{"v2 want with capabilities", 2, []string{"command=fetch", "0001", "want {main} thin-pack", "done", "0000"}, "it reads no further than the name"},
	{"v2 want of what is not there", 2, []string{"command=fetch", "0001", "want {nowhere}", "done", "0000"}, ""},
	{"v2 want that no ref reaches", 2, []string{"command=fetch", "0001", "want {loose}", "done", "0000"}, "it looks at no reachability in protocol 2"},
	{"v2 want of 39 digits", 2, []string{"command=fetch", "0001", "want " + strings.Repeat("1", 39), "done", "0000"}, ""},
	{"v2 have of 39 digits", 2, []string{"command=fetch", "0001", "want {main}", "have " + strings.Repeat("1", 39), "done", "0000"}, ""},
	{"v2 a tree twice", 2, []string{"command=fetch", "0001", "want {main}", "have {main^{tree}}", "have {main^{tree}}", "0000", "0000"}, "git 2.39 acknowledges each time; later ones once, as here"},
	{"v2 done before the wants", 2, []string{"command=fetch", "0001", "done", "want {side}", "0000", "0000"}, ""},
	{"v2 depth 0", 2, []string{"command=fetch", "0001", "want {main}", "deepen 0", "done", "0000", "0000"}, ""},
	{"v2 depth and not", 2, []string{"command=fetch", "0001", "want {main}", "deepen 1", "deepen-not light", "done", "0000"}, "it begins its answer before it looks"},
	{"v2 filter", 2, []string{"command=fetch", "0001", "want {main}", "filter blob:none", "no-progress", "done", "0000", "0000"}, ""},
	{"v2 filter of a wanted blob", 2, []string{"command=fetch", "0001", "want {main:a}", "filter blob:none", "done", "0000", "0000"}, ""},
	{"v2 tags follow", 2, []string{"command=fetch", "0001", "want {main}", "include-tag", "no-progress", "done", "0000", "0000"}, ""},
	{"v2 fetch after fetch", 2, []string{"command=fetch", "0001", "want {side}", "have {nowhere}", "0000", "command=fetch", "0001", "want {side}", "have {nowhere}", "done", "0000", "0000"}, ""},
	{"v2 stateless, two requests", 2 + stateless, []string{"command=ls-refs", "0001", "ref-prefix HEAD", "0000", "command=ls-refs", "0000"}, ""},
	{"v2 stateless and nothing", 2 + stateless, nil, ""},
	{"v2 stateless flush", 2 + stateless, []string{"0000"}, ""},
}
