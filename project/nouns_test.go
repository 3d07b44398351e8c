package project_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/fault"
	"corpus-git/project"
)

func TestParseName(t *testing.T) {
	for _, ok := range []string{"a", "app", "my-app_2", strings.Repeat("a", project.MaxName)} {
		n, err := project.ParseName(ok)
		require.NoError(t, err)
		require.Equal(t, ok, n.String())
		require.LessOrEqual(t, len(n.User()), 32)
	}
	for _, bad := range []string{"", ".", "..", "App", "1app", "-app", "a.b", "a/b", "a b", "a\x00", "é", strings.Repeat("a", project.MaxName+1)} {
		_, err := project.ParseName(bad)
		require.Error(t, err, bad)
		require.Equal(t, fault.Usage, fault.KindOf(err))
		require.NotEmpty(t, fault.HintOf(err))
	}
}

func TestParseCommit(t *testing.T) {
	c, ok := project.ParseCommit("0123456789abcdef0123456789abcdef01234567")
	require.True(t, ok)
	require.Equal(t, "0123456", c.Short())
	c, ok = project.ParseCommit(project.ZeroCommit)
	require.True(t, ok)
	require.Equal(t, "none", c.Short())
	for _, bad := range []string{"", "0123", "0123456789ABCDEF0123456789abcdef01234567", "0123456789abcdef0123456789abcdef0123456g"} {
		_, ok = project.ParseCommit(bad)
		require.False(t, ok, bad)
	}
}

func TestRights(t *testing.T) {
	require.True(t, project.Admin.Grants(project.Configure))
	require.True(t, project.Deploy.Grants(project.Read))
	require.False(t, project.Deploy.Grants(project.Configure))
	require.False(t, project.Configure.Grants(project.Read))
	require.False(t, project.Right("").Grants(project.Read))
	require.False(t, project.Right("").Grants(""))
}

func TestStates(t *testing.T) {
	require.False(t, project.State("").Terminal())
	require.False(t, project.Waiting.Terminal())
	require.True(t, project.RolledBack.Terminal())
	require.True(t, project.Live.Good())
	require.False(t, project.Failed.Good())
}

func TestIDPrefix(t *testing.T) {
	id := project.NewID()
	p, err := project.ParseIDPrefix(id.Short())
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(id), p))
	for _, bad := range []string{"", "abc", "ABCD", "../../x", "zzzz"} {
		_, err := project.ParseIDPrefix(bad)
		require.Error(t, err, bad)
	}
}
