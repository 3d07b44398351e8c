package local

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/bundle"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// A bundle brings keys, or names those of the bundle before it.
func TestKeysOfABundle(t *testing.T) {
	want := map[string]string{"shared/b": "<1>", "shared/a": "ü"}
	text, err := json.Marshal(want)
	require.NoError(t, err)
	got, err := keys(bundle.Manifest{KV: text, KVDigest: bundle.KeysDigest(text)}, nil)
	require.NoError(t, err)
	require.Equal(t, want, got)

	has := &project.Node{KV: got}
	digest, err := keysDigest(has)
	require.NoError(t, err)
	require.Equal(t, bundle.KeysDigest(text), digest, "the hub and the node agree")
	got, err = keys(bundle.Manifest{KVDigest: digest}, has)
	require.NoError(t, err)
	require.Equal(t, want, got)
	for _, has := range []*project.Node{nil, {}, {KV: map[string]string{"shared/a": "x"}}} {
		_, err = keys(bundle.Manifest{KVDigest: digest}, has)
		require.Equal(t, fault.Busy, fault.KindOf(err))
	}

	got, err = keys(bundle.Manifest{}, has)
	require.NoError(t, err)
	require.Empty(t, got, "a hub without keys, or one of a release before digests")
	got, err = keys(bundle.Manifest{KV: text}, has)
	require.NoError(t, err)
	require.Equal(t, want, got)
	_, err = keys(bundle.Manifest{KV: json.RawMessage(`{"shared/a":1}`)}, nil)
	require.Equal(t, fault.Refused, fault.KindOf(err))
}
