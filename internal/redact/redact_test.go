package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/redact"
	"corpus-git/internal/saltyaml"
)

func one(v string) *redact.Redactor { return redact.New([]redact.Secret{{Label: "k", Value: v}}) }

func TestString(t *testing.T) {
	r := redact.New([]redact.Secret{
		{Label: "db.password", Value: "s3cr3t-pa55"}, {Label: "db.long", Value: "s3cr3t-pa55-longer"}, {Label: "words", Value: "correct horse battery"},
		{Label: "pem", Value: "BEGIN KEY\nAAAABBBBCCCC\nDDDDEEEEFFFF\nEND KEY\n"}, {Label: "next", Value: "horse battery staple"}, {Label: "tiny", Value: "abc"},
	})
	for in, want := range map[string]string{
		"":                               "",
		"nothing here":                   "nothing here",
		"pw=s3cr3t-pa55;":                "pw=[pillar:db.password];",
		"s3cr3t-pa55":                    "[pillar:db.password]",
		"s3cr3t-pa55-longer":             "[pillar:db.long]",
		"s3cr3t-pa55-longe":              "[pillar:db.long]", // truncated
		"s3cr3t-pa55-l.":                 "[pillar:db.password]-l.",
		"s3cr3t-pa55 s3cr3t-pa55":        "[pillar:db.password] [pillar:db.password]",
		"s3cr3t-pa55s3cr3t-pa55":         "[pillar:db.password]",
		"s3cr\n3t-p\r\na55!":             "[pillar:db.password]!",
		"s3cr\n    3t-pa55!":             "[pillar:db.password]!",
		"s3cr 3t-pa55!":                  "s3cr 3t-pa55!",
		"a correct horse battery!":       "a [pillar:words]!",
		"correct\n  horse   battery":     "[pillar:words]",
		"correcthorsebattery":            "correcthorsebattery",
		"correct horse battery staple":   "[pillar:words]",
		"+AAAABBBBCCCC\n+DDDDEEEEFFFF\n": "+[pillar:pem]\n+[pillar:pem]\n",
		"BEGIN KEY\nAAAABBBBCCCC\nDDDDEEEEFFFF\nEND KEY\n":          "[pillar:pem]\n",
		`{"k": "BEGIN KEY\nAAAABBBBCCCC\nDDDDEEEEFFFF\nEND KEY\n"}`: `{"k": "[pillar:pem]"}`,
		"\x1b[31ms3cr\x1b[0m3t-pa55\x1b[0m":                         "\x1b[31m[pillar:db.password]\x1b[0m",
		"abc stays":                                                 "abc stays",
		"s3cr3t-pa5":                                                "[pillar:db.password]",
		"s3cr3":                                                     "s3cr3",
	} {
		require.Equal(t, want, r.String(in), "%q", in)
		require.Equal(t, want != in, r.Contains(in), "%q", in)
	}
}

func TestZeroHidesEverything(t *testing.T) {
	var zero redact.Redactor
	var null *redact.Redactor
	for _, r := range []*redact.Redactor{&zero, null} {
		require.Equal(t, "[redacted]", r.String("anything"))
		require.Equal(t, "", r.String(""))
		require.True(t, r.Contains("x"))
		var b bytes.Buffer
		w := r.Writer(&b)
		fmt.Fprint(w, "one ")
		fmt.Fprint(w, "line\nnext\n\n")
		require.NoError(t, w.Idle())
		require.NoError(t, w.Flush())
		require.Equal(t, "[redacted]\n[redacted]\n\n", b.String())
		require.NotContains(t, r.Error(fault.New(fault.Refused, "x", "why")).Error(), "why")
	}
	require.Equal(t, "anything", redact.None().String("anything"))
}

