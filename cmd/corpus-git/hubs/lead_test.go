package hubs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/project"
)

func TestNamed(t *testing.T) {
	require.Equal(t, []project.Name{"project", "rename", "app", "other-1"}, named([]string{"project", "rename", "app", "other-1", "app", "--yes", "../x", "a b", ""}))
	require.Equal(t, []project.Name{"app"}, named([]string{"--project=app"}))
	require.Empty(t, named(nil))
}
