package status

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"corpus-git/internal/printable"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/project/registry"
)

// ProjectTable knows which projects exist; the registry satisfies it.
type ProjectTable interface {
	Get(ctx context.Context, name project.Name) (registry.Project, error)
	List(ctx context.Context) ([]registry.Project, error)
}

// Records knows the deployments; pipeline satisfies it.
type Records interface {
	// Deployments returns the newest first, at most limit.
	Deployments(ctx context.Context, name project.Name, limit int) ([]project.Record, error)
	// Last returns the newest deployment that has ended, of each of the projects that have one.
	Last(ctx context.Context, names []project.Name) (map[project.Name]project.Record, error)
	// LastLive returns the newest deployment that went live, of each of the projects that have one.
	LastLive(ctx context.Context, names []project.Name) (map[project.Name]project.Record, error)
	Queue(ctx context.Context, name project.Name) (project.Queue, error)
}

// Repository reports what is live of one of a project's two repositories; receive's satisfies it.
type Repository interface {
	// Live returns the deployed ref and the commit that it points to, "" and "" before the first push.
	Live(ctx context.Context) (ref string, c project.Commit, err error)
}

// ArchiveList lists archives, newest first.
type ArchiveList interface {
	List(ctx context.Context, name project.Name) ([]Archive, error)
}

// Source fills the documents. It must not be copied after its first use.
type Source struct {
	Root     layout.Root
	Projects ProjectTable
	Records  Records
	// Repository opens a repository of a project.
	Repository func(project.Name, project.Repo) Repository
	Archives   ArchiveList
	// Remotes returns the addresses to push to.
	Remotes func(project.Name) Remotes
	// Server, if not nil, returns the addresses of the server and of a project's page.
	Server func(project.Name) Server
	// Checks, if not nil, returns the periodic checks of a project.
	Checks func(project.Name) []project.CheckState
	// Converge, if not nil, returns what is known of the converges of a project.
	Converge func(project.Name) *project.ConvergeState
	// Remember is how long a measurement of the disk stays valid; 0 measures each time. Measuring walks all of a project's files.
	Remember time.Duration
	// Now is required if Remember is set.
	Now func() time.Time

	mu       sync.Mutex
	measured map[project.Name]measure
}

type measure struct {
	disk Disk
	at   time.Time
}

// Project describes one project. An unknown project is fault.Refused.
func (s *Source) Project(ctx context.Context, name project.Name) (Project, error) {
	p, err := s.Projects.Get(ctx, name)
	if err != nil {
		return Project{}, err
	}
	all, err := s.Describe(ctx, []registry.Project{p})
	if err != nil {
		return Project{}, err
	}
	return all[0], nil
}

// All describes all projects, by name.
func (s *Source) All(ctx context.Context) ([]Project, error) {
	all, err := s.Projects.List(ctx)
	if err != nil {
		return nil, err
	}
	return s.Describe(ctx, all)
}

// List returns all projects as they are in the table, by name.
func (s *Source) List(ctx context.Context) ([]registry.Project, error) { return s.Projects.List(ctx) }

// readers is the number of goroutines that read repositories at the same time.
const readers = 8