// TestForms prints a value as the tools of a step would, in the middle of other text.
func TestForms(t *testing.T) {
	for _, v := range []string{"pa$$ w'o\"r\\d/é<&>%", "simple-value-1", "line one\nline two\twith 'tab'", "https://u:p%40ss@host/x?y=z&a=b#f", "日本語のパスワード😀", "trailing newline\n", "{\"json\": \"in it\"}"} {
		r := one(v)
		js, _ := json.Marshal(v)
		ascii := py.Repr(v)
		yaml1, err := saltyaml.Dump(py.NewDict("a", v), saltyaml.DumpOptions{Flow: saltyaml.BlockStyle})
		require.NoError(t, err)
		texts := map[string]string{
			"raw": v, "json": string(js), "python": ascii, "yaml": yaml1,
			"shell":  "'" + strings.ReplaceAll(v, "'", `'\''`) + "'",
			"shlex":  "'" + strings.ReplaceAll(v, "'", `'"'"'`) + "'",
			"double": `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(v) + `"`,
			"query":  url.QueryEscape(v), "path": url.PathEscape(v), "hex": hex.EncodeToString([]byte(v)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(v))),
			"folded": fold(v, 5), "quoted": fmt.Sprintf("%q", v), "quoted ascii": fmt.Sprintf("%+q", v),
		}
		nested, _ := json.Marshal(string(js))
		texts["json in json"], texts["repr of json"] = string(nested), py.Repr(string(js))
		inner, _ := json.Marshal(map[string]string{"password": v})
		body, _ := json.Marshal(map[string]string{"body": string(inner)})
		require.Equal(t, `{"body":"{\"password\":\"[pillar:k]\"}"}`, r.String(string(body)))
		for shift := range 3 {
			b := []byte(strings.Repeat("u", shift) + v + "tail")
			texts[fmt.Sprintf("base64 %d", shift)] = base64.StdEncoding.EncodeToString(b)
			texts[fmt.Sprintf("base64 url %d", shift)] = base64.RawURLEncoding.EncodeToString(b)
			texts[fmt.Sprintf("base64 folded %d", shift)] = fold(base64.StdEncoding.EncodeToString(b), 7)
		}
		for name, text := range texts {
			got := r.String("<<" + text + ">>")
			require.Contains(t, got, "[pillar:k]", "%s of %q: %s", name, v, text)
			require.Less(t, len(strings.ReplaceAll(got, "[pillar:k]", "")), len("<<")+len(">>")+len("tail")*3+12, "%s of %q leaves %s", name, v, got)
		}
	}
}

// The end of an encoded value is hidden too: its last character holds bits of the value, and padding shows its length.
func TestTheTailOfBase64GoesToo(t *testing.T) {
	for _, v := range []string{"s3cr3t-pa55", "s3cr3t-pa55w", "s3cr3t-pa55wo", "ü?>s3cr3t~~~"} {
		r := one(v)
		for _, end := range []string{"", "\n"} {
			for name, enc := range map[string]*base64.Encoding{"std": base64.StdEncoding, "raw": base64.RawStdEncoding, "url": base64.URLEncoding, "raw url": base64.RawURLEncoding} {
				require.Equal(t, "x: [pillar:k] y", r.String("x: "+enc.EncodeToString([]byte(v+end))+" y"), "%s of %q", name, v+end)
			}
		}
	}
}

