package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/compile"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/host"
)

// recorder is a Sink that keeps everything.
type recorder struct {
	mu     sync.Mutex
	starts []sls.StateRef
	done   []sls.StateResult
	lines  []string
}

func (r *recorder) StateStart(ref sls.StateRef)   { r.starts = append(r.starts, ref) }
func (r *recorder) StateDone(res sls.StateResult) { r.done = append(r.done, res) }
func (r *recorder) Output(id string, s sls.Stream, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, id+" "+string(s)+" "+line)
}

// input makes an Input for files of salt://; the SLS is app.
func input(t testing.TB, files map[string]string) *sls.Input {
	t.Helper()
	fsys := fstest.MapFS{}
	for n, s := range files {
		fsys[n] = &fstest.MapFile{Data: []byte(s), Mode: 0o644}
	}
	return &sls.Input{
		SLS: "app", Roots: fileroot.Roots{{FS: fsys}}, Host: host.New(execx.OS{}),
		Cfg:    py.NewDict("name", "app", "data", py.NewDict("dir", t.TempDir())),
		Pillar: py.NewDict("secret", "s3cr3t-value", "list", py.NewList("a", "b")),
		Grains: py.NewDict("os", "Debian", "os_family", "Debian"),
	}
}

func apply(t *testing.T, in *sls.Input) (*sls.StepResult, *recorder) {
	t.Helper()
	rec := &recorder{}
	res, err := (&Builtin{}).Apply(context.Background(), in, rec)
	require.NoError(t, err)
	require.Equal(t, res.States, rec.done)
	require.Len(t, rec.starts, len(rec.done))
	return res, rec
}

// short is ID:function=outcome, with + where something changed and - where it was skipped.
func short(states []sls.StateResult) string {
	var out []string
	for _, s := range states {
		mark := ""
		if s.Changed {
			mark = "+"
		}
		if s.Skipped {
			mark = "-"
		}
		out = append(out, s.Name+mark+"="+string(s.Outcome)[:1])
	}
	return strings.Join(out, " ")
}

