package layout

import (
	"path/filepath"
	"strings"
	"time"
)

// Root is the directory that holds projects/, salt/ and pillar/: /srv in production.
type Root string

// Path returns the root directory itself.
func (r Root) Path() string { return string(r) }

// Projects returns the directory with one folder per project.
func (r Root) Projects() string { return filepath.Join(string(r), "projects") }

// Salt returns the first Salt file root (salt:// of base).
func (r Root) Salt() string { return filepath.Join(string(r), "salt") }

// Pillar returns the Salt pillar root.
func (r Root) Pillar() string { return filepath.Join(string(r), "pillar") }

// PillarTop returns the top file of the pillar root, which lists every linked project.
func (r Root) PillarTop() string { return filepath.Join(r.Pillar(), "top.sls") }

// ModuleDirs names the folders of a project's .salt that hold its own Salt modules;
// each is linked into the folder of the same name under Salt().
// Source: Salt documentation, "Dynamic Module Distribution".
func ModuleDirs() []string {
	return []string{"_modules", "_states", "_grains", "_renderers", "_returners", "_runners", "_utils", "_sdb", "_pillar", "_pillars", "_outputters"}
}

// Modules returns the folder of Salt's own root that collects modules of one kind.
func (r Root) Modules(kind string) string { return filepath.Join(r.Salt(), kind) }

// RestoreTemp is where a restore writes before it renames everything into place.
func (r Root) RestoreTemp() string { return filepath.Join(string(r), ".corpus-git-restore") }

// DefaultState is where State is if not configured.
func (r Root) DefaultState() State { return State(filepath.Join(string(r), ".corpus-git")) }

// Project returns the paths of one project. The name must be a valid project.Name.
func (r Root) Project(name string) Project { return Project{root: r, name: name} }

// Project computes the paths of one project.
type Project struct {
	root Root
	name string
}

// Name returns the project's name.
func (p Project) Name() string { return p.name }

// Dir returns the project's folder, which holds everything below.
func (p Project) Dir() string { return filepath.Join(p.root.Projects(), p.name) }

// Live returns the working copy that runs: a checkout with .git and .salt.
func (p Project) Live() string { return filepath.Join(p.Dir(), "project") }

// Pillar returns the checkout of the pillar.
func (p Project) Pillar() string { return filepath.Join(p.Dir(), "pillar") }

// Data returns the persistent data that no deployment touches.
func (p Project) Data() string { return filepath.Join(p.Dir(), "data") }

// Local returns the file with this machine's overrides of the project's configuration.
func (p Project) Local() string { return filepath.Join(p.Dir(), LocalFile) }

// Git returns the folder of the two bare repositories.
func (p Project) Git() string { return filepath.Join(p.Dir(), "git") }

// ProjectGit returns the bare repository of the code.
func (p Project) ProjectGit() string { return filepath.Join(p.Git(), "project.git") }

// PillarGit returns the bare repository of the pillar.
func (p Project) PillarGit() string { return filepath.Join(p.Git(), "pillar.git") }

// Modules returns the folder of the bare repositories of the code's submodules.
func (p Project) Modules() string { return filepath.Join(p.Git(), "modules") }

// PillarModules returns the folder of the bare repositories of the pillar's submodules.
func (p Project) PillarModules() string { return filepath.Join(p.Git(), "pillar-modules") }

// Recipes returns the folder of the bare repositories of recipes that the project extends by their URLs.
func (p Project) Recipes() string { return filepath.Join(p.Git(), "recipes") }

// Archives returns the folder of archives.
func (p Project) Archives() string { return filepath.Join(p.Dir(), "archives") }

// Salt returns the deployment recipe inside the working copy.
func (p Project) Salt() string { return filepath.Join(p.Live(), SaltDir) }

// SaltLink returns the link by which Salt finds the recipe: <root>/salt/makina-projects/<name>.
func (p Project) SaltLink() string {
	return filepath.Join(p.root.Salt(), ProjectsNamespace, p.name)
}

// PillarLink returns the link by which Salt finds the pillar: <root>/pillar/makina-projects/<name>.
func (p Project) PillarLink() string {
	return filepath.Join(p.root.Pillar(), ProjectsNamespace, p.name)
}

// Archive returns the folder of one archive: <YYYY-MM-DD_hh_mm-ss>_<id>, the time in its own location.
func (p Project) Archive(t time.Time, id string) string {
	return filepath.Join(p.Archives(), ArchiveName(t, id))
}

// Root returns the root the project is under.
func (p Project) Root() Root { return p.root }

const (
	// LocalFile is the name of a machine's overrides of a project's configuration, beside its trees.
	LocalFile = "local.yaml"
	// SaltDir is the folder of the recipe inside a project.
	SaltDir = ".salt"
	// ProjectsNamespace is the folder, and the SLS and pillar prefix, of all projects.
	ProjectsNamespace = "makina-projects"
	// PillarFile is the file of the pillar repository.
	PillarFile = "init.sls"
	// PillarSample is the file of the recipe that documents and defaults the configuration.
	PillarSample = "PILLAR.sample"
	// ArchivedTree is the archived project directory inside an archive.
	ArchivedTree = "project"
	// FailedTree is the tree of a failed deployment inside an archive.
	FailedTree = "project.failed"
	// ArchivedPillar is the archived pillar checkout inside an archive.
	ArchivedPillar = "pillar"
	// HooksDir is the folder of lifecycle hooks, in a recipe and in State.
	HooksDir = "hooks"
)

const archiveTime = "2006-01-02_15_04-05"

// ArchiveName returns the name of an archive's folder.
func ArchiveName(t time.Time, id string) string { return t.Format(archiveTime) + "_" + id }

// ParseArchiveName splits an archive's folder name; ok is false for any other name.
func ParseArchiveName(name string) (t time.Time, id string, ok bool) {
	if len(name) <= len(archiveTime) || name[len(archiveTime)] != '_' {
		return time.Time{}, "", false
	}
	t, err := time.ParseInLocation(archiveTime, name[:len(archiveTime)], time.Local)
	id = name[len(archiveTime)+1:]
	if err != nil || id == "" || strings.ContainsAny(id, "/.") {
		return time.Time{}, "", false
	}
	return t, id, true
}
