package session_test

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"corpus-git/git/pktline"
	"corpus-git/git/refs"
	"corpus-git/git/store"
	"corpus-git/internal/testutil/gittest"
	"corpus-git/receive/session"
)

// pushes are what a client sends to receive-pack. "<" starts bytes that are sent as they are; names in braces are revisions or objects of pushed.
type pushes struct {
	name    string
	lines   []string
	pack    string // how the pack is made: see pushed.pack; "" sends none
	differs string // why git 2.39 has another result
}

// pushed is a repository to push from, and a copy of what is pushed to.
type pushed struct {
	t     *testing.T
	src   *gittest.Repo
	bare  string
	names map[string]string
}

func newPushed(t *testing.T) *pushed {
	p := &pushed{t: t, src: gittest.NewRepo(t), bare: filepath.Join(t.TempDir(), "to.git"), names: map[string]string{"no": strings.Repeat("e", 40), "zero": strings.Repeat("0", 40)}}
	p.src.Write("a", strings.Repeat("a line that is long enough to make a delta of\n", 50))
	p.src.Write("dir/b", "b\n")
	p.names["one"] = p.src.Commit("one").String()
	p.src.Write("dir/b", "b2\n")
	p.names["two"] = p.src.Commit("two").String()
	p.src.Git("branch", "-M", "master")
	gittest.Git(t, "", "clone", "-q", "--bare", p.src.Dir, p.bare)
	for _, c := range []string{"receive.fsckObjects=true", "receive.advertisePushOptions=true", "receive.advertiseAtomic=true", "gc.auto=0", "receive.autogc=false"} {
		key, value, _ := strings.Cut(c, "=")
		gittest.Git(t, p.bare, "config", key, value)
	}
	gittest.Git(t, p.bare, "update-ref", "refs/heads/old", p.names["one"])
	gittest.Git(t, p.bare, "update-ref", "refs/tags/v0", p.names["one"])
	gittest.Git(t, p.bare, "update-ref", "refs/heads/dir/x", p.names["one"])
	p.src.Write("a", strings.Repeat("a line that is long enough to make a delta of\n", 49)+"and another\n")
	p.names["new"] = p.src.Commit("three").String()
	p.src.Git("tag", "-a", "-m", "annotated", "v1")
	p.names["tag"] = p.src.Git("rev-parse", "v1")
	p.names["tree"] = p.src.Git("rev-parse", "HEAD^{tree}")
	p.names["oldtree"] = p.src.Git("rev-parse", "HEAD~1^{tree}")
	p.names["blob"] = p.src.Git("rev-parse", "HEAD:a")
	p.src.Write("dir/c", "c\n")
	p.names["next"] = p.src.Commit("four").String()
	p.src.Git("checkout", "-q", "--orphan", "other")
	p.names["orphan"] = p.src.Commit("five").String()
	return p
}

// object creates an object that git itself would not, and returns its name.
func (p *pushed) object(kind string, content []byte) string {
	p.t.Helper()
	return strings.TrimSpace(gittest.GitIn(p.t, p.src.Dir, content, "hash-object", "-w", "--literally", "-t", kind, "--stdin"))
}

func (p *pushed) fill(s string) string {
	for name, h := range p.names {
		s = strings.ReplaceAll(s, "{"+name+"}", h)
	}
	return s
}

// packed makes a pack: "revs A ^B", "thin A ^B", "objects A B" or "empty", and after a bar how it is changed: cut, flip, trailing, version, count.
func (p *pushed) packed(how string) []byte {
	p.t.Helper()
	how, spoil, _ := strings.Cut(how, "|")
	f := strings.Fields(p.fill(how))
	if len(f) == 0 {
		return nil
	}
	args := []string{"pack-objects", "--stdout", "-q"}
	switch f[0] {
	case "revs":
		args = append(args, "--revs")
	case "thin":
		args = append(args, "--revs", "--thin", "--delta-base-offset")
	}
	out := gittest.Output(p.t, p.src.Dir, []byte(strings.Join(append(f[1:], ""), "\n")), args...)
	switch spoil {
	case "cut":
		out = out[:len(out)-25]
	case "flip":
		out[len(out)/2] ^= 0x10
	case "trailer":
		out[len(out)-1] ^= 1
	case "trailing":
		out = append(out, "more"...)
	case "version":
		out[7] = 9
	case "count":
		out[11]++
	case "signature":
		out[0] = 'X'
	}
	return out
}