// Describe describes projects, in their order. Describing ten thousand takes one query of the records and reading four small files for each.
func (s *Source) Describe(ctx context.Context, projects []registry.Project) ([]Project, error) {
	out := make([]Project, len(projects))
	names := make([]project.Name, len(projects))
	for i, p := range projects {
		out[i] = Project{Name: p.Name, Env: p.Env, RemoteLess: p.RemoteLess, Linked: p.Linked, Missing: p.Missing, Created: p.Created, Skeleton: p.Skeleton}
		names[i] = p.Name
	}
	var wait sync.WaitGroup
	for r := range min(readers, len(out)) {
		wait.Go(func() {
			for i := r; i < len(out) && ctx.Err() == nil; i += readers {
				s.repositories(ctx, &out[i])
			}
		})
	}
	last, err := s.Records.Last(ctx, names)
	live, lerr := s.Records.LastLive(ctx, names)
	wait.Wait()
	if err = cmp.Or(err, lerr, ctx.Err()); err != nil {
		return nil, err
	}
	for i := range out {
		q, err := s.Records.Queue(ctx, out[i].Name)
		if err != nil {
			return nil, err
		}
		out[i].Running, out[i].Waiting = q.Running, len(q.Waiting)
		out[i].FailingChecks = s.failing(out[i].Name)
		if s.Converge != nil {
			out[i].Converge = s.Converge(out[i].Name)
		}
		if l, ok := last[out[i].Name]; ok {
			out[i].Last = &l
		}
		l, ok := live[out[i].Name]
		if ok && l.Result != nil {
			out[i].LiveSince = l.Result.Ended
		}
		if ok && moved(out[i], l) != "" {
			if err := s.refreshState(ctx, &out[i]); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// failing returns the periodic checks of a project whose last run failed.
func (s *Source) failing(name project.Name) (names []string) {
	if s.Checks == nil {
		return nil
	}
	for _, c := range s.Checks(name) {
		if c.Failing() {
			names = append(names, c.Name)
		}
	}
	return names
}

// moved describes the branches of a project that are at another commit than its last live deployment left them at, "" if there are none.
func moved(p Project, live project.Record) string {
	switch {
	case p.RemoteLess || p.Missing || p.Problem != "" || p.Running != nil || live.Result == nil:
		return ""
	case p.Code != live.Result.Code:
		return project.MovedBeside(project.Code, p.Code, live.Result.Code)
	case p.Pillar != live.Result.Pillar:
		return project.MovedBeside(project.PillarRepo, p.Pillar, live.Result.Pillar)
	}
	return ""
}

// refreshState reports that a branch was moved without the server, unless that is explained by a deployment that ended meanwhile.
func (s *Source) refreshState(ctx context.Context, p *Project) error {
	names := []project.Name{p.Name}
	before, err := s.Records.LastLive(ctx, names)
	if err != nil {
		return err
	}
	now := *p
	s.repositories(ctx, &now)
	q, err := s.Records.Queue(ctx, p.Name)
	if err != nil {
		return err
	}
	now.Running = q.Running
	after, err := s.Records.LastLive(ctx, names)
	if err != nil {
		return err
	}
	if before[p.Name].ID == after[p.Name].ID {
		p.Code, p.Pillar, p.Branch, p.Problem = now.Code, now.Pillar, now.Branch, now.Problem
		if why := moved(now, after[p.Name]); why != "" {
			p.Code, p.Pillar, p.Problem = after[p.Name].Result.Code, after[p.Name].Result.Pillar, why
		}
	}
	return nil
}

// repositories fills in what the repositories of a project contain. A repository that cannot be read must not hide all other projects: the line
// of its project reports the error.
func (s *Source) repositories(ctx context.Context, p *Project) {
	if p.RemoteLess {
		return
	}
	if s.Remotes != nil {
		r := s.Remotes(p.Name)
		p.Remotes = &r
	}
	if p.Missing {
		return
	}
	ref, code, err := s.Repository(p.Name, project.Code).Live(ctx)
	if err == nil {
		_, p.Pillar, err = s.Repository(p.Name, project.PillarRepo).Live(ctx)
	}
	if err != nil {
		p.Problem = err.Error()
	}
	p.Branch, _ = project.Change{Ref: ref}.Branch()
	p.Code = code
}

// Report describes one project in full, with its newest deployments, at most limit.
func (s *Source) Report(ctx context.Context, name project.Name, limit int) (Report, error) {
	p, err := s.Project(ctx, name)
	if err != nil {
		return Report{}, err
	}
	out := Report{Project: p}
	if s.Server != nil {
		at := s.Server(name)
		out.Server = &at
	}
	if out.Queue, err = s.Records.Queue(ctx, name); err != nil {
		return Report{}, err
	}
	if out.Deployments, err = s.Records.Deployments(ctx, name, limit); err != nil {
		return Report{}, err
	}
	if out.Archives, err = s.Archives.List(ctx, name); err != nil && ctx.Err() == nil && p.Problem == "" {
		out.Project.Problem = "archives: " + err.Error()
	}
	out.Disk, err = s.disk(ctx, name)
	return out, err
}

// maxIncomplete limits the length of the message about a path that could not be measured.
const maxIncomplete = 300

// ProblemReport returns the report of a project for which Report failed, so that it is listed among the others and does not hide them.
func ProblemReport(name project.Name, err error) Report {
	return Report{Project: Project{Name: name, Problem: err.Error()}}
}

// ArchivesOf lists a project's archives, newest first. An unknown project is fault.Refused.
func (s *Source) ArchivesOf(ctx context.Context, name project.Name) ([]Archive, error) {
	if _, err := s.Projects.Get(ctx, name); err != nil {
		return nil, err
	}
	return s.Archives.List(ctx, name)
}

// disk measures, or returns an earlier measurement that is recent enough.
func (s *Source) disk(ctx context.Context, name project.Name) (Disk, error) {
	if s.Remember > 0 {
		s.mu.Lock()
		m, ok := s.measured[name]
		s.mu.Unlock()
		if ok && s.Now().Sub(m.at).Abs() < s.Remember {
			return m.disk, nil
		}
	}
	d, err := Usage(ctx, s.Root.Project(string(name)))
	if err == nil && s.Remember > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.measured == nil {
			s.measured = map[project.Name]measure{}
		}
		s.measured[name] = measure{d, s.Now()}
	}
	return d, err
}

// Usage measures the disk space of a project: allocated blocks, each hard-linked file once. Files that disappear meanwhile are not counted.
func Usage(ctx context.Context, l layout.Project) (Disk, error) {
	var d Disk
	seen := map[[2]uint64]bool{}
	for _, part := range []struct {
		dir string
		n   *int64
	}{{l.Live(), &d.Live}, {l.Data(), &d.Data}, {l.Git(), &d.Git}, {l.Archives(), &d.Archives}} {
		err := filepath.WalkDir(part.dir, func(_ string, e fs.DirEntry, err error) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			var fi fs.FileInfo
			if err == nil {
				fi, err = e.Info()
			}
			if err != nil {
				// A path that is too long for the kernel, a disk that cannot be read: the rest is measured anyway.
				if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) && d.Incomplete == "" {
					d.Incomplete = unmeasured(err)
				}
				return nil
			}
			st, ok := fi.Sys().(*syscall.Stat_t)
			if !ok {
				return nil
			}
			if st.Nlink > 1 && !fi.IsDir() {
				id := [2]uint64{uint64(st.Dev), st.Ino}
				if seen[id] {
					return nil
				}
				seen[id] = true
			}
			*part.n += st.Blocks * 512
			return nil
		})
		if err != nil {
			return Disk{}, err
		}
	}
	free, err := Free(l.Dir())
	d.Free = free
	return d, err
}

// unmeasured returns why a path could not be measured: the cause first, since the path may be of any length.
func unmeasured(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error() + ": " + printable.Clip(p.Path, maxIncomplete)
	}
	return printable.Clip(err.Error(), maxIncomplete)
}

// Free returns the space available to an ordinary user on dir's file system, in bytes (statvfs(3), f_bavail); 0 if dir does not exist.
func Free(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return 0, nil
		}
		return 0, err
	}
	return int64(st.Bavail) * st.Frsize, nil //nolint:gosec // a file system beyond 8 EB does not exist
}