func TestRun(t *testing.T) {
	tests := []struct{ name, sls, want string }{
		{"definition order", "b:\n  test.nop: []\na:\n  test.nop: []\n", "b=s a=s"},
		{"short form", "b: test.nop\na: test.nop\n", "b=s a=s"},
		{"function in the list", "a:\n  test:\n    - succeed_with_changes\n", "a+=s"},
		{"names", "x:\n  test.nop:\n    - names:\n      - b\n      - a\n", "b=s a=s"},
		{"names with arguments", "x:\n  test.configurable_test_state:\n    - changes: false\n    - names:\n      - b:\n        - changes: true\n      - a\n", "b+=s a=s"},
		{"order", "c:\n  test.nop:\n    - order: last\nb:\n  test.nop: []\na:\n  test.nop:\n    - order: first\n", "a=s b=s c=s"},
		{"order number", "b:\n  test.nop: []\na:\n  test.nop:\n    - order: 5\n", "a=s b=s"},
		{"require", "a:\n  test.nop:\n    - require:\n      - test: b\nb:\n  test.nop: []\n", "b=s a=s"},
		{"require by ID alone", "a:\n  test.nop:\n    - require:\n      - b\nb:\n  test.nop: []\n", "b=s a=s"},
		{"require by name", "a:\n  test.nop:\n    - require:\n      - test: bb\nb:\n  test.nop:\n    - name: bb\n", "bb=s a=s"},
		{"require glob", "a:\n  test.nop:\n    - require:\n      - test: b*\nb1:\n  test.nop: []\nb2:\n  test.nop: []\n", "b1=s b2=s a=s"},
		{"require_in", "a:\n  test.nop: []\nb:\n  test.nop:\n    - require_in:\n      - test: a\n", "b=s a=s"},
		{"require failed", "a:\n  test.fail_without_changes: []\nb:\n  test.nop:\n    - require:\n      - test: a\nc:\n  test.nop: []\n", "a=f b-=f c=s"},
		{"require_any", "a:\n  test.fail_without_changes: []\nb:\n  test.nop: []\nc:\n  test.nop:\n    - require_any:\n      - test: a\n      - test: b\n", "a=f b=s c=s"},
		{"watch with mod_watch", "a:\n  test.succeed_with_changes: []\nb:\n  cmd.wait:\n    - name: 'true'\n    - watch:\n      - test: a\n", "a+=s true+=s"},
		{"watch without change", "a:\n  test.nop: []\nb:\n  cmd.wait:\n    - name: 'true'\n    - watch:\n      - test: a\n", "a=s true=s"},
		{"mc_proxy", "a:\n  test.succeed_with_changes: []\np:\n  mc_proxy.hook:\n    - watch:\n      - test: a\nb:\n  cmd.wait:\n    - name: 'true'\n    - watch:\n      - mc_proxy: p\n", "a+=s p+=s true+=s"},
		{"onchanges", "a:\n  test.succeed_with_changes: []\nn:\n  test.nop: []\nb:\n  test.nop:\n    - onchanges:\n      - test: a\nc:\n  test.nop:\n    - onchanges:\n      - test: n\n", "a+=s n=s b=s c-=s"},
		{"onchanges any", "a:\n  test.succeed_with_changes: []\nn:\n  test.nop: []\nb:\n  test.nop:\n    - onchanges_any:\n      - test: n\n      - test: a\n", "a+=s n=s b=s"},
		{"onfail", "a:\n  test.fail_without_changes: []\nb:\n  test.nop:\n    - onfail:\n      - test: a\nn:\n  test.nop: []\nc:\n  test.nop:\n    - onfail:\n      - test: n\n", "a=f b=s n=s c-=s"},
		{"prereq fires", "stop:\n  test.nop:\n    - prereq:\n      - test: change\nchange:\n  test.succeed_with_changes: []\n", "stop=s change+=s"},
		{"prereq does not fire", "stop:\n  test.nop:\n    - prereq:\n      - test: change\nchange:\n  test.succeed_without_changes: []\n", "stop-=s change=s"},
		{"listen", "a:\n  test.succeed_with_changes: []\nl:\n  cmd.wait:\n    - name: 'true'\n    - listen:\n      - test: a\nz:\n  test.nop: []\n", "a+=s true=s z=s true+=s"},
		{"listen_in", "l:\n  cmd.wait:\n    - name: 'true'\na:\n  test.succeed_with_changes:\n    - listen_in:\n      - cmd: l\n", "true=s a+=s true+=s"},
		{"failhard", "a:\n  test.fail_without_changes:\n    - failhard: true\nb:\n  test.nop: []\n", "a=f"},
		{"onlyif", "a:\n  test.succeed_with_changes:\n    - onlyif: 'false'\nb:\n  test.succeed_with_changes:\n    - onlyif: 'true'\n", "a=s b+=s"},
		{"unless", "a:\n  test.succeed_with_changes:\n    - unless: 'true'\nb:\n  test.succeed_with_changes:\n    - unless:\n      - 'false'\n      - exit 3\n", "a=s b+=s"},
		{"onlyif function", "a:\n  test.succeed_with_changes:\n    - onlyif:\n      - fun: test.false\nb:\n  test.succeed_with_changes:\n    - onlyif:\n      - fun: file.directory_exists\n        path: /\n", "a=s b+=s"},
		{"creates", "a:\n  test.succeed_with_changes:\n    - creates: /\nb:\n  test.succeed_with_changes:\n    - creates: /does/not/exist\n", "a=s b+=s"},
		{"check_cmd", "a:\n  test.nop:\n    - check_cmd:\n      - 'false'\n", "a=f"},
		{"use", "a:\n  test.configurable_test_state:\n    - changes: false\nb:\n  test.configurable_test_state:\n    - use:\n      - test: a\n", "a=s b=s"},
		{"exclude", "exclude:\n  - id: b\na:\n  test.nop: []\nb:\n  test.nop: []\n", "a=s"},
		{"extend itself", "extend:\n  a:\n    test:\n      - changes: false\na:\n  test.configurable_test_state:\n    - changes: true\n", "a=s"},
		{"retry", "a:\n  cmd.run:\n    - name: mkdir d\n    - cwd: '{{ cfg.data.dir }}'\n    - unless: 'false'\n    - retry:\n        attempts: 2\n        interval: 0\n", "mkdir d+=s"},
		{"jinja loop", "{% for i in range(3) %}\ns{{ i }}:\n  test.nop: []\n{% endfor %}\n", "s0=s s1=s s2=s"},
		{"module.run", "a:\n  module.run:\n    - test.echo:\n      - text: hi\nb:\n  module.run:\n    - name: test.echo\n    - text: hi\n", "a+=s test.echo+=s"},
		{"argument of another function", "a:\n  file.missing:\n    - name: /no/such\n    - contents: x\n", "/no/such=s"},
		{"asking for a function", "{% if salt['no.such'] is defined %}x: test.nop\n{% endif %}{% if 'no.such' not in salt %}y: test.nop\n{% endif %}", "y=s"},
		{"variables beside context", "a:\n  file.managed:\n    - name: {{ cfg.data.dir }}/a\n    - contents: '{{ '{{ mine }}' }}'\n    - template: jinja\n    - mine: yes\nb:\n  cmd.run:\n    - name: test \"$(cat a)\" = True\n    - cwd: {{ cfg.data.dir }}\n    - hide_output: true\n    - stateful: false\n    - unless: 'false'\n    - onlyif: test -e {{ cfg.data.dir }}/a\n  test.nop: []\n", ""},
		{"empty file", "# nothing\n", ""},
		{"yaml only", "#!yaml\na:\n  test.show_notification:\n    - text: '{{ not jinja }}'\n", "a=s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res, _ := apply(t, input(t, map[string]string{"app.sls": tt.sls}))
			if tt.want == "" {
				require.True(t, res.OK(), "%+v", res.States)
				return
			}
			require.Equal(t, tt.want, short(res.States), "%+v", res.States)
		})
	}
}

