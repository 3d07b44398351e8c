package session_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/git/pktline"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/testutil"
	"corpus-git/project"
	"corpus-git/receive/session"
)

const (
	a = "1111111111111111111111111111111111111111"
	b = "2222222222222222222222222222222222222222"
	z = project.ZeroCommit
)

func lines(t testing.TB, parts ...string) []byte {
	var buf bytes.Buffer
	w := pktline.NewWriter(&buf)
	for _, p := range parts {
		var err error
		if p == "0000" {
			err = w.Flush()
		} else {
			err = w.Data([]byte(p))
		}
		require.NoError(t, err)
	}
	return buf.Bytes()
}

func read(data []byte, l session.Limits) (*session.Request, error) {
	return session.ReadRequest(pktline.NewReader(bytes.NewReader(data), pktline.Limits{}), l)
}

func TestReadRequest(t *testing.T) {
	req, err := read(lines(t, "shallow "+a, z+" "+b+" refs/heads/main\x00 report-status side-band-64k push-options agent=git/2.39 object-format=sha1\n",
		a+" "+z+" refs/heads/old", "0000", "verbose", "only=install\n", "0000"), session.Limits{})
	require.NoError(t, err)
	require.Equal(t, []project.Change{{Ref: "refs/heads/main", New: b}, {Ref: "refs/heads/old", Old: a}}, req.Commands)
	require.True(t, req.Pack())
	require.Len(t, req.Shallow, 1)
	require.Equal(t, []string{"verbose", "only=install"}, req.Options)
	require.Equal(t, "git/2.39", req.Caps["agent"])
	require.True(t, req.Caps.Has("side-band-64k"))

	req, err = read(lines(t, a+" "+z+" refs/heads/old", "0000"), session.Limits{})
	require.NoError(t, err)
	require.False(t, req.Pack(), "a push of deletions has no pack")
	req, err = read(lines(t, "0000"), session.Limits{})
	require.NoError(t, err)
	require.Empty(t, req.Commands)

	for name, c := range map[string]struct {
		data []byte
		want string
		kind fault.Kind
	}{
		"no hash":        {lines(t, "nonsense", "0000"), "is not a command", fault.Usage},
		"upper case":     {lines(t, strings.Repeat("A", 40)+" "+b+" refs/heads/x", "0000"), "is not a command", fault.Usage},
		"cut":            {lines(t, z+" "+b+" refs/heads/main"), "unexpected EOF", fault.Usage},
		"twice":          {lines(t, z+" "+b+" refs/heads/x", z+" "+a+" refs/heads/x", "0000"), "updated twice", fault.Refused},
		"control":        {lines(t, z+" "+b+" refs/heads/\n2J", "0000"), "newline", fault.Usage},
		"bad shallow":    {lines(t, "shallow x", "0000"), "invalid shallow line", fault.Usage},
		"signed, cut":    {lines(t, "push-cert\x00report-status", "0000"), "flush-pkt in a push certificate", fault.Usage},
		"signed, bare":   {lines(t, "push-cert\x00report-status", "push-cert-end\n", "0000"), "in place of", fault.Usage},
		"signed and not": {slices.Concat(lines(t, certificate...), lines(t, z+" "+b+" refs/heads/y", "0000")), "an unsigned command together with", fault.Usage},
		"not and signed": {slices.Concat(lines(t, z+" "+b+" refs/heads/y"), lines(t, certificate...)), "together with unsigned commands", fault.Usage},
		"signed twice":   {slices.Concat(lines(t, certificate...), lines(t, certificate...)), "together with unsigned commands", fault.Usage},
		"signed, long":   {lines(t, append([]string{"push-cert\x00"}, strings.Split(strings.Repeat(strings.Repeat("x", 1000)+" ", 70), " ")...)...), "longer than 65536 bytes", fault.Refused},
		"sha256":         {lines(t, z+" "+b+" refs/heads/x\x00object-format=sha256", "0000"), "sha1", fault.Refused},
		"long name":      {lines(t, z+" "+b+" refs/heads/"+strings.Repeat("x", 2000), "0000"), "longer than", fault.Refused},
		"many":           {lines(t, z+" "+b+" refs/a", z+" "+b+" refs/b", z+" "+b+" refs/c", z+" "+b+" refs/d", "0000"), "more than 3 refs", fault.Refused},
		"many options":   {lines(t, z+" "+b+" refs/a\x00push-options", "0000", "1", "2", "3", "0000"), "more than 2 push options", fault.Refused},
		"long option":    {lines(t, z+" "+b+" refs/a\x00push-options", "0000", strings.Repeat("x", 11), "0000"), "a push option is longer than 10 bytes", fault.Refused},
		"many shallow":   {lines(t, "shallow "+a, "shallow "+b, "shallow "+a, "0000"), "shallow roots", fault.Refused},
		"not a pkt-line": {[]byte("GET / HTTP/1.1\r\n"), "not a pkt-line", fault.Usage},
		"delim":          {[]byte("0001"), "delim-pkt", fault.Usage},
	} {
		_, err := read(c.data, session.Limits{Commands: 3, Options: 2, OptionBytes: 10, Shallow: 2})
		require.ErrorContains(t, err, c.want, name)
		require.Equal(t, c.kind, fault.KindOf(err), name)
	}
}

