package project_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/project"
)

// The keys watch and register are validated, and a secret value of the pillar is never registered.
func TestWatchAndRegister(t *testing.T) {
	for _, x := range []struct {
		sample, pillar string
		want           project.Watches
		services       map[string]string
		err            string
	}{
		{sample: "{}", want: project.Watches{Debounce: time.Second}},
		{sample: `{"watch": ["shared/a", "services/db/*"], "watch_debounce": "5s"}`, want: project.Watches{Patterns: []string{"shared/a", "services/db/*"}, Debounce: 5 * time.Second}},
		{sample: `{"watch": "shared/a"}`, err: "must be a list"},
		{sample: `{"watch": ["colour"]}`, err: "below projects/"},
		{sample: `{"watch": ["shared/a b"]}`, err: "below projects/"},
		{sample: `{"watch": [1]}`, err: "below projects/"},
		{sample: `{"watch_debounce": "2h"}`, err: "at most"},
		{sample: `{"register": {"web": {"port": 80}}}`, want: project.Watches{Debounce: time.Second}, services: map[string]string{"web": `{"port": 80}`}},
		{sample: `{"register": ["web"]}`, err: "must be a mapping"},
		{sample: `{"register": {"web": 80}}`, err: "must map names"},
		{sample: `{"register": {"a/b": {}}}`, err: "must map names"},
		{sample: `{"register": {"web": {}}}`, pillar: `{"register": {"web": {"password": "hidden-value"}}}`, err: "must not contain a secret"},
	} {
		of := func(text string) string {
			if text == "" {
				return ""
			}
			return "makina-projects.app: " + text + "\n"
		}
		c, err := project.BuildCfg(t.Context(), inputs(t, of(x.sample), of(x.pillar)))
		if x.err != "" {
			require.ErrorContains(t, err, x.err, x.sample)
			continue
		}
		require.NoError(t, err, x.sample)
		require.Equal(t, x.want, c.Watches(), x.sample)
		require.Equal(t, x.services, c.Services(), x.sample)
	}
}