func TestInclude(t *testing.T) {
	in := input(t, map[string]string{
		"app/init.sls":  "include:\n  - .sub\n  - other\nown:\n  test.nop:\n    - require:\n      - sls: other\n",
		"app/sub.sls":   "include:\n  - .deep\nsub:\n  test.nop: []\n",
		"app/deep.sls":  "deep:\n  test.nop:\n    - require_in:\n      - test: own\n",
		"other.sls":     "include:\n  - app\nother:\n  test.nop: []\nextend:\n  sub:\n    test:\n      - require:\n        - test: other\n",
		"unrelated.sls": "x:\n  test.nop: []\n",
	})
	res, _ := apply(t, in)
	require.Equal(t, "deep=s other=s sub=s own=s", short(res.States))
	require.Equal(t, "app/deep.sls", res.States[0].File)
	require.Equal(t, 2, res.States[0].Line)
}

func TestMountHidesTheOldTree(t *testing.T) {
	in := input(t, map[string]string{"p/app/x.sls": "old:\n  test.nop: []\n", "p/app/gone.sls": "gone:\n  test.nop: []\n"})
	in.Roots = append(in.Roots, fileroot.Root{Mount: "p/app", Label: ".salt",
		FS: fstest.MapFS{"x.sls": &fstest.MapFile{Data: []byte("new:\n  test.nop: []\n")}}})
	in.SLS = "p.app.x"
	res, _ := apply(t, in)
	require.Equal(t, "new=s", short(res.States))
	require.Equal(t, ".salt/x.sls", res.States[0].File)
	in.SLS = "p.app.gone"
	_, err := compile.SLS(context.Background(), in, nil)
	require.ErrorContains(t, err, "is not there")
}

