package modules

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/internal/py"
	"corpus-git/sls/host"
)

func set(t *testing.T, static bool) *Set {
	t.Helper()
	return New(&Env{
		Host: host.New(execx.OS{}), Static: static, Cfg: py.NewDict("name", "app", "data", py.NewDict("k", "v")),
		Pillar: py.NewDict("a", py.NewDict("b", py.NewList("x", py.NewDict("c", int64(1)))), "top", int64(5)),
		Grains: py.NewDict("os_family", "Debian", "osrelease", "12", "roles", py.NewList("web", "db")),
		Opts:   py.NewDict("opt", "o"),
	})
}

func TestCalls(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o640))
	l := func(v ...any) []any { return v }
	tests := []struct {
		fn   string
		args []any
		kw   *py.Dict
		want any
	}{
		{"pillar.get", l("a:b:0"), nil, "x"},
		{"pillar.get", l("a:b:1:c"), nil, int64(1)},
		{"pillar.get", l("a:b:c"), nil, int64(1)},
		{"pillar.get", l("none"), nil, ""},
		{"pillar.get", l("none", "def"), nil, "def"},
		{"pillar.get", l("a/b/0"), py.NewDict("delimiter", "/"), "x"},
		{"pillar.get", l("a"), py.NewDict("default", py.NewDict("z", "d"), "merge", true),
			py.NewDict("z", "d", "b", py.NewList("x", py.NewDict("c", int64(1))))},
		{"grains.get", l("roles:1"), nil, "db"},
		{"grains.filter_by", l(py.NewDict("Debian", "apt", "RedHat", "yum")), nil, "apt"},
		{"grains.filter_by", l(py.NewDict("default", "d")), nil, "d"},
		{"grains.filter_by", l(py.NewDict("Deb*", "glob")), nil, "glob"},
		{"grains.filter_by", l(py.NewDict("web", "w")), py.NewDict("grain", "roles"), "w"},
		{"grains.filter_by", l(py.NewDict("Debian", py.NewDict("a", "1"), "base", py.NewDict("a", "0", "b", "0"))),
			py.NewDict("base", "base", "merge", py.NewDict("c", "2")), py.NewDict("a", "1", "b", "0", "c", "2")},
		{"mc_utils.is_a_bool", l(true), nil, true},
		{"mc_utils.is_a_number", l(true), nil, true},
		{"mc_utils.is_a_number", l("1"), nil, false},
		{"mc_utils.is_a_int", l(1.5), nil, false},
		{"mc_utils.is_a_dict", l(py.NewDict()), nil, true},
		{"mc_utils.is_a_list", l(py.Tuple{}), nil, false},
		{"mc_utils.is_a_str", l("x"), nil, true},
		{"config.get", l("opt"), nil, "o"},
		{"config.get", l("top"), nil, int64(5)},
		{"config.get", l("none", "d"), nil, "d"},
		{"cmd.run", l("echo a; echo b >&2"), nil, "a\nb"},
		{"cmd.run_stdout", l("echo a; echo b >&2"), nil, "a"},
		{"cmd.retcode", l("exit 4"), nil, int64(4)},
		{"cmd.run", l("echo $X"), py.NewDict("env", py.NewDict("X", "y")), "y"},
		{"file.file_exists", l(dir + "/f"), nil, true},
		{"file.file_exists", l(dir), nil, false},
		{"file.directory_exists", l(dir), nil, true},
		{"file.get_mode", l(dir + "/f"), nil, "0640"},
		{"file.dirname", l("/a/b/c"), nil, "/a/b"},
		{"file.basename", l("/a/b/c"), nil, "c"},
		{"file.join", l("/a", "b", "c"), nil, "/a/b/c"},
		{"file.join", l("a", "/b"), nil, "/b"},
		{"mc_utils.json_dump", l(py.NewDict("a", py.NewList(int64(1), nil))), nil, `{"a": [1, null]}`},
		{"mc_utils.json_load", l(`{"a": [1]}`), nil, py.NewDict("a", py.NewList(int64(1)))},
		{"mc_project.get_configuration", l("app"), nil, py.NewDict("name", "app", "data", py.NewDict("k", "v"))},
		{"slsutil.merge", l(py.NewDict("a", py.NewDict("x", "1")), py.NewDict("a", py.NewDict("y", "2"))), nil,
			py.NewDict("a", py.NewDict("x", "1", "y", "2"))},
		{"hashutil.base64_b64encode", l("hi"), nil, "aGk="},
		{"test.echo", l("e"), nil, "e"},
	}
	for _, tt := range tests {
		t.Run(tt.fn, func(t *testing.T) {
			got, err := set(t, false).Call(context.Background(), tt.fn, tt.args, tt.kw)
			require.NoError(t, err)
			require.True(t, py.Equal(tt.want, got), "want %s, got %s", py.Repr(tt.want), py.Repr(got))
		})
	}
}

