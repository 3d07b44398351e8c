package system

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/statetest"
)

func write(t *testing.T, root, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o644))
}

func TestDebconfSet(t *testing.T) {
	m := statetest.NewMachine(t, States, "debconf-get-selections", "debconf-set-selections")
	m.Answers = map[string]string{"debconf-get-selections": "# Which shell?\ndash\tdash/sh\tboolean\ttrue\nother\tdash/count\tstring\t3\ndash\tdash/count\tstring\t2\n"}
	ask := func(question, kind string, value any) *py.Dict {
		return py.NewDict(question, py.NewDict("type", kind, "value", value))
	}
	m.Is(m.Call(false, "debconf.set", "dash", "data", ask("dash/sh", "boolean", true)), core.True, "All specified answers are already set", "")
	m.Is(m.Call(true, "debconf.set", "dash", "data", ask("dash/sh", "boolean", false)), core.None, "", `{"dash/sh": "New value: false"}`)
	both := ask("dash/sh", "boolean", true)
	both.Update(ask("dash/count", "string", int64(3)))
	m.Is(m.Call(false, "debconf.set", "dash", "data", both), core.True, "Unchanged answers: dash/sh ", `{"dash/count": "3"}`, "debconf-set-selections")
	require.Equal(t, []string{"dash dash/count string 3\n"}, m.Stdin)
	for _, test := range []bool{true, false} {
		r := m.Call(test, "debconf.set", "dash", "data", ask("dash/key", "password", "secret words"))
		text, err := py.ToJSON(r.Changes, py.JSONOptions{})
		require.NoError(t, err)
		require.NotContains(t, text+r.Comment, "secret")
	}
	require.Equal(t, []string{"dash dash/key password secret words\n"}, m.Stdin)
	m.Is(m.Call(false, "debconf.set", "dash", "data", ask("dash/sh", "string", "a\nevil evil/q string x")), core.False,
		"The question dash/sh, its type or its value has a blank or a line break that debconf cannot read", "")
	m.Is(m.Call(false, "debconf.set", "dash", "data", py.NewDict("dash/sh", py.NewDict("type", "string"))), core.False, "The question dash/sh has no type, or no value", "")
	m.Answers["debconf-set-selections"] = "!error: Cannot find a question"
	m.Is(m.Call(false, "debconf.set", "dash", "data", ask("dash/sh", "boolean", false)), core.False, "Some settings failed to be applied: error: Cannot find a question", "")

	bare := statetest.NewMachine(t, States, "debconf-set-selections")
	bare.Is(bare.Call(false, "debconf.set", "dash", "data", ask("dash/sh", "boolean", true)), core.False,
		"debconf-get-selections is not installed on this machine: it is in the packages debconf and debconf-utils", "")
}

func TestTimezone(t *testing.T) {
	root := t.TempDir()
	for _, zone := range []string{"UTC", "Europe/Paris"} {
		write(t, root, "usr/share/zoneinfo/"+zone, "TZif "+zone)
	}
	write(t, root, "etc/timezone", "UTC\n")
	write(t, root, "etc/localtime", "TZif UTC")
	m := statetest.NewMachine(t, func(t *core.Table) { addTimezone(t, root) }, "timedatectl")
	m.Is(m.Call(false, "timezone.system", "UTC"), core.True, "Timezone UTC already set, UTC already set to UTC", "")
	m.Is(m.Call(true, "timezone.system", "Europe/Paris"), core.None, "Timezone Europe/Paris needs to be set", "")
	m.Is(m.Call(false, "timezone.system", "Europe/Paris"), core.True, "Set timezone Europe/Paris", `{"timezone": "Europe/Paris"}`)
	to, err := os.Readlink(filepath.Join(root, "etc/localtime"))
	require.NoError(t, err)
	require.Equal(t, "/usr/share/zoneinfo/Europe/Paris", to)
	text, err := os.ReadFile(filepath.Join(root, "etc/timezone"))
	require.NoError(t, err)
	require.Equal(t, "Europe/Paris\n", string(text))

	// A link with a relative target, and a hardware clock that runs in local time.
	require.NoError(t, os.Remove(filepath.Join(root, "etc/localtime")))
	require.NoError(t, os.Symlink("../usr/share/zoneinfo/Europe/Paris", filepath.Join(root, "etc/localtime")))
	write(t, root, "etc/adjtime", "0.0 0 0.0\n0\nLOCAL\n")
	m.Is(m.Call(true, "timezone.system", "Europe/Paris"), core.None, "UTC needs to be set to True", "")
	m.Is(m.Call(false, "timezone.system", "Europe/Paris"), core.True, "Set UTC to True", `{"utc": true}`, "timedatectl set-local-rtc 0")
	m.Is(m.Call(false, "timezone.system", "Europe/Paris", "utc", false), core.True, "Timezone Europe/Paris already set", "")
	for _, wrong := range []string{"Europe/Pari", "../../../etc/timezone", "Europe", ""} {
		r := m.Call(false, "timezone.system", wrong)
		require.Equal(t, core.False, r.Result, wrong)
		require.Contains(t, r.Comment, "Can't find a local timezone")
	}
}

