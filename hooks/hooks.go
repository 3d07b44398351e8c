package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"sort"

	"corpus-git/internal/execx"
	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project"
)

// Point is a moment of a deployment.
type Point string

// The points, in the order in which a deployment can reach them. Until post-archive has run, the pushed commit is not in the repository yet:
// objects are published only if the archive fits on the disk.
const (
	LowSpace    Point = "low-space"
	PreArchive  Point = "pre-archive"
	PostArchive Point = "post-archive"
	PreDeploy   Point = "pre-deploy"
	PostDeploy  Point = "post-deploy"
	PreRollback Point = "pre-rollback"
	Rollback    Point = "rollback"
	Notify      Point = "notify"
)

// Points returns all points, in that order.
func Points() []Point {
	return []Point{LowSpace, PreArchive, PostArchive, PreDeploy, PostDeploy, PreRollback, Rollback, Notify}
}

// Description describes the deployment to a hook; its JSON is the hook's standard input.
type Description struct {
	Version    int                `json:"version"`
	Point      Point              `json:"point"`
	Deployment project.Deployment `json:"deployment"`
	// Result is set from pre-rollback on.
	Result *project.Result `json:"result,omitempty"`
	// Check is set for notify if a periodic check fails or succeeds again; Result is not set then.
	Check *project.CheckPeriod `json:"check,omitempty"`
	// Environment is dev, staging or prod.
	Environment string `json:"environment"`
	ProjectDir  string `json:"project_dir"`
	ProjectRoot string `json:"project_root"`
	PillarRoot  string `json:"pillar_root"`
	DataRoot    string `json:"data_root"`
	ArchiveDir  string `json:"archive_dir,omitempty"`
	// NeedBytes and FreeBytes are set for low-space.
	NeedBytes int64 `json:"need_bytes,omitempty"`
	FreeBytes int64 `json:"free_bytes,omitempty"`
}

// Describe describes a deployment at a point, with its project's folders; the archive's is that which the deployment makes.
func Describe(d project.Deployment, at layout.Project, environment string, p Point) Description {
	out := Description{
		Point: p, Deployment: d, Environment: environment,
		ProjectDir: at.Dir(), ProjectRoot: at.Live(), PillarRoot: at.Pillar(), DataRoot: at.Data(),
	}
	if d.ID != "" {
		out.ArchiveDir = at.Archive(d.At, string(d.ID))
	}
	return out
}

// Env returns the description as environment variables.
func (d Description) Env() []string {
	env := []string{
		"CORPUS_POINT=" + string(d.Point),
		"CORPUS_PROJECT=" + d.Deployment.Project.String(),
		"CORPUS_DEPLOYMENT=" + string(d.Deployment.ID),
		"CORPUS_TRIGGER=" + string(d.Deployment.Trigger),
		"CORPUS_COMMIT=" + string(d.Deployment.Code),
		"CORPUS_PILLAR_COMMIT=" + string(d.Deployment.Pillar),
		"CORPUS_LIVE_COMMIT=" + string(d.Deployment.LiveCode),
		"CORPUS_PUSHER=" + d.Deployment.Pusher.Key,
		"CORPUS_ENVIRONMENT=" + d.Environment,
		"CORPUS_PROJECT_DIR=" + d.ProjectDir,
		"CORPUS_PROJECT_ROOT=" + d.ProjectRoot,
		"CORPUS_PILLAR_ROOT=" + d.PillarRoot,
		"CORPUS_DATA_ROOT=" + d.DataRoot,
		"CORPUS_ARCHIVE_DIR=" + d.ArchiveDir,
	}
	if d.Deployment.Leader > 0 {
		env = append(env, fmt.Sprintf("CORPUS_LEADER_TOKEN=%d", d.Deployment.Leader))
	}
	if d.Result != nil {
		env = append(env, "CORPUS_STATE="+string(d.Result.State), "CORPUS_EVENT="+d.Result.Event())
	}
	if d.Check != nil {
		env = append(env, "CORPUS_EVENT="+d.Check.Event(), "CORPUS_CHECK="+d.Check.Check)
	}
	return env
}

// Runner runs the hooks of one project.
type Runner struct {
	Exec  execx.Commander
	State layout.State
}

// Hook is one executable. File is its name in messages.
type Hook struct {
	Name, Path, File string
}

// Executables returns the names of a folder's hooks in byte order: regular files that are executable, and not hidden. A folder that does not
// exist has none.
func Executables(files fs.FS, dir string) ([]string, error) {
	entries, err := fs.ReadDir(files, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		fi, err := fs.Stat(files, path.Join(dir, e.Name())) // a link to an executable counts
		if err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 && e.Name()[0] != '.' {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// List joins the server's hooks of a point with the project's own, in the byte order of their names; of two with one name the
// server's comes first.
func (r *Runner) List(point Point, own []Hook) ([]Hook, error) {
	dir := r.State.Hooks(string(point))
	names, err := Executables(vfs.Files(dir), ".")
	if err != nil {
		return nil, err
	}
	out := make([]Hook, 0, len(names)+len(own))
	for _, name := range names {
		at := filepath.Join(dir, name)
		out = append(out, Hook{Name: name, Path: at, File: at})
	}
	out = append(out, own...)
	sort.SliceStable(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// Output is called with every line that a hook prints, without its end.
type Output func(hook, stream, line string)

// Run runs all hooks of d.Point, the server's and the project's own, in the environment env and the description's variables, and stops at the first that fails; the error names it and its exit
// status. It returns how many ran. When ctx ends, the running hook's process group is ended.
func (r *Runner) Run(ctx context.Context, own []Hook, env []string, d Description, out Output) (int, error) {
	list, err := r.List(d.Point, own)
	if err != nil {
		return 0, fault.New(fault.Internal, string(d.Point)+" hooks", "%w", err)
	}
	if len(list) == 0 {
		return 0, nil
	}
	d.Version = 1
	doc, err := json.Marshal(d)
	if err != nil {
		return 0, err
	}
	for i, h := range list {
		stdout := execx.NewLines(func(s string) { out(h.Name, "stdout", s) })
		stderr := execx.NewLines(func(s string) { out(h.Name, "stderr", s) })
		st, err := r.Exec.Run(ctx, execx.Cmd{
			Argv: []string{h.Path}, Dir: d.ProjectDir, Env: append(slices.Clone(env), d.Env()...),
			Stdin: bytes.NewReader(doc), Stdout: stdout, Stderr: stderr,
		})
		_ = stdout.Close()
		_ = stderr.Close()
		if err != nil {
			return i, fault.New(fault.Failed, fmt.Sprintf("%s hook %s", d.Point, h.Name), "%w", err)
		}
		if st.Exit != 0 {
			return i, fault.New(fault.Failed, fmt.Sprintf("%s hook %s", d.Point, h.Name), "exit status %d", st.Exit).
				WithHint("the hook is %s; its output is in the deployment's log", h.File)
		}
	}
	return len(list), nil
}
