package fleet

import (
	"encoding/json"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/vfs"
	"corpus-git/project"
)

// Each field of Progress is in one of the two parts of the file.
func TestPartsOfTheFile(t *testing.T) {
	tags := func(v any) (out []string) {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			if f.IsExported() {
				out = append(out, f.Tag.Get("json"))
			}
		}
		return out
	}
	require.ElementsMatch(t, tags(Progress{}), append(tags(fixedProgress{}), tags(changingProgress{})...))
	p := &Progress{
		Deployment: project.Deployment{ID: "x", Project: "app"}, Plan: &Plan{}, State: Running, Paused: true, Started: time.Unix(1, 0).UTC(), Ended: time.Unix(2, 0).UTC(), Nodes: []NodeProgress{{Stage: "a", State: Ready}},
		Stages: []StageProgress{{Name: "a"}}, Leader: "a", Token: 3, KV: json.RawMessage(`{"shared/a":"b"}`), Others: []NodeProgress{{Stage: "b"}},
	}
	text, err := (&Rollout{p: p}).text()
	require.NoError(t, err)
	want, err := json.Marshal(p)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(text))
}

// What nothing waits for is written soon, and by the next save.
func TestNote(t *testing.T) {
	path := t.TempDir() + "/x.json"
	synctest.Test(t, func(t *testing.T) {
		r := &Rollout{Path: path, FS: vfs.OS{}, p: &Progress{Plan: &Plan{}}}
		state := func() string {
			p, _, err := ReadProgress(path)
			require.NoError(t, err)
			if p == nil {
				return ""
			}
			return p.State
		}
		r.note(func(p *Progress) { p.State = "one" })
		require.Empty(t, state())
		time.Sleep(noteWithin)
		synctest.Wait()
		require.Equal(t, "one", state())
		r.note(func(p *Progress) { p.State = "two" })
		require.NoError(t, r.save())
		require.Equal(t, "two", state())
		require.NoError(t, vfs.WriteFileAtomic(vfs.OS{}, path, []byte(`{"state":"three"}`), 0o600))
		time.Sleep(2 * noteWithin)
		synctest.Wait()
		require.Equal(t, "three", state(), "nothing is written after a save")
	})
}