func TestCompileErrors(t *testing.T) {
	tests := []struct{ name, sls, msg, hint, line string }{
		{"unknown function", "a:\n  cmd.rum:\n    - name: x\n", "State 'cmd.rum' was not found", "cmd.run", "  cmd.rum:"},
		{"unknown argument", "a:\n  cmd.run:\n    - nam: x\n", "has no argument 'nam'", "'name'", "    - nam: x"},
		{"typo beside a template", "a:\n  file.managed:\n    - name: /x\n    - template: jinja\n    - contxt: {}\n", "has no argument 'contxt'", "'context'", "    - contxt: {}"},
		{"missing requisite", "a:\n  test.nop:\n    - require:\n      - test: bb\nb:\n  test.nop: []\n", "there is no state 'test: bb'", "'b'", "    - require:"},
		{"missing requisite_in", "a:\n  test.nop:\n    - require_in:\n      - test: bb\nb:\n  test.nop: []\n", "there is no such state", "test: b", "    - require_in:"},
		{"loop", "a:\n  test.nop:\n    - require:\n      - test: b\nb:\n  test.nop:\n    - require:\n      - test: c\nc:\n  test.nop:\n    - require:\n      - test: a\n", "test:a -require-> test:b", "remove", ""},
		{"trailing colon", "a:\n  test.nop:\n", "trailing colon", "test.nop: []", "  test.nop:"},
		{"dotted requisite", "a:\n  test.nop:\n    - require:\n      - test.nop: b\n", "Invalid requisite type", "'test'", "    - require:"},
		{"two of one module", "a:\n  file.absent:\n    - name: /x\n  file.exists:\n    - name: /x\n", "multiple state declarations", "ID of its own", "  file.exists:"},
		{"arguments as a mapping", "a:\n  cmd.run:\n    name: x\n", "not formed as a list", "", "  cmd.run:"},
		{"jinja syntax", "a:\n  test.nop: []\n{% if %}\n", "", "", "{% if %}"},
		{"undefined", "a:\n  test.nop:\n    - comment: {{ nope }}\n", "undefined", "", "    - comment: {{ nope }}"},
		{"missing template", "{% import 'x.jinja' as x %}\n", "the template x.jinja is not there", "file roots", "{% import 'x.jinja' as x %}"},
		{"module.run of nothing", "a:\n  module.run:\n    - test.pong: []\n", "'test.pong'", "test.ping", "  module.run:"},
		{"onlyif of nothing", "a:\n  test.nop:\n    - onlyif:\n      - fun: no.such\n", "salt['no.such']", "salt-call", "    - onlyif:"},
		{"far function", "a:\n  lvm.pv_present:\n    - name: UTC\n", "the state function lvm.pv_present", "salt-call", "  lvm.pv_present:"},
		{"argument that only Salt has", "a:\n  cmd.run:\n    - root: /jail\n", "the argument root of cmd.run", "salt-call", "  cmd.run:"},
		{"registry of makina-states", "{% set tomcat = salt['mc_tomcat.settings']() %}\n", "salt['mc_tomcat.settings']", "makina-states", "{% set tomcat = salt['mc_tomcat.settings']() %}"},
		{"unknown module function", "{% set x = salt['pillar.gte']('a') %}\n", "'pillar.gte'", "pillar.get", "{% set x = salt['pillar.gte']('a') %}"},
		{"bad yaml", "a:\n  test.nop: []\n b: c\n", "", "", " b: c"},
		{"missing include", "include:\n  - nowhere\n", "the SLS 'nowhere' is not there", "", "  - nowhere"},
		{"integer ID", "12:\n  test.nop: []\n", "not formed as a string", "quote", "12:"},
		{"parallel", "a:\n  test.nop:\n    - parallel: true\n", "parallel", "", "    - parallel: true"},
		{"renderer", "#!py\ndef run(): pass\n", "the renderer py", "salt-call", "#!py"},
		{"own options", "#!jinja|yaml\n#jinja2: {\"trim_blocks\": true}\na:\n  test.nop: []\n", "a template's own options (#jinja2:)", "salt-call", "#jinja2: {\"trim_blocks\": true}"},
		{"missing parameter", "a:\n  file.symlink:\n    - name: /x\n", "Missing parameter target", "", "  file.symlink:"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, map[string]string{"app.sls": tt.sls})
			for _, mode := range []sls.Mode{sls.Static, sls.Live} {
				in.Mode = mode
				_, err := compile.SLS(context.Background(), in, nil)
				var f *fault.Error
				require.ErrorAs(t, err, &f)
				require.Equal(t, fault.Failed, f.Kind)
				require.ErrorContains(t, err, tt.msg)
				require.Contains(t, f.Hint, tt.hint)
				require.Equal(t, "app.sls", f.At.File)
				if tt.line != "" {
					require.Equal(t, tt.line, f.At.Text, "%+v", f.At)
				}
			}
		})
	}
}