// ended returns the result of a push, in terms common to both servers: the unpack status, each ref of the report, and the refs afterwards.
func ended(t *testing.T, dir string, out []byte) []string {
	t.Helper()
	r := pktline.NewReader(bytes.NewReader(out), pktline.Limits{})
	for k := pktline.Data; k != pktline.Flush; {
		var err error
		if k, _, err = r.Next(); err != nil {
			break
		}
	}
	var report []byte
	banded := false
	var said []string
	for {
		k, p, err := r.Next()
		if err != nil {
			break
		}
		switch {
		case k != pktline.Data:
		case len(p) > 0 && p[0] == 1:
			banded, report = true, append(report, p[1:]...)
		case len(p) > 0 && p[0] <= 3, bytes.HasPrefix(p, []byte("ERR ")):
		default:
			said = append(said, strings.TrimSuffix(string(p), "\n"))
		}
	}
	if banded {
		inner := pktline.NewReader(bytes.NewReader(report), pktline.Limits{})
		for {
			k, l, err := inner.Line()
			if err != nil || k != pktline.Data {
				break
			}
			said = append(said, l)
		}
	}
	for n, l := range said {
		f := strings.SplitN(l, " ", 3)
		switch {
		case f[0] == "unpack" && l != "unpack ok":
			said[n] = "unpack failed"
		case f[0] == "ng":
			said[n] = "ng " + f[1]
		case strings.HasPrefix(l, "option "):
			said[n] = "option"
		}
	}
	if len(said) > 1 && !slices.ContainsFunc(said[1:], func(l string) bool { return !strings.HasPrefix(l, "ng ") }) {
		said = said[1:] // servers differ in whether they unpack before they check the whole request
	}
	all := gittest.Git(t, dir, "for-each-ref", "--format=%(refname) %(objectname)")
	return append(said, strings.Split(all, "\n")...)
}

// Pushes of every kind, valid, unusual and broken, have the same result as with git's own receive-pack.
func TestPushesAgreeWithGit(t *testing.T) {
	p := newPushed(t)
	p.spoiled()
	for _, c := range pushTable() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var in bytes.Buffer
			w := pktline.NewWriter(&in)
			for _, l := range c.lines {
				l = p.fill(l)
				switch {
				case strings.HasPrefix(l, "<"):
					in.WriteString(l[1:])
				case l == "0000":
					require.NoError(t, w.Flush())
				default:
					require.NoError(t, w.Data([]byte(l)))
				}
			}
			in.Write(p.packed(c.pack))
			dirs := [2]string{}
			for n := range dirs {
				dirs[n] = filepath.Join(t.TempDir(), "to.git")
				require.NoError(t, exec.Command("cp", "-r", p.bare, dirs[n]).Run())
			}
			cmd := exec.Command("git", "receive-pack", dirs[0])
			cmd.Env = gittest.Env()
			cmd.Stdin = bytes.NewReader(in.Bytes())
			theirs, _ := cmd.Output()
			want := ended(t, dirs[0], theirs)

			db, err := store.Open(dirs[1], store.Options{})
			require.NoError(t, err)
			defer db.Close()
			push := &session.Push{
				Policy: session.Policy{StoreOtherBranches: true, Repo: "project", Project: "app", Remote: "prod"}, DB: db, Refs: &refs.Store{Dir: dirs[1]},
				Agent: "corpus-git", ID: "test", Log: zerolog.Nop(),
			}
			var ours, told bytes.Buffer
			push.Serve(context.Background(), bytes.NewReader(in.Bytes()), &ours, &told)
			got := ended(t, dirs[1], ours.Bytes())
			if c.differs != "" {
				require.NotEqual(t, want, got, "it differs no more: %s", c.differs)
				return
			}
			require.Equal(t, want, got, "%s", told.String())
		})
	}
}