func fold(s string, n int) string {
	var b strings.Builder
	for i, r := range []rune(s) {
		if i > 0 && i%n == 0 {
			b.WriteByte('\n')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func TestWriterHoldsOnlyWhatCanBecomeASecret(t *testing.T) {
	r := one("s3cr3t-pa55")
	var b bytes.Buffer
	w := r.Writer(&b)
	step := func(in, want string) {
		b.Reset()
		_, err := w.Write([]byte(in))
		require.NoError(t, err)
		require.Equal(t, want, b.String(), "%q", in)
	}
	step("hello", "hello")
	step(" yes", " ye")
	step("\n", "")
	require.Equal(t, 2, w.Pending())
	b.Reset()
	require.NoError(t, w.Idle())
	require.Equal(t, "s\n", b.String(), "one character is not a secret")
	step("3cr3t-pa55 x", "[pillar:k] x") // and its rest is hidden
	step("s3cr3t", "")
	require.NoError(t, w.Idle())
	require.Equal(t, 6, w.Pending(), "an idle stream does not show a secret's beginning")
	step("!", "s3cr3t!")
	step("s3cr3t-pa5", "")
	b.Reset()
	require.NoError(t, w.Flush())
	require.Equal(t, "[pillar:k]", b.String(), "a text that ends inside a secret")
	step("5", "5")
	step("\x1b[3", "")
	step("1ms3", "\x1b[31m")
	step("cr3\x1b[", "")
	step("0mt-pa55", "[pillar:k]")
	step("s3"+strings.Repeat("\n", 5000), "s3"+strings.Repeat("\n", 5000))
	require.Zero(t, w.Pending())
}

func TestWriterReportsErrors(t *testing.T) {
	w := one("s3cr3t-pa55").Writer(broken{})
	n, err := w.Write([]byte("x"))
	require.Error(t, err)
	require.Zero(t, n)
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, fmt.Errorf("broken") }

func TestExtend(t *testing.T) {
	r := one("first-secret")
	var b bytes.Buffer
	w := r.Writer(&b)
	fmt.Fprint(w, "first-secret second-secret second-")
	r.Extend([]redact.Secret{{Label: "n", Value: "second-secret"}, {Label: "again", Value: "first-secret"}})
	fmt.Fprint(w, "x first-secret second-")
	fmt.Fprint(w, "secret")
	require.NoError(t, w.Flush())
	require.Equal(t, "[pillar:k] second-secret second-x [pillar:k] [pillar:n]", b.String())
	var zero redact.Redactor
	zero.Extend(nil)
	require.Equal(t, "open", zero.String("open"))
}

func TestConcurrentUse(t *testing.T) {
	r := one("s3cr3t-pa55")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				require.NotContains(t, r.String("x s3cr3t-pa55 y"), "s3cr3t-pa55")
				if i == 0 {
					r.Extend([]redact.Secret{{Label: "n", Value: fmt.Sprintf("value-%d", j)}})
				}
			}
		})
	}
	wg.Wait()
}

func TestLabelsHoldNoSecret(t *testing.T) {
	r := redact.New([]redact.Secret{{Label: "users.hunter22", Value: "other-value"}, {Label: "me", Value: "hunter22"}, {Label: "x\x1b[31m\ny", Value: "control"}})
	require.Equal(t, "[redacted] [pillar:me] [pillar:x?[31m?y]", r.String("other-value hunter22 control"))
	r = redact.New([]redact.Secret{{Label: "a", Value: "pillar"}, {Label: "b", Value: "redacted"}})
	require.Equal(t, "[***] [***]", r.String("pillar redacted"))
}

func TestError(t *testing.T) {
	r := one("s3cr3t-pa55")
	require.NoError(t, r.Error(nil))
	e := fault.New(fault.Failed, "read s3cr3t-pa55", "bad s3cr3t-pa55: %w", fmt.Errorf("deep s3cr3t-pa55")).
		WithPos(fault.Pos{File: "s3cr3t-pa55.sls", Line: 3, Col: 2, Text: "a: s3cr3t-pa55"}).WithHint("not s3cr3t-pa55")
	for _, err := range []error{e, fmt.Errorf("wrapped s3cr3t-pa55: %w", e), fmt.Errorf("plain s3cr3t-pa55")} {
		got := r.Error(err)
		p, _ := fault.PosOf(got)
		all := fmt.Sprintf("%v %+v %#v %s %+v", got, got, got, fault.HintOf(got), p)
		require.NotContains(t, all, "s3cr3t")
		require.Equal(t, fault.KindOf(err), fault.KindOf(got))
	}
	got := r.Error(e)
	require.Equal(t, "[pillar:k].sls:3:2: read [pillar:k]: bad [pillar:k]: deep [pillar:k]", got.Error())
}