func TestStaticRunsNothing(t *testing.T) {
	s := set(t, true)
	for _, fn := range []string{"cmd.run", "cmd.retcode", "file.file_exists", "file.read", "user.info"} {
		_, err := s.Call(context.Background(), fn, []any{"/etc/passwd"}, nil)
		var d *DeferError
		require.ErrorAs(t, err, &d, fn)
	}
	_, err := s.Call(context.Background(), "pillar.get", []any{"top"}, nil)
	require.NoError(t, err)
}

func TestErrorsNameNoValue(t *testing.T) {
	s := set(t, false)
	_, err := s.Call(context.Background(), "pillar.get", []any{"a", "b", "c", "d", "e", "f", "g", "h", "i"}, nil)
	require.ErrorContains(t, err, "positional arguments")
	_, err = s.Call(context.Background(), "pillar.get", nil, py.NewDict("kee", "secret-value"))
	require.ErrorContains(t, err, "unexpected keyword argument 'kee'")
	require.NotContains(t, err.Error(), "secret-value")
	_, err = s.Call(context.Background(), "mc_project.get_configuration", []any{"other"}, nil)
	require.ErrorContains(t, err, "another project")
	_, err = s.Call(context.Background(), "no.such", nil, nil)
	var u *UnknownError
	require.ErrorAs(t, err, &u)
}

// store is Passwords in memory.
type store map[string]string

func (s store) Get(k string) (string, bool, error) { v, ok := s[k]; return v, ok, nil }
func (s store) Put(k, v string) (string, error)    { s[k] = v; return v, nil }

func TestStoredPassword(t *testing.T) {
	s := set(t, true)
	s.env.Passwords = store{}
	call := func() (any, error) {
		return s.Call(context.Background(), "mc_utils.generate_stored_password", []any{"k"}, nil)
	}
	a, err := call()
	require.NoError(t, err)
	require.Len(t, a, 16)
	b, err := call()
	require.NoError(t, err)
	require.Equal(t, a, b)
}

// makina-states' source says which release each key names.
func TestPkgSettings(t *testing.T) {
	for _, tt := range []struct{ os, release, codename, key, want string }{
		{"Ubuntu", "20.04", "focal", "udist", "focal"},
		{"Ubuntu", "20.10", "groovy", "ubuntu_lts", "focal"},
		{"Ubuntu", "16.04", "xenial", "ubuntu_lts", "xenial"},
		{"Debian", "12", "bookworm", "udist", "bionic"},
		{"Debian", "12", "bookworm", "ddist", "bookworm"},
		{"Debian", "12", "bookworm", "dist", "bookworm"},
		{"CentOS", "9", "", "dist", "bionic"},
	} {
		s := New(&Env{Host: host.New(execx.OS{}), Grains: py.NewDict("os", tt.os, "osrelease", tt.release, "lsb_distrib_codename", tt.codename)})
		v, err := s.Call(context.Background(), "mc_pkgs.settings", nil, nil)
		require.NoError(t, err)
		got, _ := v.(*py.Dict).GetStr(tt.key)
		require.Equal(t, tt.want, got, "%s %s %s", tt.os, tt.release, tt.key)
	}
}