// A client that breaks the protocol is told why, in a report if a command of it is known, otherwise in an ERR line, which git prints by itself.
func TestBrokenProtocolIsAnswered(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "to.git")
	gittest.Git(t, "", "init", "-q", "--bare", dir)
	db, err := store.Open(dir, store.Options{})
	require.NoError(t, err)
	defer db.Close()
	good := z + " " + b + " refs/heads/x"
	for name, c := range map[string]struct {
		in   []byte
		want string // after the advertisement
	}{
		"text":             {[]byte("GET / HTTP/1.1\r\n\r\n"), "ERR .*not a pkt-line"},
		"length":           {[]byte("0003"), "ERR .*not a pkt-line"},
		"too long":         {append([]byte("fff5"), make([]byte, 70_000)...), "ERR .*4 to 65520 are allowed"},
		"delimiter":        {[]byte("0001"), "ERR .*delim-pkt among the commands"},
		"no command":       {lines(t, "hello", "0000"), "ERR .*is not a command"},
		"short name":       {lines(t, z[1:]+" "+b+" refs/heads/x", "0000"), "ERR .*is not a command"},
		"shallow":          {lines(t, "shallow 1", "0000"), "ERR .*invalid shallow line"},
		"certificate":      {lines(t, "push-cert\x00report-status", "0000"), "ERR .*flush-pkt in a push certificate"},
		"second command":   {lines(t, good+reports, "hello", "0000"), "unpack ok\n.*ng refs/heads/x .*is not a command"},
		"second, banded":   {lines(t, good+reports+" side-band-64k", "hello", "0000"), "unpack ok\n.*ng refs/heads/x .*is not a command"},
		"second delimiter": {append(lines(t, good+reports), "0001"...), "ng refs/heads/x .*delim-pkt among the commands"},
		"second length":    {append(lines(t, good+reports), "zzzz"...), "ng refs/heads/x .*not a pkt-line"},
		"sha256":           {lines(t, good+reports+" object-format=sha256", "0000"), "ng refs/heads/x the object format of the repository is sha1"},
		"option":           {append(lines(t, good+reports+" push-options", "0000"), "0001"...), "ng refs/heads/x .*delim-pkt among the push options"},
		"cap without name": {lines(t, z+" "+z+" refs/heads/x"+reports+" =x", "0000"), "ok refs/heads/x"},
	} {
		push := &session.Push{
			Policy: session.Policy{StoreOtherBranches: true, Repo: "project", Project: "app", Remote: "prod"}, DB: db, Refs: &refs.Store{Dir: dir}, ID: "test", Log: zerolog.Nop(),
		}
		var out, told bytes.Buffer
		push.Serve(context.Background(), bytes.NewReader(c.in), &out, &told)
		_, after, _ := bytes.Cut(out.Bytes(), []byte("\n0000"))
		require.Regexp(t, "(?s)"+c.want, string(after), name)
		if strings.HasPrefix(c.want, "ERR") {
			require.Empty(t, told.String(), name)
		}
	}
}

const reports = "\x00 report-status"

