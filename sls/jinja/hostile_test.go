package jinja

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
)

// hostileEnv names the template that a child of the test renders, in a process of its own.
const hostileEnv = "CORPUS_GIT_TEST_HOSTILE"

// hostileMiB is what a hostile template may take at most, its source and its error included, and what the collector has not taken yet: a list that has just
// grown is there twice.
const hostileMiB = 96

// Each hostile template ends with an error that its limits gave, not a deadline; and each in a process of its own, at its
// highest, needs no more than hostileMiB above one that renders nothing.
func TestHostileTemplates(t *testing.T) {
	if name, child := os.LookupEnv(hostileEnv); child {
		if name != "" {
			renderHostile(t, name)
		}
		status, err := os.ReadFile("/proc/self/status")
		require.NoError(t, err)
		_, err = os.Stdout.Write(status)
		require.NoError(t, err)
		return
	}
	base := 0
	if !raceEnabled {
		base = hostileChild(t, "")
	}
	for name := range hostile {
		t.Run(name, func(t *testing.T) {
			if raceEnabled { // the detector's own memory is several times the template's
				renderHostile(t, name)
				return
			}
			took := hostileChild(t, name) - base
			require.Less(t, took, hostileMiB<<10, "KiB at the highest, above the %d of an empty template", base)
		})
	}
}

// renderHostile renders the template of that name and checks how it ends.
func renderHostile(t *testing.T, name string) {
	t.Helper()
	ctx := t.Context() // no deadline: only the limits can end it
	start := time.Now()
	tmpl, err := New(Options{Loader: MapLoader{"main": hostile[name]}}).Get(ctx, "main")
	if err == nil {
		_, err = tmpl.Render(ctx, py.NewDict())
	}
	t.Logf("%v: %.100v", time.Since(start), err)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.NotEqual(t, ClassCanceled, e.Class)
}

// hostileChild renders a hostile template in a process of its own and returns the highest resident size of that, in KiB.
// Source: proc(5), VmHWM.
func hostileChild(t *testing.T, name string) int {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run", "^TestHostileTemplates$")
	cmd.Env = append(os.Environ(), hostileEnv+"="+name)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		if v, ok := strings.CutPrefix(s.Text(), "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(v), " kB"))
			require.NoError(t, err)
			return kib
		}
	}
	t.Fatalf("no VmHWM in %s", out)
	return 0
}
