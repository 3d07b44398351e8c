package vanished_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/pipeline/vanished"
	"corpus-git/project"
)

func TestResults(t *testing.T) {
	var r vanished.Results
	missing := errors.New("no deployment")
	of := func(id project.ID) project.Record {
		return project.Record{Deployment: project.Deployment{ID: id, Project: "app"}, Result: &project.Result{Reason: string(id)}}
	}
	_, err := r.Of("a", missing)
	require.ErrorIs(t, err, missing)
	r.Keep(of("a"))
	res, err := r.Of("a", missing)
	require.NoError(t, err)
	require.Equal(t, "a", res.Reason)
	r.Keep(of("b"))
	_, err = r.Of("a", missing)
	require.ErrorIs(t, err, missing, "the last of each project")
	r.Keep(project.Record{Deployment: project.Deployment{ID: "c", Project: "other"}})
	_, err = r.Of("c", missing)
	require.ErrorIs(t, err, missing, "it has no result")
	res, err = r.Of("b", missing)
	require.NoError(t, err)
	require.Equal(t, "b", res.Reason)
}