// spoiled creates objects that git's fsck reports.
func (p *pushed) spoiled() {
	raw := func(h string) string {
		b := make([]byte, 20)
		for i := range b {
			hi, lo := strings.IndexByte("0123456789abcdef", h[2*i]), strings.IndexByte("0123456789abcdef", h[2*i+1])
			b[i] = byte(hi<<4 | lo)
		}
		return string(b)
	}
	entry := func(mode, name, h string) string { return mode + " " + name + "\x00" + raw(h) }
	const who = "A <a@example.com> 1700000000 +0000"
	commit := func(tree, author, committer, rest string) []byte {
		return []byte("tree " + tree + "\nauthor " + author + "\ncommitter " + committer + "\n" + rest + "\nm\n")
	}
	tree, blob := p.names["tree"], p.names["blob"]
	for name, c := range map[string][]byte{
		"c-noat":         commit(tree, "A <a> 1700000000 +0000", who, ""),
		"c-noemail":      commit(tree, "A 1700000000 +0000", who, ""),
		"c-noname":       commit(tree, " <a@b> 1700000000 +0000", who, ""),
		"c-badmail":      commit(tree, "A <a@b> c> 1700000000 +0000", who, ""),
		"c-gtname":       commit(tree, "A> <a@b> 1700000000 +0000", who, ""),
		"c-nodate":       commit(tree, "A <a@b>", who, ""),
		"c-baddate":      commit(tree, "A <a@b> x +0000", who, ""),
		"c-zerodate":     commit(tree, "A <a@b> 01700000000 +0000", who, ""),
		"c-bigdate":      commit(tree, "A <a@b> 18446744073709551617 +0000", who, ""),
		"c-nozone":       commit(tree, "A <a@b> 1700000000", who, ""),
		"c-badzone":      commit(tree, "A <a@b> 1700000000 0000", who, ""),
		"c-oddzone":      commit(tree, "A <a@b> 1700000000 +9999", who, ""),
		"c-encoding":     commit(tree, who, who, "encoding latin1\n"),
		"c-gpgsig":       commit(tree, who, who, "gpgsig a\n b\n"),
		"c-gpgsigs":      commit(tree, who, who, "gpgsig a\ngpgsig b\n"),
		"c-unknown":      commit(tree, who, who, "x-header y\n"),
		"c-nul":          commit(tree, who, who, "x\x00y\n"),
		"c-nulbody":      append(commit(tree, who, who, ""), 0, 'x'),
		"c-noauthor":     []byte("tree " + tree + "\ncommitter " + who + "\n\nm\n"),
		"c-nocommitter":  []byte("tree " + tree + "\nauthor " + who + "\n\nm\n"),
		"c-twoauthors":   []byte("tree " + tree + "\nauthor " + who + "\nauthor " + who + "\ncommitter " + who + "\n\nm\n"),
		"c-twotrees":     []byte("tree " + tree + "\ntree " + tree + "\nauthor " + who + "\ncommitter " + who + "\n\nm\n"),
		"c-notree":       []byte("author " + who + "\ncommitter " + who + "\n\nm\n"),
		"c-badtree":      []byte("tree 123\nauthor " + who + "\ncommitter " + who + "\n\nm\n"),
		"c-badparent":    []byte("tree " + tree + "\nparent 123\nauthor " + who + "\ncommitter " + who + "\n\nm\n"),
		"c-missparent":   []byte("tree " + tree + "\nparent " + p.names["no"] + "\nauthor " + who + "\ncommitter " + who + "\n\nm\n"),
		"c-blobparent":   []byte("tree " + tree + "\nparent " + blob + "\nauthor " + who + "\ncommitter " + who + "\n\nm\n"),
		"c-blobtree":     commit(blob, who, who, ""),
		"c-committree":   commit(p.names["one"], who, who, ""),
		"c-misstree":     commit(p.names["no"], who, who, ""),
		"c-nobody":       []byte("tree " + tree + "\nauthor " + who + "\ncommitter " + who + "\n"),
		"c-noend":        []byte("tree " + tree + "\nauthor " + who + "\ncommitter " + who),
		"c-empty":        []byte(""),
		"c-crlf":         []byte("tree " + tree + "\r\nauthor " + who + "\r\ncommitter " + who + "\r\n\r\nm\r\n"),
		"g-plain":        []byte("object " + p.names["new"] + "\ntype commit\ntag x\ntagger " + who + "\n\nm\n"),
		"g-notagger":     []byte("object " + p.names["new"] + "\ntype commit\ntag x\n\nm\n"),
		"g-badtagger":    []byte("object " + p.names["new"] + "\ntype commit\ntag x\ntagger A\n\nm\n"),
		"g-badname":      []byte("object " + p.names["new"] + "\ntype commit\ntag wrong name format\ntagger " + who + "\n\nm\n"),
		"g-noname":       []byte("object " + p.names["new"] + "\ntype commit\ntagger " + who + "\n\nm\n"),
		"g-notype":       []byte("object " + p.names["new"] + "\ntag x\ntagger " + who + "\n\nm\n"),
		"g-badtype":      []byte("object " + p.names["new"] + "\ntype thing\ntag x\ntagger " + who + "\n\nm\n"),
		"g-wrongtype":    []byte("object " + blob + "\ntype commit\ntag x\ntagger " + who + "\n\nm\n"),
		"g-blob":         []byte("object " + blob + "\ntype blob\ntag x\ntagger " + who + "\n\nm\n"),
		"g-tree":         []byte("object " + tree + "\ntype tree\ntag x\ntagger " + who + "\n\nm\n"),
		"g-missing":      []byte("object " + p.names["no"] + "\ntype commit\ntag x\ntagger " + who + "\n\nm\n"),
		"g-nul":          []byte("object " + p.names["new"] + "\ntype commit\ntag x\x00y\ntagger " + who + "\n\nm\n"),
		"g-extra":        []byte("object " + p.names["new"] + "\ntype commit\ntag x\ntagger " + who + "\njunk y\n\nm\n"),
		"g-gpgsig":       []byte("object " + p.names["new"] + "\ntype commit\ntag x\ntagger " + who + "\ngpgsig a\n b\n\nm\n"),
		"g-noend":        []byte("object " + p.names["new"] + "\ntype commit\ntag x\ntagger " + who),
		"t-dup":          []byte(entry("100644", "x", blob) + entry("100644", "x", blob)),
		"t-dupdir":       []byte(entry("100644", "x", blob) + entry("100644", "x-", blob) + entry("40000", "x", tree)),
		"t-unsorted":     []byte(entry("100644", "y", blob) + entry("100644", "x", blob)),
		"t-dirsort":      []byte(entry("40000", "x", tree) + entry("100644", "x.y", blob)),
		"t-dot":          []byte(entry("100644", ".", blob)),
		"t-dotdot":       []byte(entry("40000", "..", tree)),
		"t-dotgit":       []byte(entry("40000", ".git", tree)),
		"t-DotGit":       []byte(entry("40000", ".GiT", tree)),
		"t-gittilde":     []byte(entry("40000", "git~1", tree)),
		"t-hfsdotgit":    []byte(entry("40000", ".g\u200cit", tree)),
		"t-oslash":       []byte(entry("100644", ".Ňit", blob)),
		"t-slash":        []byte(entry("100644", "x/y", blob)),
		"t-backslash":    []byte(entry("100644", "x\\y", blob)),
		"t-noname":       []byte(entry("100644", "", blob)),
		"t-zero":         []byte(entry("100644", "x", p.names["zero"])),
		"t-subzero":      []byte(entry("160000", "x", p.names["zero"])),
		"t-sub":          []byte(entry("160000", "x", p.names["no"])),
		"t-padded":       []byte(entry("0100644", "x", blob)),
		"t-0664":         []byte(entry("100664", "x", blob)),
		"t-0600":         []byte(entry("100600", "x", blob)),
		"t-oddmode":      []byte(entry("120000", "x", blob)),
		"t-badmode":      []byte(entry("666", "x", blob)),
		"t-modeletters":  []byte(entry("10064x", "x", blob)),
		"t-nomode":       []byte(entry("", "x", blob)),
		"t-cut":          []byte(entry("100644", "x", blob)[:20]),
		"t-nonul":        []byte("100644 x"),
		"t-empty":        {},
		"t-missblob":     []byte(entry("100644", "x", p.names["no"])),
		"t-misstree":     []byte(entry("40000", "x", p.names["no"])),
		"t-blobastree":   []byte(entry("40000", "x", blob)),
		"t-treeasblob":   []byte(entry("100644", "x", tree)),
		"t-commitasblob": []byte(entry("100644", "x", p.names["one"])),
		"t-longname":     []byte(entry("100644", strings.Repeat("n", 4097), blob)),
		"t-longname-1":   []byte(entry("100644", strings.Repeat("n", 4096), blob)),
		"t-modlink":      []byte(entry("120000", ".gitmodules", blob)),
		"t-moddir":       []byte(entry("40000", ".gitmodules", tree)),
		"t-attrlink":     []byte(entry("120000", ".gitattributes", blob)),
		"t-ignorelink":   []byte(entry("120000", ".gitignore", blob)),
		"t-maillink":     []byte(entry("120000", ".mailmap", blob)),
	} {
		kind := map[byte]string{'c': "commit", 'g': "tag", 't': "tree"}[name[0]]
		h := p.object(kind, c)
		p.names[name] = h
		if kind == "tree" {
			p.names["tc-"+name[2:]] = p.object("commit", commit(h, who, who, ""))
		}
	}
	for name, text := range map[string]string{
		"m-good": "[submodule \"a\"]\n\tpath = a\n\turl = https://example.com/a\n", "m-updir": "[submodule \"../a\"]\n\tpath = a\n\turl = https://example.com/a\n",
		"m-dashurl": "[submodule \"a\"]\n\tpath = a\n\turl = -oProxyCommand=x\n", "m-dashpath": "[submodule \"a\"]\n\tpath = -a\n\turl = https://example.com/a\n",
		"m-update": "[submodule \"a\"]\n\tpath = a\n\turl = https://example.com/a\n\tupdate = !id\n", "m-broken": "[submodule \"a\n",
		"m-lfurl": "[submodule \"a\"]\n\tpath = a\n\turl = https://example.com/a%0ahost=b\n", "m-relurl": "[submodule \"a\"]\n\tpath = a\n\turl = ../../../../..//evil\n",
	} {
		b := p.object("blob", []byte(text))
		p.names[name] = p.object("tree", []byte(entry("100644", ".gitmodules", b)))
		p.names["mb-"+name[2:]] = b
		p.names["mc-"+name[2:]] = p.object("commit", commit(p.names[name], who, who, ""))
	}
	for name, text := range map[string]string{"a-long": strings.Repeat("x", 3000) + " text\n", "a-good": "*.x text\n"} {
		b := p.object("blob", []byte(text))
		p.names[name] = p.object("tree", []byte(entry("100644", ".gitattributes", b)))
		p.names["ab-"+name[2:]] = b
		p.names["ac-"+name[2:]] = p.object("commit", commit(p.names[name], who, who, ""))
	}
}

