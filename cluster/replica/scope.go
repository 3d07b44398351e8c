package replica

import (
	"path"
	"path/filepath"
	"strings"

	"corpus-git/internal/vfs"
	"corpus-git/layout"
)

const (
	// stateDir and projectsDir begin the names of what is in the state directory, and in the folders of projects.
	stateDir    = "state"
	projectsDir = "projects"
	// DatabaseName is the name of the database in a copy.
	DatabaseName = "database"
	eventsDir    = "events"
	journalDir   = "journal"
	underwayDir  = "underway"
)

// Files are the files that hubs have in common, below the folders of one hub. Their names are relative: state/… and projects/NAME/….
type Files struct {
	FS    vfs.FS
	Root  layout.Root
	State layout.State
}

// at returns the path of a name.
func (f Files) at(name string) string {
	top, rest, _ := strings.Cut(name, "/")
	switch {
	case name == DatabaseName:
		return f.State.Database()
	case top == stateDir:
		return filepath.Join(f.State.Path(), rest)
	}
	return filepath.Join(f.Root.Projects(), rest)
}

// own reports names in the state directory, relative to it, that belong to one machine or one process.
func (f Files) own(rel string) bool {
	top, _, _ := strings.Cut(rel, "/")
	for _, p := range []string{
		f.State.Lock(), f.State.Socket(), f.State.Addresses(), f.State.Clean(), f.State.Processes(), f.State.Trash(), f.State.ReserveFile(), f.State.Containers(), f.State.NATS(),
		f.State.AgentHub(), f.State.AgentKey(), f.State.AgentNewKey(), f.State.AgentPrograms(), filepath.Dir(f.State.ResetPerms()), filepath.Dir(f.State.Undo("x")), filepath.Dir(filepath.Dir(f.State.SaltConfig("x", "y"))),
	} {
		if top == filepath.Base(p) {
			return true
		}
	}
	if strings.HasPrefix(top, ".") || strings.HasPrefix(top, filepath.Base(f.State.Database())) || strings.HasPrefix(top, filepath.Base(f.State.ServerLog())) {
		return true
	}
	if top == filepath.Base(f.State.Cluster()) {
		return rel != top && filepath.Join(f.State.Path(), rel) != f.State.ClusterHubs()
	}
	return strings.HasPrefix(path.Base(rel), ".tmp-")
}

// common reports whether hubs have what is at a name in common, if they have its parents.
func (f Files) common(name string) bool {
	parts := strings.Split(name, "/")
	base := parts[len(parts)-1]
	switch {
	case parts[0] == stateDir:
		return len(parts) == 1 || !f.own(strings.Join(parts[1:], "/"))
	case parts[0] != projectsDir:
		return false
	case len(parts) < 2:
		return true
	case len(parts) == 2:
		return !strings.HasPrefix(base, ".")
	}
	p := f.Root.Project(parts[1])
	switch parts[2] {
	case filepath.Base(p.Git()):
		return !strings.HasSuffix(base, ".lock") && !strings.HasPrefix(base, "tmp_") && !strings.HasPrefix(base, ".tmp-") && !strings.HasPrefix(base, "incoming-")
	case filepath.Base(p.Archives()): // the archives' own files, not the trees
		return len(parts) == 3 || !strings.HasPrefix(parts[3], ".") && (len(parts) == 4 || len(parts) == 5 && !strings.HasPrefix(base, "."))
	case layout.LocalFile:
		return len(parts) == 3
	}
	return false
}

// tree reports whether a folder is a tree of an archive, which hubs do not have in common.
func (f Files) tree(name string) bool {
	parts := strings.Split(name, "/")
	return len(parts) == 5 && parts[0] == projectsDir && parts[2] == filepath.Base(f.Root.Project(parts[1]).Archives())
}

// valid reports whether a name from another hub is one that hubs have in common.
func (f Files) valid(name string) bool {
	if name != path.Clean(name) || strings.HasPrefix(name, "/") || !strings.Contains(name, "/") {
		return false
	}
	parts := strings.Split(name, "/")
	for i := range parts {
		if parts[i] == ".." || !f.common(strings.Join(parts[:i+1], "/")) {
			return false
		}
	}
	return true
}

// inObjects reports whether a name is a folder of an object store or in one, where content is never changed.
func inObjects(name string) bool {
	parts := strings.Split(name, "/")
	if parts[0] != projectsDir {
		return false
	}
	for _, p := range parts[min(len(parts), 3):] {
		switch p {
		case "refs":
			return false
		case "objects":
			return true
		}
	}
	return false
}

// appended reports whether a file only grows, as long as it is the same file.
func appended(name string) bool {
	return strings.HasPrefix(name, stateDir+"/"+journalDir+"/") || strings.HasPrefix(name, stateDir+"/"+eventsDir+"/")
}
