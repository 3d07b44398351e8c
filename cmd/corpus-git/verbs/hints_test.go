package verbs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/event"
)

// Every command of the tree is served over SSH: a hint that names it is shown to somebody who came that way as they can type it.
func TestHintsKnowEveryCommand(t *testing.T) {
	for _, c := range Tree(nil).Commands() {
		if c.Name() == "doctor" || c.Name() == "backup" || c.Name() == "bundle" || c.Name() == "node" || c.Name() == "hub" {
			continue // for whoever runs the server
		}
		require.Equal(t, "ssh deploy@server "+c.Name(), event.WithCommands("corpus-git "+c.Name(), "ssh deploy@server"), c.Name())
	}
}