// pushTable has the cases.
func pushTable() []pushes {
	list := []pushes{
		// The protocol.
		{"nothing", nil, "", ""},
		{"flush", []string{"0000"}, "", ""},
		{"text", []string{"<GET / HTTP/1.1\r\n\r\n"}, "", ""},
		{"no command", []string{"hello" + reports, "0000"}, "", ""},
		{"empty line", []string{"<0004", "0000"}, "", ""},
		{"length of three", []string{"<0003", "0000"}, "", ""},
		{"length beyond the longest", []string{"<ffff"}, "", ""},
		{"a delimiter", []string{"<0001"}, "", ""},
		{"old name too short", []string{"{zero}"[:5] + " {new} refs/heads/x" + reports, "0000"}, "revs {new} ^{two}", ""},
		{"new name of 41 digits", []string{"{zero} {new}0 refs/heads/x" + reports, "0000"}, "revs {new} ^{two}", ""},
		{"two spaces", []string{"{zero}  {new} refs/heads/x" + reports, "0000"}, "revs {new} ^{two}", ""},
		{"no ref", []string{"{zero} {new} " + reports, "0000"}, "revs {new} ^{two}", "it reports on a ref without a name; here it is a broken line"},
		{"line feed behind the ref", []string{"{zero} {new} refs/heads/x\n", "0000"}, "revs {new} ^{two}", ""},
		{"second command broken", []string{"{zero} {new} refs/heads/x" + reports, "nonsense", "0000"}, "revs {new} ^{two}", "it ends without a report; here the first is reported on"},
		{"capabilities of the second command", []string{"{zero} {new} refs/heads/x", "{zero} {new} refs/heads/y" + reports, "0000"}, "revs {new} ^{two}", ""},
		{"unknown capability", []string{"{zero} {new} refs/heads/x" + reports + " frobnicate=1", "0000"}, "revs {new} ^{two}", ""},
		{"other object format", []string{"{zero} {new} refs/heads/x" + reports + " object-format=sha256", "0000"}, "revs {new} ^{two}", "it ends without a report"},
		{"no report", []string{"{zero} {new} refs/heads/x\x00", "0000"}, "revs {new} ^{two}", ""},
		{"second version of the report", []string{"{zero} {new} refs/heads/x\x00 report-status-v2", "0000"}, "revs {new} ^{two}", ""},
		{"side-band", []string{"{zero} {new} refs/heads/x" + reports + " side-band-64k", "0000"}, "revs {new} ^{two}", ""},
		{"cut before the flush", []string{"{zero} {new} refs/heads/x" + reports}, "", ""},
		{"a push certificate", []string{"push-cert" + reports, "0000"}, "", ""},
		{"options", []string{"{zero} {new} refs/heads/x" + reports + " push-options", "0000", "a", "b=c", "0000"}, "revs {new} ^{two}", ""},
		{"no options after all", []string{"{zero} {new} refs/heads/x" + reports + " push-options", "0000", "0000"}, "revs {new} ^{two}", ""},
		{"shallow of nothing", []string{"shallow {no}", "{zero} {new} refs/heads/x" + reports, "0000"}, "revs {new} ^{two}", ""},
		{"shallow line broken", []string{"shallow 123", "{zero} {new} refs/heads/x" + reports, "0000"}, "revs {new} ^{two}", ""},
		{"shallow at what is there", []string{"shallow {two}", "{zero} {new} refs/heads/x" + reports, "0000"}, "revs {new} ^{two}", ""},
		{"shallow root that is new", []string{"shallow {new}", "{zero} {new} refs/heads/x" + reports, "0000"}, "revs {new} ^{two}", "it refuses the root though nothing is missing behind it"},
		// Refs.
		{"a branch", []string{"{zero} {new} refs/heads/x" + reports, "0000"}, "revs {new} ^{two}", ""},
		{"an unrelated branch", []string{"{zero} {orphan} refs/heads/x" + reports, "0000"}, "revs {orphan}", ""},
		{"a branch of what is there, empty pack", []string{"{zero} {two} refs/heads/x" + reports, "0000"}, "objects", ""},
		{"an update", []string{"{one} {new} refs/heads/old" + reports, "0000"}, "revs {new} ^{two}", ""},
		{"a rewind", []string{"{one} {orphan} refs/heads/old" + reports, "0000"}, "revs {orphan}", ""},
		{"old value wrong", []string{"{two} {new} refs/heads/old" + reports, "0000"}, "revs {new} ^{two}", ""},
		{"old value of what is not there", []string{"{two} {new} refs/heads/x" + reports, "0000"}, "revs {new} ^{two}", ""},
		{"creation of what is there", []string{"{zero} {new} refs/heads/old" + reports, "0000"}, "revs {new} ^{two}", ""},
		{"to the same value", []string{"{one} {one} refs/heads/old" + reports, "0000"}, "objects", ""},
		{"deletion", []string{"{one} {zero} refs/heads/old" + reports, "0000"}, "", ""},
		{"deletion of a tag", []string{"{one} {zero} refs/tags/v0" + reports, "0000"}, "", ""},
		{"deletion of the current branch", []string{"{two} {zero} refs/heads/master" + reports, "0000"}, "", ""},
		{"deletion with a wrong old value", []string{"{two} {zero} refs/heads/old" + reports, "0000"}, "", ""},
		{"deletion of what is not there", []string{"{zero} {zero} refs/heads/x" + reports, "0000"}, "", ""},
		{"deletion of what is not there, with a value", []string{"{one} {zero} refs/heads/x" + reports, "0000"}, "", ""},
		{"deletion below what is there", []string{"{zero} {zero} refs/heads/old/x" + reports, "0000"}, "", "it fails to lock a ref below a ref; there is nothing to delete either way"},
		{"two refs, one wrong", []string{"{zero} {new} refs/heads/x" + reports, "{two} {new} refs/heads/old", "0000"}, "revs {new} ^{two}", ""},
		{"two refs, one wrong, atomic", []string{"{zero} {new} refs/heads/x" + reports + " atomic", "{two} {new} refs/heads/old", "0000"}, "revs {new} ^{two}", ""},
		{"two refs, atomic", []string{"{zero} {new} refs/heads/x" + reports + " atomic", "{one} {new} refs/heads/old", "0000"}, "revs {new} ^{two}", ""},
		{"creation and deletion, atomic", []string{"{zero} {new} refs/heads/x" + reports + " atomic", "{one} {zero} refs/heads/old", "0000"}, "revs {new} ^{two}", ""},
		{"a ref twice, atomic", []string{"{zero} {new} refs/heads/x" + reports + " atomic", "{zero} {two} refs/heads/x", "0000"}, "revs {new} ^{two}", ""},
		{"a ref below a ref", []string{"{zero} {new} refs/heads/old/x" + reports, "0000"}, "revs {new} ^{two}", ""},
		{"a ref above a ref", []string{"{zero} {new} refs/heads/dir" + reports, "0000"}, "revs {new} ^{two}", ""},
		{"a ref above one that goes", []string{"{one} {zero} refs/heads/dir/x" + reports, "{zero} {new} refs/heads/dir", "0000"}, "revs {new} ^{two}", ""},
		{"two new refs in each other's way", []string{"{zero} {new} refs/heads/q" + reports, "{zero} {new} refs/heads/q/r", "0000"}, "revs {new} ^{two}", ""},
		{"a tag", []string{"{zero} {tag} refs/tags/v1" + reports, "0000"}, "revs {tag} ^{two}", ""},
		{"a tag that moves", []string{"{one} {tag} refs/tags/v0" + reports, "0000"}, "revs {tag} ^{two}", ""},
		{"a tag as a branch", []string{"{zero} {tag} refs/heads/x" + reports, "0000"}, "revs {tag} ^{two}", ""},
		{"a tree as a branch", []string{"{zero} {oldtree} refs/heads/x" + reports, "0000"}, "objects {oldtree}", ""},
		{"a blob as a tag", []string{"{zero} {blob} refs/tags/x" + reports, "0000"}, "objects {blob}", ""},
		{"a tree as a tag", []string{"{zero} {oldtree} refs/tags/x" + reports, "0000"}, "objects", ""},
		{"a note", []string{"{zero} {new} refs/notes/x" + reports, "0000"}, "revs {new} ^{two}", ""},
		{"a ref of another folder", []string{"{zero} {new} refs/pull/1/head" + reports, "0000"}, "revs {new} ^{two}", ""},
		{"not below refs", []string{"{zero} {new} heads/x" + reports, "0000"}, "revs {new} ^{two}", ""},
		{"HEAD", []string{"{zero} {new} HEAD" + reports, "0000"}, "revs {new} ^{two}", ""},
		{"refs of one level", []string{"{zero} {new} refs/x" + reports, "0000"}, "revs {new} ^{two}", ""},
	}
	for _, name := range []string{"x..y", "x.lock", ".x", "x/.y", "x y", "x~1", "x^", "x:y", "x?", "x*", "x[y", "x\\y", "x/", "/x", "x//y", "x@{1}", "@", "-x", "x.", "é", "x\x7f", "a.lock/b"} {
		list = append(list, pushes{"ref named " + name, []string{"{zero} {new} refs/heads/" + name + reports, "0000"}, "revs {new} ^{two}", ""})
	}
	branch := []string{"{zero} {new} refs/heads/x" + reports, "0000"}
	for _, how := range []string{"", "revs {new}", "thin {new} ^{two}", "revs {new}|cut", "revs {new}|flip", "revs {new}|trailer", "revs {new}|trailing", "revs {new}|version", "revs {new}|count", "revs {new}|signature",
		"objects {new}", "objects {new} {tree}", "objects {tree} {blob}", "objects"} {
		list = append(list, pushes{"pack " + how, branch, how, ""})
	}
	for name, x := range fscked {
		what, _, _ := strings.Cut(name, " ")
		kind, ref := what[:2], "refs/tags/x"
		if kind == "c-" {
			ref = "refs/heads/x"
		}
		pack := "objects {" + what + "} {tree} {oldtree} {blob}"
		top := what
		switch kind {
		case "g-":
			pack = "objects {" + what + "} {new} {tree} {blob}"
		case "t-":
			top, ref = "tc-"+what[2:], "refs/heads/x"
			pack += " {" + top + "}"
		case "m-":
			top, ref = "mc-"+what[2:], "refs/heads/x"
			pack = "objects {" + what + "} {" + top + "} {mb-" + what[2:] + "}"
		case "a-":
			top, ref = "ac-"+what[2:], "refs/heads/x"
			pack = "objects {" + what + "} {" + top + "} {ab-" + what[2:] + "}"
		}
		list = append(list, pushes{"object " + name, []string{"{zero} {" + top + "} " + ref + reports, "0000"}, pack, x})
	}
	slices.SortFunc(list, func(a, b pushes) int { return strings.Compare(a.name, b.name) })
	return list
}

