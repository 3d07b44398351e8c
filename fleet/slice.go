package fleet

import (
	"slices"
	"strings"
)

// Folders of a pillar with files for some nodes only: ROLE.sls and the files in ROLE/, NODE.sls and the files in NODE/. They override
// init.sls.
const (
	RolesDir = "roles"
	NodesDir = "nodes"
)

// Includes reports how much of a path of the pillar a node sees: all of it, some of it (decided for each path below it), or nothing.
// Everything except nodes.yaml and the parts of other roles and nodes is for all nodes.
func (m Member) Includes(path string) (whole, below bool) {
	if path == NodesFile {
		return false, false
	}
	dir, rest, nested := strings.Cut(path, "/")
	if dir != RolesDir && dir != NodesDir {
		return true, false
	}
	if !nested {
		return false, true
	}
	names := m.Roles
	if dir == NodesDir {
		names = []string{m.Name}
	}
	first, _, deep := strings.Cut(rest, "/")
	if !deep { // a file; the folder of the same name has no suffix
		first = strings.TrimSuffix(first, ".sls")
	}
	return slices.Contains(names, first), false
}
