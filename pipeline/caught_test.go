package pipeline_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/sls"
)

// panicking is a runner of steps with a bug.
type panicking struct {
	sls.Runner
	m *machine
}

func (p panicking) Check(ctx context.Context, in *sls.Input) (*sls.Checked, error) {
	if p.m.panics != nil {
		p.m.panics("check")
	}
	return p.Runner.Check(ctx, in)
}

func (p panicking) Apply(ctx context.Context, in *sls.Input, sink sls.Sink) (*sls.StepResult, error) {
	if p.m.panics != nil {
		p.m.panics("apply")
	}
	return p.Runner.Apply(ctx, in, sink)
}

// A file of seven bytes in a push ended the server with the deployments of all projects: reading it panicked. Now a panic fails only its own
// deployment: before anything has run the push is refused, and later the deployment is rolled back.
func TestAPanicFailsOneDeployment(t *testing.T) {
	m := newMachine(t)
	one := m.commit(project.Code, "", map[string]string{"a": "one", ".salt/010.sls": "x:\n  test.nop: []\n"})
	res, _ := m.push(project.Code, "", one)
	require.Equal(t, project.Live, res.State, res.Reason)
	two := m.commit(project.Code, one, map[string]string{"a": "two", ".salt/010.sls": "x:\n  test.nop: []\n"})
	for call, want := range map[string]project.State{"check": project.Refused, "apply": project.RolledBack} {
		m.panics = func(at string) {
			if at == call {
				panic("index out of range")
			}
		}
		res, said := m.push(project.Code, one, two)
		require.Equal(t, want, res.State, said)
		require.Equal(t, fault.Internal.String(), res.Kind)
		require.Equal(t, "one", m.live("a"))
	}
	m.panics = nil
	res, said := m.push(project.Code, one, two)
	require.Equal(t, project.Live, res.State, said)
	require.Equal(t, "two", m.live("a"))
}
