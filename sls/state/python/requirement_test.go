package python

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRequirements(t *testing.T) {
	for text, want := range map[string]map[string]bool{ // by the version that is installed
		"x":                        {"1": true},
		"x==1.0":                   {"1.0": true, "1.0.0": true, "1": true, "1.0.1": false, "1.0.post1": false, "1.0+local": true},
		"x===1.0":                  {"1.0": true, "1.0.0": false},
		"x == 1.0":                 {"1.0": true},
		"x==1.*":                   {"1.9": true, "2.0": false},
		"x>=1.0,<2":                {"1.0": true, "1.99": true, "2": false, "0.9": false},
		"x >= 1.0 , != 1.5":        {"1.4": true, "1.5": false},
		"x (>=1.0)":                {"1.0": true, "0.9": false},
		"x~=1.4.2":                 {"1.4.9": true, "1.5": false},
		"x[a,b]>1":                 {"1": false, "1.1": true},
		"x>=1; python_version<'3'": {"1": true, "0": false},
		"x>=1.0":                   {"1.0.dev2": false, "1.1.dev2": false, "1!0.1": true},
		"x>=1.0.dev1":              {"1.0.dev2": true},
		"x==1.0.dev2":              {"1.0.dev2": true},
		"x>":                       {"1.0": false},
		"x==odd":                   {"odd": true, "1.0": false},
	} {
		r, complaint := parseRequirement(text)
		require.Empty(t, complaint, text)
		require.Equal(t, "x", r.name, text)
		for version, met := range want {
			require.Equal(t, met, r.metBy(version), "%s: %s", text, version)
		}
	}
	for _, text := range []string{"git+https://example.org/x.git", "./x", "/x/y", "x-1.0.whl", "https://example.org/x.tgz"} {
		r, complaint := parseRequirement(text)
		require.Empty(t, complaint+r.name, text)
	}
	r, complaint := parseRequirement("My_X @ https://example.org/x.git")
	require.Empty(t, complaint)
	require.Equal(t, requirement{"My_X @ https://example.org/x.git", "my-x", ""}, r)
	for _, text := range []string{"", "x=1", "x,y", "-x", "{'a': 1}", "x y"} {
		_, complaint := parseRequirement(text)
		require.NotEmpty(t, complaint, text)
	}
}