// A request beyond a limit is read to its end, so that each command can be reported, unless it never ends.
func TestReadRequestBeyondLimits(t *testing.T) {
	l := session.Limits{Commands: 3, Options: 2, OptionBytes: 10, Shallow: 2}
	four := []string{z + " " + b + " refs/a\x00push-options", z + " " + b + " refs/b", z + " " + b + " refs/c", z + " " + b + " refs/d", "0000"}
	endless := strings.Split(strings.Repeat("1 ", 3000), " ")
	for name, c := range map[string]struct {
		lines []string
		want  string
		named int // 0: there is no request
	}{
		"commands":           {append(slices.Clone(four), "x", "0000"), "more than 3 refs", 4},
		"commands, options":  {append(slices.Clone(four), "1", "2", "3", "0000"), "more than 3 refs", 4},
		"options":            {[]string{four[0], "0000", "1", "2", "3", "4", "0000"}, "more than 2 push options", 1},
		"long option":        {[]string{four[0], "0000", strings.Repeat("x", 11), "2", "0000"}, "longer than 10 bytes", 1},
		"shallow":            {[]string{"shallow " + a, "shallow " + b, "shallow " + z[:39] + "1", four[0], "0000", "0000"}, "more than 2 shallow roots", 1},
		"shallow, nothing":   {[]string{"shallow " + a, "shallow " + b, "shallow " + z[:39] + "1", "0000"}, "more than 2 shallow roots", 0},
		"commands, cut":      {four[:4], "more than 3 refs", 0},
		"options, cut":       {[]string{four[0], "0000", "1", "2", "3"}, "more than 2 push options", 0},
		"options, no end":    {append([]string{four[0], "0000"}, endless...), "more than 2 push options", 1},
		"shallow, no end":    {slices.Repeat([]string{"shallow " + a}, 3000), "more than 2 shallow roots", 0},
		"twice, beyond them": {[]string{four[0], four[1], four[2], four[3], four[3], "0000", "0000"}, "more than 3 refs", 5},
	} {
		req, err := read(lines(t, c.lines...), l)
		require.ErrorContains(t, err, c.want, name)
		if c.named == 0 {
			require.Nil(t, req, name)
			continue
		}
		require.Equal(t, fault.Refused, fault.KindOf(err), name)
		require.Len(t, req.Commands, c.named, name)
		require.LessOrEqual(t, len(req.Options), 2, name)
		require.LessOrEqual(t, len(req.Shallow), 2, name)
	}
}

