package verbs_test

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/units"
)

// processes is a project with two units, of which the second does not start.
type processes struct{}

func (processes) List(context.Context, project.Name, []string) ([]project.UnitState, error) {
	return []project.UnitState{{Unit: "web.service", Entry: "web", Kind: project.UnitSystemd, State: project.UnitActive, Detail: "running", Since: noon, PID: 12}, {Unit: "mail.service", State: project.UnitFailed}}, nil
}

func (p processes) Act(ctx context.Context, name project.Name, a project.UnitAction, only []string, _ project.Pusher) ([]project.UnitState, error) {
	all, _ := p.List(ctx, name, only)
	f := &units.Failure{Action: a, Units: []project.UnitState{{Unit: "mail.service", State: project.UnitFailed, Log: []string{"\x1b]0;title\x07no \x1b[31mdisk\x1b[0m"}}}, Messages: []string{"Job failed"}}
	return all, fault.New(fault.Failed, "", "%w", f)
}

func (processes) Logs(_ context.Context, _ project.Name, req units.LogRequest, emit func(source, line string) error) error {
	if err := emit("", "from the journal"); err != nil {
		return err
	}
	return emit("/var/log/a", "from a file\x1b[2J")
}

func (processes) Run(_ context.Context, _ project.Name, argv []string, begin func(what, user string) error, stdin io.Reader, stdout, _ io.Writer) (int, error) {
	if err := begin("the words", ""); err != nil {
		return 0, err
	}
	_, err := io.WriteString(stdout, argv[len(argv)-1]+"\n")
	return 42, err
}

func TestUnitsAndCommands(t *testing.T) {
	h := build(t)
	h.Units = processes{}
	code, out, _ := h.run(t, "marie", "", "ps", "app")
	require.Equal(t, 0, code)
	require.Regexp(t, `web.service +active .* 12 +0 +running`, out)
	code, out, errs := h.run(t, "marie", "", "restart", "app", "mail")
	require.Equal(t, 1, code)
	require.Regexp(t, `mail.service +failed`, out)
	require.Equal(t, "Job failed\nthe last lines of mail.service:\n  | no disk\nerror: restart failed: mail.service is failed\n", errs)
	code, out, _ = h.run(t, "marie", "", "logs", "--app", "app")
	require.Equal(t, 0, code)
	require.Equal(t, "from the journal\n==> /var/log/a <==\nfrom a file\n", out)
	for _, argv := range [][]string{{"run", "app", "--", "ls", "-l"}, {"run", "app", "ls", "-l"}, {"run", "--", "app", "--", "ls", "-l"}} {
		code, out, errs = h.run(t, "marie", "", argv...)
		require.Equal(t, 42, code, argv)
		require.Equal(t, "-l\n", out, argv)
		require.Contains(t, errs, "this runs as the server's")
	}
	code, _, _ = h.run(t, "marie", "", "run", "app", "--")
	require.Equal(t, 2, code)
	entries, err := h.audit.List(t.Context(), "app", 1)
	require.NoError(t, err)
	require.Equal(t, "run the words ok", entries[0].Action+" "+entries[0].Object+" "+entries[0].Outcome)
	// Who may only read does none of it.
	for _, argv := range [][]string{{"ps", "app"}, {"restart", "app"}, {"logs", "--app", "app"}, {"run", "app", "id"}} {
		code, _, errs = h.run(t, "jenkins", "", argv...)
		require.Equal(t, 3, code, argv)
		require.Contains(t, errs, "requires deploy permission")
	}
}
