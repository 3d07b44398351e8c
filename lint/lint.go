package lint

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/internal/redact"
	"corpus-git/procedures"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
)

// Request says what to check.
type Request struct {
	// Dir is the working tree, Pillar the folder of the project's pillar; "" means none. Check makes them absolute.
	Dir, Pillar string
	// Project is the project's name; "" takes it from the name of Dir.
	Project     project.Name
	Environment string
}

// Check returns fault.Usage if a folder of the request does not exist. It fills in defaults.
func (q *Request) Check() (err error) {
	for _, dir := range []*string{&q.Dir, &q.Pillar} {
		if *dir == "" {
			continue
		}
		if *dir, err = filepath.Abs(*dir); err != nil {
			return err
		}
		if fi, err := os.Stat(*dir); err != nil || !fi.IsDir() {
			return fault.New(fault.Usage, "", "%s is not a folder", *dir)
		}
	}
	if q.Project == "" {
		q.Project = folderName(q.Dir)
	}
	return nil
}

// noName matches characters that are not allowed in a project's name.
var noName = regexp.MustCompile(`[^a-z0-9-]+`)

// folderName derives the project's name from that of its folder.
func folderName(dir string) project.Name {
	name := strings.Trim(noName.ReplaceAllString(strings.ToLower(filepath.Base(dir)), "-"), "-")
	if _, err := project.ParseName(name); err != nil {
		return "app"
	}
	return project.Name(name)
}

// Repository is what is needed from one repository of the server.
type Repository interface {
	Dir() string
	Tree(ctx context.Context, c project.Commit, in project.Incoming) (fs.FS, error)
	// CheckPack checks a pack as the server checks the pack of a push.
	CheckPack(ctx context.Context, from io.Reader) error
	RefuseLFS(ctx context.Context, c project.Commit, in project.Incoming) error
	Checkout(ctx context.Context, want project.Checkout) (project.CheckoutStats, error)
}

// Server is a temporary server for checking a working tree: its root is a temporary folder.
type Server struct {
	Tools      *procedures.Tools
	Repository func(project.Repo) Repository
	// Env is the environment that git runs with; Tmp a folder for what it writes.
	Env []string
	Tmp string
}

// commit stores in a repository what git would push from a folder, and reads it from there.
func (s Server) commit(ctx context.Context, dir string, kind project.Repo) (c project.Commit, tree fs.FS, w worktree, err error) {
	r := s.Repository(kind)
	w = worktree{dir: dir, tmp: filepath.Join(s.Tmp, string(kind)), env: s.Env, check: func(pack io.Reader) error { return r.CheckPack(ctx, pack) }}
	if c, err = w.commitTo(ctx, r.Dir()); err == nil {
		tree, err = r.Tree(ctx, c, nil)
	}
	return c, tree, w, err
}

// Run deploys a working tree on the server, as far as that changes nothing on the machine. The project must exist on the server. An
// error is the machine's fault or ours; problems of the project are in the report.
func (s Server) Run(ctx context.Context, q Request) (*Report, error) {
	d := project.Deployment{ID: project.NewID(), Project: q.Project, Trigger: project.TriggerPlan, At: time.Now(), Repo: project.Code}
	src := procedures.Sources{Environment: q.Environment, Private: s.Tools.State.Recipe(string(d.ID), "lint"), Partial: q.Pillar == ""}
	var code, pillar worktree
	var err error
	if d.Code, src.Code, code, err = s.commit(ctx, q.Dir, project.Code); err != nil {
		return nil, err
	}
	if q.Pillar != "" {
		if d.Pillar, src.Pillar, pillar, err = s.commit(ctx, q.Pillar, project.PillarRepo); err != nil {
			return nil, err
		}
	}
	hide := redact.New(nil)
	found, err := procedures.Lint(ctx, s.Tools, d, src, hide)
	if err != nil {
		return nil, err
	}
	r := &Report{root: s.Tools.Root.Path(), Project: q.Project, Linted: found, Problems: found.Problems, Warnings: found.Warnings, hide: hide}
	if refused := errors.Join(code.refused, pillar.refused); refused != nil {
		r.Problems = append(r.Problems, refused)
	}
	repo := s.Repository(project.Code)
	if p := found.Prepared; p != nil {
		r.Notes = p.Notes
		if p.Cfg.RefusesLFS() {
			if err := repo.RefuseLFS(ctx, d.Code, nil); err != nil {
				r.Problems = append(r.Problems, err)
			}
		}
	}
	st, err := repo.Checkout(ctx, project.Checkout{Commit: d.Code, Dir: s.Tools.Root.Project(q.Project.String()).Live()})
	switch {
	case err == nil:
		r.Notes = append(r.Notes, st.Notes...)
	case ctx.Err() != nil || fault.KindOf(err) == fault.Internal:
		return nil, err
	default:
		r.Problems = append(r.Problems, err)
	}
	for _, file := range code.untracked {
		r.Warnings = append(r.Warnings, recipe.Warning{File: file, Text: "git does not track it: a push leaves it out until it is added and committed"})
	}
	return r, nil
}