func TestOptions(t *testing.T) {
	o, err := session.ParseOptions([]string{"verbose", "quiet=false", "no-color", "only=install,sync", "only-steps=0100_a", "skip=archive", "skip_notify", "x=y\x1b"})
	require.NoError(t, err)
	require.True(t, o.Verbose)
	require.False(t, o.Quiet)
	require.NotNil(t, o.Colour)
	require.False(t, *o.Colour)
	require.Equal(t, project.Selection{Only: []string{"install", "sync"}, OnlySteps: []string{"0100_a"}, Skip: []string{"archive", "notify"}}, o.Select)
	require.Contains(t, o.Notes[0], "x=y\\x1b")
	for _, bad := range []string{"only=", "only=../x", "only=archive,nonsense", "skip=a b", "skip=nonsense", "skip_nonsense", "verbose=maybe"} {
		_, err := session.ParseOptions([]string{bad})
		require.Equal(t, fault.Usage, fault.KindOf(err), bad)
		if strings.Contains(bad, "nonsense") {
			require.ErrorContains(t, err, "unknown procedure nonsense", bad)
			require.Contains(t, fault.HintOf(err), "release-sync", bad)
		}
	}
	o, err = session.ParseOptions([]string{"only=release-sync,Install", "skip_rotate_archives"})
	require.NoError(t, err)
	require.Equal(t, project.Selection{Only: []string{"release-sync", "Install"}, Skip: []string{"rotate-archives"}}, o.Select)
}

func TestClassify(t *testing.T) {
	const roles = "refuse store delete deploy redeploy plan rollback"
	for _, c := range []struct {
		deployed string
		store    bool
		cmd      string // old new ref
		want     string
		err      string
	}{
		{"", false, "- b refs/heads/main", "deploy", ""},
		{"", false, "- b refs/heads/master", "deploy", ""},
		{"", false, "- b refs/heads/topic", "refuse", "is not the deployed branch"},
		{"", true, "- b refs/heads/topic", "store", ""},
		{"refs/heads/main", false, "a b refs/heads/main", "deploy", ""},
		{"refs/heads/main", false, "- b refs/heads/master", "refuse", "(main is)"},
		{"refs/heads/main", true, "- b refs/heads/master", "store", ""},
		{"refs/heads/main", false, "a - refs/heads/main", "refuse", "cannot be deleted"},
		{"refs/heads/main", false, "a - refs/heads/topic", "delete", ""},
		{"refs/heads/main", false, "- b refs/tags/v1", "store", ""},
		{"refs/heads/main", false, "a - refs/tags/v1", "delete", ""},
		{"refs/heads/main", false, "- b refs/notes/commits", "store", ""},
		{"refs/heads/main", false, "- b refs/remotes/origin/x", "refuse", "only branches, tags and notes"},
		{"refs/heads/main", true, "- b refs/remotes/origin/x", "store", ""},
		{"refs/heads/main", true, "- b refs/corpus/deployments/1", "refuse", "reserved for the server"},
		{"refs/heads/main", true, "a - refs/corpus/deployments/1", "refuse", "reserved for the server"},
		{"refs/heads/main", true, "- b refs/corpus", "refuse", "reserved for the server"},
		{"refs/heads/main", true, "- b refs/heads/../../config", "refuse", "not a valid ref name"},
		{"refs/heads/main", true, "- b HEAD", "refuse", "not a valid ref name"},
		{"refs/heads/main", true, "- b refs/heads/x.lock", "refuse", "not a valid ref name"},
		{"refs/heads/main", false, "- b refs/deploy/now", "redeploy", ""},
		{"", false, "- b refs/deploy/now", "refuse", "nothing has been deployed yet"},
		{"refs/heads/main", false, "a - refs/deploy/now", "refuse", "never stored"},
		{"refs/heads/main", false, "a b refs/deploy/now", "refuse", "never stored"},
		{"", false, "- b refs/plan/now", "plan", ""},
		{"refs/heads/main", false, "- b refs/rollback/last", "rollback", ""},
		{"refs/heads/main", false, "- b refs/rollback/0198c2f4", "rollback", ""},
		{"refs/heads/main", false, "- b refs/rollback/xyz", "refuse", "not the ID"},
	} {
		f := strings.Fields(c.cmd)
		h := map[string]project.Commit{"-": "", "a": a, "b": b}
		p := session.Policy{StoreOtherBranches: c.store, Deployed: c.deployed, Repo: project.Code, Project: "app", Remote: "prod"}
		items, deploying := p.Classify([]project.Change{{Ref: f[2], Old: h[f[0]], New: h[f[1]]}})
		require.Len(t, items, 1)
		require.Equal(t, c.want, strings.Fields(roles)[items[0].Role], "%v", c)
		require.Equal(t, items[0].Role.Deploys(), deploying != nil)
		if c.err == "" {
			require.NoError(t, items[0].Err)
			continue
		}
		require.ErrorContains(t, items[0].Err, c.err, "%v", c)
		require.Equal(t, fault.Refused, fault.KindOf(items[0].Err))
	}
}

