package checkout

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"corpus-git/git/attributes"
	"corpus-git/git/store"
	"corpus-git/internal/draw"
	"corpus-git/internal/testutil/gittest"
)

// attributesCases makes .gitattributes, and files that they may match, from relevant and unusual parts.
type attributesCases struct{ *rand.Rand }

func (r attributesCases) one(from ...string) string { return from[r.IntN(len(from))] }

func (r attributesCases) pattern() string {
	var b strings.Builder
	for range 1 + r.IntN(5) {
		b.WriteString(r.one("*", "*", "**", "**/", "/", "/", "?", "a", "a", "b", "x", "c", ".txt", ".txt", "[a-c]", "[!a]", "[^b]", "[[:alpha:]]", "[[:punct:]x]",
			`[a\-c]`, `\*`, `\a`, `[]a]`, "[a", "[[:foo:]]", "[[:alpha]", "[a-", "[--0]", `[\\-b]`, "é", "***", `\`, "]", "-", "A", "/**", "/**/"))
	}
	p := b.String()
	switch r.IntN(14) {
	case 0:
		p = "/" + p
	case 1:
		p = "!" + p
	case 2:
		p += "/"
	case 3:
		return strconv.QuoteToASCII(p) // \u is not one of git's escapes
	case 4:
		return `"` + strings.NewReplacer(`\`, `\\`, "a", `\141`, "é", `\303\251`).Replace(p) + `"` + r.one("", " ")
	case 5:
		return `"` + p
	case 6:
		return r.one(`"x y"`, `"x\40y"`, `"\x"`, `"\400"`, `"\18"`, `"a\000b"`, "[attr]", "[attr]/")
	}
	return p
}

func (r attributesCases) word() string {
	return r.one("text", "-text", "!text", "text=auto", "text=auto", "text=input", "text=true", "text=no", "eol=crlf", "eol=crlf", "eol=crlf", "eol=lf", "eol", "-eol", "!eol",
		"crlf", "-crlf", "!crlf", "crlf=auto", "crlf=input", "ident", "ident", "-ident", "!ident", "ident=x", "binary", "-binary", "!binary", "binary=x", "m1", "m1", "m2", "m2", "-m1", "!m1", "m2=x", "-m2",
		"filter=nope", "filter", "-filter", "!filter", "working-tree-encoding=UTF-8", "working-tree-encoding=UTF-16", "working-tree-encoding=utf-16le",
		"working-tree-encoding=UTF-16BE", "working-tree-encoding=UTF-16LE-BOM", "working-tree-encoding=utf16be-bom", "working-tree-encoding=UTF-32", "working-tree-encoding=UTF-32BE", "working-tree-encoding=UTF-32LE",
		"working-tree-encoding=latin1", "working-tree-encoding=ISO-8859-1", "working-tree-encoding=", "!working-tree-encoding", "diff", "-text=auto", "!eol=crlf", "text=", "a.b_c-d", "x=y=z")
}

func (r attributesCases) line() string {
	words := make([]string, r.IntN(4))
	for i := range words {
		words[i] = r.word()
	}
	if r.IntN(25) == 0 {
		words = append(words, r.one("te:xt", "--text", "=x", "-", "!", "-!x", "é", "tex\vt"))
	}
	p := r.pattern()
	if r.IntN(5) == 0 {
		p = "[attr]" + r.one("m1", "m1", "m2", "m2", "binary", "text", "eol", "-m", "m:1", "ident")
	}
	line := p + r.one(" ", " ", "\t", "  ", "\r ") + strings.Join(words, r.one(" ", " ", "\t"))
	switch r.IntN(20) {
	case 0:
		return "#" + line
	case 1:
		return " " + line
	case 2:
		return line + "\r"
	case 3:
		return line + strings.Repeat(" ", 2048)
	}
	return line
}

func (r attributesCases) file() string {
	lines := make([]string, r.IntN(9))
	for i := range lines {
		lines[i] = r.line()
	}
	text := strings.Join(lines, "\n") + r.one("\n", "\n", "")
	switch r.IntN(20) {
	case 0:
		return "\ufeff" + text
	case 1:
		return strings.Replace(text, "\n", "\n\x00", 1)
	}
	return text
}

func (r attributesCases) content() string {
	return r.one("", "a\nb\n", "a\nb\n", "a\r\nb\r\n", "a\r\nb\n", "a\rb\n", "a\x00b\n", "a\n\x1a", "\x01\x02\n", strings.Repeat("x", 200)+"\x01\n", "\n", "é\n", "é\r\n𝄞\n\ufeff", "\ufeffé", "€\n\xff\n",
		"$Id$\n", "$Id$ $Id: 12 $\n$Id: a b $Id$ $Id", "$Id:$\r\n$Id: x\n$ $Idx$ $$Id$", "$Id: x$\x00$Id:  $$Id: y $", "$I$Id$\n$Id:a b$ $Id: a\tb$ $Id: a\t$ $Id: \x00a b$$Id$")
}

func attributesNames() []string {
	return []string{"a", "b", "a.txt", "b.txt", "ab", "ax/x.txt", "c/x.txt", "c/b/x.txt", "c/b/c", "c/b.txt", "x/a/x", "x/a/b/c.txt", "é", "x y", "[a", "*", "a*b", `a\b`, "A.txt",
		"c/b/c/b/x", "-", "a]", "x/c/b/a/x.txt", "c/.txt", "!a", "#a", `"a"`, "x/[attr]"}
}

// Whatever .gitattributes contains, a path has the attributes that git finds, and a checkout writes what git's own writes.
func TestAttributesAgreeWithGit(t *testing.T) {
	const fixed, drawn = 40, 15
	for _, s := range []struct {
		name string
		seed uint64
		n    int
	}{{"fixed", 5, fixed}, {"drawn", draw.Seed(t) << 32, drawn}} {
		t.Run(s.name, func(t *testing.T) { attributesAgree(t, attributesCases{rand.New(rand.NewPCG(s.seed, 1))}, s.n) })
	}
}

func attributesAgree(t *testing.T, r attributesCases, n int) {
	top := t.TempDir()
	bare := filepath.Join(top, "bare.git")
	gittest.Git(t, top, "init", "-q", "--bare", bare)
	var in bytes.Buffer
	names := attributesNames()
	texts := make([]string, n)
	for i := range n {
		fmt.Fprintf(&in, "commit refs/heads/master\nmark :%d\ncommitter C <c@example.org> 1700000000 +0000\ndata 0\ndeleteall\n", i+1)
		put := func(name, text string) {
			fmt.Fprintf(&in, "M 100644 inline \"%s\"\ndata %d\n%s\n", strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name), len(text), text)
		}
		for _, dir := range []string{"", "", "c/", "c/b/", "x/"} {
			if text := r.file(); text != "" {
				put(dir+attributes.FileName, text)
				texts[i] += fmt.Sprintf("%s: %q\n", dir+attributes.FileName, text)
			}
		}
		for _, name := range names {
			put(name, r.content())
		}
	}
	gittest.GitIn(t, bare, in.Bytes(), "fast-import", "--quiet", "--export-marks="+filepath.Join(top, "marks"))
	commits := strings.Fields(gittest.Git(t, bare, "rev-list", "--reverse", "master"))
	trees := strings.Fields(gittest.Git(t, bare, "log", "--reverse", "--format=%T", "master"))
	require.Len(t, commits, n)
	objs, err := store.Open(bare, store.Options{})
	require.NoError(t, err)
	defer objs.Close()
	dir := filepath.Join(top, "project")
	for i, c := range commits {
		// git's, into an empty folder with an empty index.
		want := filepath.Join(top, "want"+strconv.Itoa(i))
		require.NoError(t, os.Mkdir(want, 0o755))
		run := func(stdin string, args ...string) string {
			cmd := exec.Command("git", append([]string{"--git-dir", bare, "--work-tree", want, "-c", "core.bare=false"}, args...)...)
			cmd.Dir, cmd.Stdin = want, strings.NewReader(stdin)
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_ATTR_NOSYSTEM=1", "GIT_INDEX_FILE="+filepath.Join(top, "index"+strconv.Itoa(i)))
			var errs bytes.Buffer
			cmd.Stderr = &errs
			out, err := cmd.Output()
			require.NoError(t, err, "%s\n%s", texts[i], errs.String())
			return string(out)
		}
		run("", "read-tree", "--reset", "-u", c)
		said := strings.Split(run(strings.Join(names, "\x00")+"\x00", append([]string{"check-attr", "--cached", "-z", "--stdin"}, attributes.CheckoutNames()...)...), "\x00")

		_, err := Sync(context.Background(), Request{Objects: objs, Repo: bare, Commit: plumbing.NewHash(c), Dir: dir, Branch: "refs/heads/master", NoSync: true})
		require.NoError(t, err, texts[i])
		list, err := newTreeLister(context.Background(), objs, 1, 0).list(plumbing.NewHash(trees[i]), nil)
		require.NoError(t, err)
		a, err := attributesOf(objs, list.entries)
		require.NoError(t, err)
		for len(said) >= 3 {
			name, attr, v := said[0], said[1], said[2]
			said = said[3:]
			require.Equal(t, v, inWords(a, name, attr), "%s of %q\n%s", attr, name, texts[i])
		}
		require.Equal(t, manifest(t, want), manifest(t, dir), texts[i])
	}
}

// inWords formats a path's attribute as git check-attr does.
func inWords(a *attributes.Attributes, name, attr string) string {
	if a == nil {
		return "unspecified"
	}
	switch v := a.Of(name)[slices.Index(attributes.CheckoutNames(), attr)]; v.State {
	case attributes.Set:
		return "set"
	case attributes.Unset:
		return "unset"
	case attributes.HasValue:
		return v.Text
	}
	return "unspecified"
}