func TestDeferred(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "ran")
	in := input(t, map[string]string{"app.sls": "a:\n  test.nop: []\n{% set x = salt['cmd.run']('touch " + marker + "') %}\n"})
	c, err := (&Builtin{}).Check(context.Background(), in)
	require.NoError(t, err)
	require.NotNil(t, c.Deferred)
	require.Equal(t, sls.Deferred{File: "app.sls", Line: 3, Why: "cmd.run is called while the template renders"}, *c.Deferred)
	require.NoFileExists(t, marker)
	apply(t, in)
	require.FileExists(t, marker)

	in = input(t, map[string]string{"app.sls": "{% set x = salt['cmd.run']('true') %}\n{% set y = salt['cmd.rum']('true') %}\n"})
	_, err = (&Builtin{}).Check(context.Background(), in)
	p, _ := fault.PosOf(err)
	require.Equal(t, 2, p.Line)
	require.Equal(t, "did you mean salt['cmd.run']?", fault.HintOf(err))

	in = input(t, map[string]string{"app.sls": "{% set x = salt['cmd.run']('true') %}\n{% set y = salt['mine.own']('true') %}\n"})
	_, err = (&Builtin{}).Check(context.Background(), in)
	n, ok := compile.NeedOf(err)
	require.True(t, ok)
	require.Equal(t, "salt['mine.own']", n.What)
}

func TestErrorsHoldNoPillar(t *testing.T) {
	for _, s := range []string{
		"a:\n  test.nop:\n    - comment: {{ pillar.secret }}: {{ pillar.secret }}: x\n",
		"a:\n  test.nop:\n    {{ pillar.secret }}\n",
		"{{ pillar.secret }}: 12\n",
		"a:\n  cmd.run:\n    - {{ pillar.secret }} x\n",
	} {
		in := input(t, map[string]string{"app.sls": s})
		in.Pillar = py.NewDict("secret", "s3cr3t-value: [")
		_, err := compile.SLS(context.Background(), in, nil)
		if err == nil {
			continue
		}
		p, _ := fault.PosOf(err)
		require.NotContains(t, p.Text+fault.HintOf(err), "s3cr3t")
	}
}

func TestCommandOutputAndFailure(t *testing.T) {
	in := input(t, map[string]string{"app.sls": "bad:\n  cmd.run:\n    - name: echo out; echo err >&2; exit 3\n    - cwd: {{ cfg.data.dir }}\n"})
	res, rec := apply(t, in)
	f := res.Failed()
	require.NotNil(t, f)
	require.Equal(t, 3, f.Command.ExitStatus)
	require.Equal(t, "err", f.Command.StderrTail)
	require.Equal(t, "app.sls", f.File)
	require.Equal(t, 2, f.Line)
	require.ElementsMatch(t, []string{"bad stdout out", "bad stderr err"}, rec.lines)
}