func TestReason(t *testing.T) {
	for _, c := range []struct {
		r    project.Result
		want string
	}{
		{project.Result{State: project.Live}, ""},
		{project.Result{State: project.Done}, ""},
		{project.Result{State: project.RolledBack, Procedure: "install", Step: "0100_build", StateID: "npm-install"}, "failed in 0100_build, state npm-install; rolled back"},
		{project.Result{State: project.RolledBack, Procedure: "fixperms"}, "failed in fixperms; rolled back"},
		{project.Result{State: project.RolledBack, Reason: "cancelled by boss"}, "cancelled by boss; rolled back"},
		{project.Result{State: project.RolledBack, Procedure: "install", Step: "0100_build", Reason: "cancelled by boss"}, "cancelled by boss; rolled back"},
		{project.Result{State: project.Failed, Procedure: "pre-deploy", Reason: "failed in pre-deploy; the rollback failed too"}, "failed in pre-deploy; the rollback failed too"},
		{project.Result{State: project.Failed, Step: "a"}, "failed in a; failed tree left in place"},
		{project.Result{State: project.Refused, Reason: ".salt/020_x.sls:12: unknown\nfunction"}, "refused: .salt/020_x.sls:12: unknown function"},
		{project.Result{State: project.Refused}, "refused"},
		{project.Result{}, "failed; failed tree left in place"},
	} {
		require.Equal(t, c.want, session.Reason(c.r))
	}
	long := session.Reason(project.Result{State: project.Refused, Reason: strings.Repeat("é\x1b[31m", 500)})
	require.LessOrEqual(t, len([]rune(long)), 160)
	require.NotContains(t, long, "\x1b")
	long = session.Reason(project.Result{State: project.RolledBack, Reason: strings.Repeat("é", 500)})
	require.Len(t, []rune(long), 160)
	require.True(t, strings.HasSuffix(long, "…; rolled back"))
}

func TestExplain(t *testing.T) {
	err := fault.New(fault.Refused, "yaml", "mapping values are not allowed here").WithPos(fault.Pos{File: ".salt/020_x.sls", Line: 12, Col: 4, Text: "\tab: c: d"}).WithHint("quote it")
	var out bytes.Buffer
	c := event.NewConsole(&out, event.Style{})
	for _, e := range session.Explain(fmt.Errorf("wrapped: %w", err), "ID") {
		_, werr := c.Show(e)
		require.NoError(t, werr)
	}
	require.Equal(t, "       ! wrapped: .salt/020_x.sls:12:4: yaml: mapping values are not allowed here\n         | \tab: c: d\n         | \t  ^\n       hint: quote it\n", out.String())

	es := session.Explain(errors.New("open /srv/secret/path: permission denied"), "ID-1")
	for _, e := range es {
		require.NotContains(t, e.Text, "secret", "our own faults keep their text")
	}
	require.Contains(t, es[1].Text, "ID-1")
}

// A refusal shown to a pusher contains no line injected by others, and no invisible characters.
func TestEveryCharacterOfARefusalIsSeen(t *testing.T) {
	x := testutil.Hostile
	var out bytes.Buffer
	c := event.NewConsole(&out, event.Style{})
	es := session.Explain(fault.New(fault.Refused, x, "%s", x).WithPos(fault.Pos{File: x, Line: 1, Col: 4, Text: x}).WithHint("%s", x), x)
	es = append(es, session.Explain(errors.New(x), x)...)
	for _, e := range append(es, testutil.Events(x)...) {
		_, err := c.Show(e)
		require.NoError(t, err)
	}
	require.Contains(t, out.String(), "evil")
	testutil.SeenLog(t, "refusal", out.String())
	for _, state := range []project.State{project.Refused, project.RolledBack, project.Failed} {
		testutil.Seen(t, string(state), session.Reason(project.Result{State: state, Reason: x, Step: x, StateID: x}))
		testutil.Seen(t, string(state), session.Reason(project.Result{State: state, Procedure: x, Step: x, StateID: x}))
	}
}

