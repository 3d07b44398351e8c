package nodes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// The user data is a document of cloud-init's: its first line, and the kinds of the keys that cloud-init's schema has for these modules.
func TestCloudConfig(t *testing.T) {
	text := fmt.Sprintf(cloudConfig, "https://example.org/corpus-git", strings.Repeat("0a", 32), "cgj_x-y_z")
	require.True(t, strings.HasPrefix(text, "#cloud-config\n"))
	var doc struct {
		Update   bool                                          `yaml:"package_update"`
		Packages []string                                      `yaml:"packages"`
		Write    []struct{ Path, Permissions, Content string } `yaml:"write_files"`
		Run      [][]string                                    `yaml:"runcmd"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &doc))
	require.Equal(t, "cgj_x-y_z", doc.Write[0].Content)
	require.Equal(t, "0600", doc.Write[0].Permissions)
	require.Contains(t, doc.Write[1].Content, "ExecStart=/usr/local/bin/corpus-git agent --join-file "+doc.Write[0].Path)
	require.Contains(t, doc.Run[0][2], "sha256sum -c")
}