func TestApacheSettings(t *testing.T) {
	for family, want := range map[string]string{"Debian": "apache2", "RedHat": "httpd"} {
		s := New(&Env{Host: host.New(execx.OS{}), Grains: py.NewDict("os_family", family)})
		v, err := s.Call(context.Background(), "mc_apache.settings", nil, nil)
		require.NoError(t, err)
		got, _ := v.(*py.Dict).GetStr("service")
		require.Equal(t, want, got)
	}
}

// makina-states' source says what each key holds; the release of PHP is the distribution's.
func TestPHPSettings(t *testing.T) {
	debian := py.NewDict("os", "Debian", "os_family", "Debian", "osrelease", "12")
	for _, tt := range []struct {
		about       string
		grains      *py.Dict
		cfg, pillar *py.Dict
		want        *py.Dict
	}{
		{"Debian", debian, nil, nil, py.NewDict("php_ver", "8.2", "service", "php8.2-fpm", "confdir", "/etc/php/8.2/mods-available",
			"fpm_user", "www-data", "fpm_pm_max_children", int64(10), "coinstallable_php", true)},
		{"production", debian, py.NewDict("default_env", "prod"), nil, py.NewDict("fpm_pm_max_children", int64(50), "memory_limit", "256M")},
		{"Ubuntu", py.NewDict("os", "Ubuntu", "os_family", "Debian", "osrelease", "24.04"), nil, nil, py.NewDict("php_ver", "8.3", "s_all", "-s ALL")},
		{"Debian testing", py.NewDict("os", "Debian", "os_family", "Debian", "osrelease", "99"), nil, nil, py.NewDict("php_ver", "8.4")},
		{"an old release by the pillar", debian, nil, py.NewDict("makina-states.services.php.php_ver", "5.6"),
			py.NewDict("service", "php5-fpm", "etcdir", "/etc/php5")},
		{"a mapping of the pillar", debian, nil, py.NewDict("makina-states.services.php", py.NewDict("service", "mine", "php_ver", "8.1")),
			py.NewDict("service", "mine", "etcdir", "/etc/php/8.1")},
	} {
		s := New(&Env{Host: host.New(execx.OS{}), Grains: tt.grains, Cfg: tt.cfg, Pillar: tt.pillar})
		v, err := s.Call(context.Background(), "mc_php.settings", nil, nil)
		require.NoError(t, err, tt.about)
		for _, e := range tt.want.Items() {
			got, _ := v.(*py.Dict).Get(e.Key)
			require.Equal(t, e.Value, got, "%s: %v", tt.about, e.Key)
		}
		packages, _ := v.(*py.Dict).GetStr("packages")
		fpm, _ := packages.(*py.Dict).GetStr("php_fpm")
		require.Equal(t, "php-fpm", fpm)
	}
}

// TestGuideNamesEachFunction: the page for those who come from makina-states lists the functions that there are, and no others.
func TestGuideNamesEachFunction(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/from-corpus.md")
	require.NoError(t, err)
	var want, got []string
	for _, n := range set(t, true).Names() {
		if strings.HasPrefix(n, "mc_") {
			want = append(want, n)
		}
	}
	function := regexp.MustCompile("`(mc_[a-z0-9_]+\\.[a-z0-9_]+)`")
	_, table, found := strings.Cut(string(page), "\n| function |")
	require.True(t, found)
	for line := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, m := range function.FindAllStringSubmatch(cells[1], -1) {
			got = append(got, m[1])
		}
	}
	require.NotEmpty(t, want)
	require.ElementsMatch(t, want, got)
}