// certificate is a push certificate as git sends it, except for its signature.
var certificate = []string{
	"push-cert\x00report-status push-options\n", "certificate version 0.1\n", "pusher key 1700000000 +0000\n", "pushee ssh://x/app\n", "nonce 1-2\n", "push-option verbose\n", "\n",
	z + " " + b + " refs/heads/x\n", "-----BEGIN SSH SIGNATURE-----\n", "AAAA\n", "-----END SSH SIGNATURE-----\n", "push-cert-end\n",
}

// The commands of a signed push are those of its certificate.
func TestReadSignedRequest(t *testing.T) {
	req, err := read(slices.Concat(lines(t, certificate...), lines(t, "0000", "verbose", "0000")), session.Limits{})
	require.NoError(t, err)
	require.Equal(t, []project.Change{{Ref: "refs/heads/x", New: b}}, req.Commands)
	require.True(t, req.Caps.Has("report-status"))
	require.Equal(t, []string{"verbose"}, req.Options)
	require.Equal(t, strings.Join(certificate[1:len(certificate)-1], ""), req.Certificate.Text)
	require.True(t, strings.HasSuffix(req.Certificate.Payload, " refs/heads/x\n"))
	require.Equal(t, "1-2", req.Certificate.Nonce)
}

func FuzzReadRequest(f *testing.F) {
	f.Add(lines(f, "shallow "+a, z+" "+b+" refs/heads/main\x00report-status push-options", a+" "+z+" refs/x", "0000", "verbose", "0000"))
	f.Add(lines(f, "push-cert\x00x", "0000"))
	f.Add(slices.Concat(lines(f, certificate...), lines(f, "0000", "verbose", "0000")))
	f.Add([]byte("0000"))
	f.Add([]byte("0009ERR x"))
	f.Add([]byte("fff0"))
	l := session.Limits{Commands: 50, Shallow: 50, Options: 5, OptionBytes: 100}
	f.Fuzz(func(t *testing.T, data []byte) {
		req, err := read(data, l)
		if err != nil {
			require.True(t, req == nil || len(req.Commands) > 0)
			return
		}
		require.LessOrEqual(t, len(req.Commands), 50)
		require.LessOrEqual(t, len(req.Options), 5)
		seen := map[string]bool{}
		for _, c := range req.Commands {
			require.False(t, seen[c.Ref])
			seen[c.Ref] = true
			require.False(t, strings.ContainsAny(c.Ref, "\x00\n\r"))
			old, new := string(c.Old), string(c.New)
			if old == "" {
				old = z
			}
			if new == "" {
				new = z
			}
			again, err := session.ParseCommand(old + " " + new + " " + c.Ref)
			require.NoError(t, err)
			require.Equal(t, c, again)
		}
		items, deploying := session.Policy{Project: "app", Remote: "prod"}.Classify(req.Commands)
		require.Len(t, items, len(req.Commands))
		n := 0
		for _, i := range items {
			if i.Role.Deploys() {
				n++
			}
			require.Equal(t, i.Role == session.Refuse, i.Err != nil)
			if strings.HasPrefix(i.Ref, session.HiddenPrefix) {
				require.Equal(t, session.Refuse, i.Role)
			}
		}
		require.LessOrEqual(t, n, 1)
		require.Equal(t, n == 1, deploying != nil)
		_, _ = session.ParseOptions(req.Options)
	})
}

func FuzzParseCaps(f *testing.F) {
	f.Add(" report-status side-band-64k agent=git/2.39.5 object-format=sha1")
	f.Add("a=b=c a=d  =x")
	f.Fuzz(func(t *testing.T, s string) {
		c := session.Caps{}
		c.Parse(s)
		require.LessOrEqual(t, len(c), 100)
		for k, v := range c {
			require.NotEmpty(t, k)
			require.NotContains(t, k, " ")
			require.NotContains(t, v, " ")
		}
	})
}
