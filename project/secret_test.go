package project_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"corpus-git/project"
)

func TestSecretIsNeverSeen(t *testing.T) {
	s := project.Secret("hunter2")
	in := struct {
		S project.Secret
		P *project.Secret
		M map[string]project.Secret
	}{s, &s, map[string]project.Secret{"k": s}}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%10s", "%T"} {
		fmt.Fprintf(&out, verb+"\n", s)
		fmt.Fprintf(&out, verb+"\n", []project.Secret{s})
		fmt.Fprintf(&out, verb+"\n", struct{ S project.Secret }{s})
	}
	fmt.Fprintln(&out, s, fmt.Sprint(s), fmt.Errorf("e: %w", fmt.Errorf("%s", s)))
	js, err := json.Marshal(in)
	require.NoError(t, err)
	ys, err := yaml.Marshal(map[string]project.Secret{"k": s})
	require.NoError(t, err)
	z := zerolog.New(&out)
	z.Info().Interface("i", in).Stringer("s", s).Any("a", s).Msg("x")
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "s", s, "in", s)
	all := out.String() + string(js) + string(ys)
	require.NotContains(t, all, "hunter2")
	require.NotContains(t, all, "68756e74657232")
	require.Contains(t, all, "[secret]")
	require.Equal(t, "", fmt.Sprintf("%v", project.Secret("")))

	var back struct{ S project.Secret }
	require.NoError(t, json.Unmarshal([]byte(`{"S": "hunter2"}`), &back))
	require.Equal(t, s, back.S)
	require.Equal(t, "hunter2", string(back.S))
}