const people = "who made a commit or tag, and when, is let through in any form: old and converted histories hold them all (package fsck)"

// fscked names objects of spoiled, and why git judges them differently.
var fscked = map[string]string{
	"c-noat":         "",
	"c-noemail":      people,
	"c-noname":       "",
	"c-badmail":      people,
	"c-gtname":       people,
	"c-nodate":       people,
	"c-baddate":      people,
	"c-zerodate":     people,
	"c-bigdate":      people,
	"c-nozone":       people,
	"c-badzone":      people,
	"c-oddzone":      "",
	"c-encoding":     "",
	"c-gpgsig":       "",
	"c-gpgsigs":      "",
	"c-unknown":      "",
	"c-nul":          "",
	"c-nulbody":      "a NUL in a message is let through (package fsck)",
	"c-noauthor":     "",
	"c-nocommitter":  "",
	"c-twoauthors":   people,
	"c-twotrees":     "",
	"c-notree":       "",
	"c-badtree":      "",
	"c-badparent":    "",
	"c-missparent":   "",
	"c-blobparent":   "",
	"c-blobtree":     "",
	"c-committree":   "",
	"c-misstree":     "",
	"c-nobody":       "",
	"c-noend":        "",
	"c-empty":        "",
	"c-crlf":         "",
	"g-plain":        "",
	"g-notagger":     "",
	"g-badtagger":    people,
	"g-badname":      "",
	"g-noname":       "",
	"g-notype":       "",
	"g-badtype":      "",
	"g-wrongtype":    "",
	"g-blob":         "",
	"g-tree":         "",
	"g-missing":      "",
	"g-nul":          "",
	"g-extra":        "",
	"g-gpgsig":       "",
	"g-noend":        "",
	"t-dup":          "",
	"t-dupdir":       "",
	"t-unsorted":     "",
	"t-dirsort":      "",
	"t-dot":          "",
	"t-dotdot":       "",
	"t-dotgit":       "",
	"t-DotGit":       "",
	"t-gittilde":     "",
	"t-hfsdotgit":    "",
	"t-oslash":       "",
	"t-slash":        "",
	"t-backslash":    "",
	"t-noname":       "",
	"t-zero":         "",
	"t-subzero":      "",
	"t-sub":          "",
	"t-padded":       "a padded mode is let through: old histories hold them (package fsck)",
	"t-0664":         "",
	"t-0600":         "",
	"t-oddmode":      "",
	"t-badmode":      "a file that is not a file, folder, link or submodule cannot be checked out",
	"t-modeletters":  "",
	"t-nomode":       "",
	"t-cut":          "",
	"t-nonul":        "",
	"t-empty":        "",
	"t-missblob":     "",
	"t-misstree":     "",
	"t-blobastree":   "",
	"t-treeasblob":   "",
	"t-commitasblob": "",
	"t-longname":     "",
	"t-longname-1":   "",
	"t-modlink":      "",
	"t-moddir":       "a folder named .gitmodules is let through: not used",
	"t-attrlink":     "",
	"t-ignorelink":   "",
	"t-maillink":     "",
	"m-good":         "",
	"m-updir":        "",
	"m-dashurl":      "",
	"m-dashpath":     "",
	"m-update":       "",
	"m-broken":       "",
	"m-lfurl":        "",
	"m-relurl":       "",
	"a-long":         "a long line of .gitattributes is let through: it is bounded where it is read",
	"a-good":         "",
}