func TestTestModeTouchesNothing(t *testing.T) {
	in := input(t, map[string]string{"app.sls": "{% set d = cfg.data.dir %}\nf:\n  file.managed:\n    - name: {{ d }}/f\n    - contents: x\nc:\n  cmd.run:\n    - name: touch {{ d }}/c\nd:\n  file.directory:\n    - name: {{ d }}/d\n"})
	in.Test = true
	res, _ := apply(t, in)
	for _, s := range res.States {
		require.Equal(t, sls.WouldChange, s.Outcome, s.ID)
	}
	v, _ := in.Cfg.GetStr("data")
	dir, _ := v.(*py.Dict).GetStr("dir")
	entries, err := os.ReadDir(dir.(string))
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("stop")
	in := input(t, map[string]string{"app.sls": "a:\n  cmd.run:\n    - name: echo up; sleep 60\nb:\n  test.nop: []\n"})
	rec := &cancelSink{cancel: func() { cancel(stop) }}
	_, err := (&Builtin{}).Apply(ctx, in, rec)
	require.ErrorIs(t, err, stop)
	require.Empty(t, rec.done)
}

type cancelSink struct {
	recorder
	cancel func()
}

func (c *cancelSink) Output(string, sls.Stream, string) { c.cancel() }

func FuzzCompile(f *testing.F) {
	f.Add("a:\n  test.nop: []\n")
	f.Add("include:\n  - app\na:\n  test:\n    - nop\n    - require:\n      - b\n")
	f.Add("{% for i in range(3) %}\nx{{ i }}:\n  test.nop:\n    - names: [a, {b: [{order: 1}]}]\n{% endfor %}\n")
	f.Add("extend:\n  a:\n    test:\n      - prereq: [{test: a}]\na: test.nop\n")
	h := host.New(execx.OS{})
	f.Fuzz(func(t *testing.T, s string) {
		in := &sls.Input{SLS: "app", Host: h, Mode: sls.Static,
			Roots: fileroot.Roots{{FS: fstest.MapFS{"app.sls": &fstest.MapFile{Data: []byte(s)}}}}}
		p, err := compile.SLS(context.Background(), in, nil)
		if err != nil {
			require.NotEqual(t, fault.Internal, fault.KindOf(err), "%v", err)
			return
		}
		_ = p.States()
	})
}

func benchInput(b *testing.B, in *sls.Input, text string) {
	in.Roots = fileroot.Roots{{FS: fstest.MapFS{"app.sls": &fstest.MapFile{Data: []byte(text)}}}}
	in.Host = host.New(execx.OS{})
	for b.Loop() {
		res, err := (&Builtin{}).Apply(context.Background(), in, sls.Discard{})
		require.NoError(b, err)
		require.True(b, res.OK())
	}
}

func TestTemplatesWriteToTheirOwnCopy(t *testing.T) {
	in := input(t, map[string]string{"app.sls": "{% do cfg.data.update({'dir': 'mine'}) %}{% do pillar.update({'x': 1}) %}{% do grains.update({'os': 'x'}) %}a: test.nop\n"})
	before := py.Repr(in.Cfg) + py.Repr(in.Pillar) + py.Repr(in.Grains)
	_, rec := apply(t, in)
	require.Empty(t, rec.lines)
	require.Equal(t, before, py.Repr(in.Cfg)+py.Repr(in.Pillar)+py.Repr(in.Grains))
}

func TestStaticFindsBrokenTemplates(t *testing.T) {
	in := input(t, map[string]string{
		"app.sls": "a:\n  file.managed:\n    - name: /nowhere\n    - source: salt://t.conf\n    - template: jinja\n",
		"t.conf":  "ok\n{% if %}\n",
	})
	_, err := (&Builtin{}).Check(context.Background(), in)
	p, _ := fault.PosOf(err)
	require.Equal(t, fault.Pos{File: "t.conf", Line: 2, Text: "{% if %}"}, p)
}

func TestLogReachesTheSink(t *testing.T) {
	in := input(t, map[string]string{"app.sls": "{% do salt.log.warning('careful') %}\n"})
	_, rec := apply(t, in)
	require.Equal(t, []string{" log warning: careful"}, rec.lines)
}