func TestSecretsOfAPillar(t *testing.T) {
	doc, err := saltyaml.Parse("init.sls", []byte(`
token: tok-123456
short: abc12
port: 123456789
on: true
nothing: ~
pi: 3.14159265
list: [item-one, {deep: item-two}]
2: numbered-key
quoted: '123456789'
shared: &s {pw: shared-value}
again: *s
redact_show: [visible.here, list.0]
visible:
  here: visible-one
  not: hidden-one
makina-projects.app:
  redact_show:
    - data.domain
  data:
    domain: www.example.org
    domain2: www.other.org
    password: in-the-code
`), saltyaml.Options{})
	require.NoError(t, err)
	got := map[string]string{}
	for _, s := range redact.NotIn(redact.Secrets(doc.Value.(*py.Dict)), func() []string { return []string{"nothing", "say in-the-code aloud"} }) {
		got[s.Label] = s.Value
	}
	require.Equal(t, map[string]string{
		"token": "tok-123456", "list.1.deep": "item-two", "2": "numbered-key", "quoted": "123456789", "shared.pw": "shared-value",
		"visible.not": "hidden-one", "makina-projects.app.data.domain2": "www.other.org",
	}, got)
	require.Empty(t, redact.Secrets(nil))
	unread := func() []string { panic("no pillar has a secret, so that no file of the recipe is read") }
	require.Empty(t, redact.NotIn(nil, unread))
	own := []redact.Secret{{Label: "smtp.password", Value: "in-the-code", Whose: "server"}}
	require.Equal(t, own, redact.NotIn(own, unread))
}

// TestLongValues hides values of any length without holding them back whole.
func TestLongValues(t *testing.T) {
	var v strings.Builder
	rng := rand.New(rand.NewPCG(1, 2))
	for v.Len() < 20_000 {
		fmt.Fprintf(&v, "%x", rng.Uint64())
	}
	r := one(v.String())
	require.Equal(t, "<[pillar:k]>", r.String("<"+v.String()+">"))
	var b bytes.Buffer
	w := r.Writer(&b)
	for _, c := range []byte("<" + v.String() + ">") {
		_, _ = w.Write([]byte{c})
		require.Less(t, w.Pending(), 3000)
	}
	require.NoError(t, w.Flush())
	require.Equal(t, "<[pillar:k]>", b.String())
}

// seen returns what a terminal shows of a text, without blanks.
func seen(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, s)
}

// Invisible bytes do not hide a secret from the redactor.
func TestUnseenCharactersHideNothing(t *testing.T) {
	r := redact.New([]redact.Secret{{Label: "k", Value: "s3cr3t-pa55"}, {Label: "u", Value: "pässwörter"}, {Label: "cjk", Value: "日本語の秘密"}, {Label: "bell", Value: "bell\x07inside\x1b[1m it"}})
	for _, x := range []string{
		"\x00", "\x07", "\x01", "\x7f", "\b", "\x1b", "\x1b[1m", "\x1b[38;2;255;100;10m", "\x1b[K", "\x1b[?25l", "\u200b", "\u202e", "\u2066", "\ufeff", "\u00ad", "\u009b",
		"\xff", "\xc3", "\ufe0f", "\x00\x1b[0m\u200d\x07",
	} {
		require.Equal(t, "<[pillar:k]>", r.String("<s3cr"+x+"3t-pa55>"), "%q", x)
		require.NotContains(t, r.String("<"+strings.Join(strings.Split("s3cr3t-pa55", ""), x)+">"), "pa55", "%q", x)
		require.NotContains(t, seen(r.String("<"+strings.Join(strings.Split("s3cr3t-pa55", ""), x)+">")), "s3cr3t", "%q", x)
	}
	for _, v := range []string{"s3cr3t-pa55", "pässwörter", "日本語の秘密"} {
		for _, little := range []bool{true, false} {
			require.Contains(t, r.String("<\x00"+wide(v, little)+"\x00>"), "[pillar:", "UTF-16 of %s", v)
		}
	}
	require.Contains(t, r.String("p\xe4ssw\xf6rter"), "[pillar:u]", "Latin-1")
	require.Equal(t, "x [pillar:bell] y", r.String("x bellinside it y"))
	require.NotContains(t, r.String("\x1b]0;s3cr3t-pa55\x07title"), "s3cr3t", "inside of an escape sequence")
}