func TestLocalePresent(t *testing.T) {
	root := t.TempDir()
	write(t, root, "usr/share/i18n/SUPPORTED", "de_DE ISO-8859-1\nde_DE.UTF-8 UTF-8\nde_DE@euro ISO-8859-15\nfr_FR.UTF-8 UTF-8\n")
	write(t, root, "etc/locale.gen", "# This file lists locales\n# de_DE.UTF-8 UTF-8\n# fr_FR.UTF-8 UTF-8\n")
	m := statetest.NewMachine(t, func(t *core.Table) { addLocale(t, root) }, "locale-gen")
	m.Answers = map[string]string{"locale -a": "C\nC.utf8\nPOSIX\n"}
	m.On = func(line string) {
		if line == "locale-gen" {
			m.Answers["locale -a"] = "C\nC.utf8\nPOSIX\nde_DE.utf8\n"
		}
	}
	m.Is(m.Call(false, "locale.present", "C.UTF-8"), core.True, "Locale C.UTF-8 is already present", "")
	m.Is(m.Call(true, "locale.present", "de_DE.UTF-8"), core.None, "Locale de_DE.UTF-8 needs to be generated", "")
	m.Is(m.Call(false, "locale.present", "de_DE.UTF-8"), core.True, "Generated locale de_DE.UTF-8", `{"locale": "de_DE.UTF-8"}`, "locale-gen")
	m.Is(m.Call(false, "locale.present", "de_DE.UTF-8 UTF-8"), core.True, "Locale de_DE.UTF-8 UTF-8 is already present", "")
	text, err := os.ReadFile(filepath.Join(root, "etc/locale.gen"))
	require.NoError(t, err)
	require.Equal(t, "# This file lists locales\nde_DE.UTF-8 UTF-8\n# fr_FR.UTF-8 UTF-8\n", string(text))

	for name, says := range map[string]string{"xx_XX.UTF-8": "no line of /usr/share/i18n/SUPPORTED", "fr_FR.UTF-8": "`locale -a` does not list it"} {
		r := m.Call(false, "locale.present", name)
		require.Equal(t, core.False, r.Result, name)
		require.Contains(t, r.Comment, says)
	}
	m.Answers["locale-gen"] = "!cannot open locale definition file"
	r := m.Call(false, "locale.present", "fr_FR.UTF-8")
	require.Equal(t, core.False, r.Result)
	require.Contains(t, r.Comment, "cannot open locale definition file")
	bare := statetest.NewMachine(t, func(t *core.Table) { addLocale(t, root) })
	bare.Answers = map[string]string{"locale -a": "C\n"}
	if r := bare.Call(false, "locale.present", "fr_FR.UTF-8"); r.Result != core.False {
		t.Errorf("without locale-gen: %v", r)
	}
}