func wide(s string, little bool) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		if little {
			b = binary.LittleEndian.AppendUint16(b, u)
		} else {
			b = binary.BigEndian.AppendUint16(b, u)
		}
	}
	return string(b)
}

// FuzzRedact splits a text that holds secrets into pieces: no secret survives, and the splitting changes nothing.
func FuzzRedact(f *testing.F) {
	f.Add("s3cr3t-pa55", "other secret", "x s3cr3t-pa55 other\n secret s3cr3t", uint64(1))
	f.Add("aaaaaa", "aaaaab", "aaaaaaaaaaaaaaab", uint64(2))
	f.Add("abcabcabd", "bcabcabcabd", "abcabcabcabdabcabcabd", uint64(3))
	f.Add("a b c d", "c d e f", "a b c d e f\x1b[1mg", uint64(4))
	f.Add("\x1b[31mred\x1b[0m", "red\x1b", "\x1b[31mred\x1b[0m", uint64(5))
	f.Add("\r\nx\ry\nzzzz", "zzzz  zzzz", "x y zzzz zzzz zzzz", uint64(6))
	f.Fuzz(func(t *testing.T, a, b, text string, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 0))
		secrets := []redact.Secret{{Label: "a", Value: a}, {Label: "b", Value: b}}
		for range rng.IntN(4) {
			at := rng.IntN(len(text) + 1)
			text = text[:at] + []string{a, b, fold(a, 3), a + b, b[:rng.IntN(len(b)+1)]}[rng.IntN(5)] + text[at:]
		}
		r := redact.New(secrets)
		want := r.String(text)
		for _, s := range secrets {
			// The significant bytes of a value that holds no colour sequence are found whatever blanks are between.
			if sq := seen(s.Value); len(s.Value) >= redact.MinBytes && len(sq) >= 4 && !strings.ContainsAny(s.Value, "[]\x1b*") && strings.Contains(want, strings.Trim(s.Value, " \r\n\t")) {
				t.Fatalf("%q survives in %q", s.Value, want)
			}
		}
		for range 3 {
			var out bytes.Buffer
			w := r.Writer(&out)
			for rest := text; rest != ""; {
				n := 1 + rng.IntN(len(rest))
				if rng.IntN(2) == 0 {
					n = min(n, 1+rng.IntN(4))
				}
				_, _ = w.Write([]byte(rest[:n]))
				rest = rest[n:]
			}
			_ = w.Flush()
			if strings.Contains(text, "\x1b") {
				continue // a whole text is also searched inside of escape sequences
			}
			if out.String() != want {
				t.Fatalf("%q cut into pieces gives %q, whole %q", text, out.String(), want)
			}
		}
	})
}

func BenchmarkWriter(b *testing.B) {
	var secrets []redact.Secret
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		secrets = append(secrets, redact.Secret{Label: fmt.Sprintf("k%d", i), Value: fmt.Sprintf("%x%x", rng.Uint64(), rng.Uint64())})
	}
	r := redact.New(secrets)
	line := []byte("remote: npm WARN deprecated request@2.88.2: request has been deprecated, see https://github.com/request/request/issues/3142\n")
	text := bytes.Repeat(line, 200)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		w := r.Writer(discard{})
		_, _ = w.Write(text)
		_ = w.Flush()
	}
}

func BenchmarkNew(b *testing.B) {
	var secrets []redact.Secret
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 50 {
		secrets = append(secrets, redact.Secret{Label: fmt.Sprintf("k%d", i), Value: fmt.Sprintf("%x%x", rng.Uint64(), rng.Uint64())})
	}
	for b.Loop() {
		redact.New(secrets)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
