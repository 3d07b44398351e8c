package status_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/project/registry"
	"corpus-git/project/status"
)

// Every field of every document is in docs/json.md.
func TestDocumentsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/json.md")
	require.NoError(t, err)
	seen := map[reflect.Type]bool{}
	n := 0
	var walk func(reflect.Type)
	walk = func(ty reflect.Type) {
		for ty.Kind() == reflect.Pointer || ty.Kind() == reflect.Slice {
			ty = ty.Elem()
		}
		if ty.Kind() != reflect.Struct || ty == reflect.TypeFor[time.Time]() || seen[ty] {
			return
		}
		seen[ty] = true
		for i := range ty.NumField() {
			f := ty.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			if name == "" {
				require.True(t, f.Anonymous, "%s.%s has no name in JSON", ty, f.Name)
			} else {
				require.Contains(t, string(text), "`"+name+"`", "%s.%s", ty, f.Name)
				n++
			}
			walk(f.Type)
		}
	}
	for _, doc := range []any{status.Projects{}, status.ProjectDocument{}, status.Deployments{}, status.DeploymentDocument{}, status.Event{}, status.Archives{},
		status.ArchiveDocument{}, status.Pruned{}, status.Reports{}, status.Audit{}, status.HostKeys{}, status.Doctor{}, status.Build{}, status.Problem{}} {
		walk(reflect.TypeOf(doc))
	}
	require.Greater(t, n, 80, "the walk found the fields")
}

func TestUsage(t *testing.T) {
	l := layout.Root(t.TempDir()).Project("app")
	d, err := status.Usage(t.Context(), l)
	require.NoError(t, err, "a project without a folder occupies nothing")
	require.Zero(t, d.Live+d.Data+d.Git+d.Archives)
	big := filepath.Join(l.Archives(), "a", "big")
	for _, dir := range []string{l.Live(), l.Data(), l.Git(), filepath.Dir(big)} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	require.NoError(t, os.WriteFile(big, make([]byte, 1<<20), 0o600))
	require.NoError(t, os.Symlink("/", filepath.Join(l.Live(), "link")))
	once, err := status.Usage(t.Context(), l)
	require.NoError(t, err)
	require.GreaterOrEqual(t, once.Archives, int64(1<<20))
	require.Less(t, once.Live, int64(1<<20), "links are not followed")
	require.Positive(t, once.Free)
	require.NoError(t, os.Link(big, filepath.Join(l.Archives(), "again")))
	twice, err := status.Usage(t.Context(), l)
	require.NoError(t, err)
	require.Less(t, twice.Archives, once.Archives+1<<19, "a file with two names is counted once")
}

type one struct{}

func (one) Get(_ context.Context, name project.Name) (registry.Project, error) {
	return registry.Project{Name: name, RemoteLess: true}, nil
}
func (one) List(context.Context) ([]registry.Project, error) { return nil, nil }
func (one) Deployments(context.Context, project.Name, int) ([]project.Record, error) {
	return []project.Record{{State: project.Running}, {State: project.Waiting}, {State: project.Live, Deployment: project.Deployment{Task: "last"}}}, nil
}
func (o one) LastLive(ctx context.Context, names []project.Name) (map[project.Name]project.Record, error) {
	return map[project.Name]project.Record{}, nil
}

func (o one) Last(ctx context.Context, names []project.Name) (map[project.Name]project.Record, error) {
	all, err := o.Deployments(ctx, "", 3)
	return map[project.Name]project.Record{names[0]: all[2]}, err
}
func (one) Queue(context.Context, project.Name) (project.Queue, error) {
	return project.Queue{Running: &project.Record{}, Waiting: []project.Record{{}}}, nil
}

type noArchives struct{}

func (noArchives) List(context.Context, project.Name) ([]status.Archive, error) { return nil, nil }

func TestReportRemembersTheDisk(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	root := layout.Root(t.TempDir())
	s := &status.Source{Root: root, Projects: one{}, Records: one{}, Archives: noArchives{}, Remember: time.Minute, Now: func() time.Time { return now }}
	data := root.Project("app").Data()
	require.NoError(t, os.MkdirAll(data, 0o755))
	first, err := s.Report(t.Context(), "app", 5)
	require.NoError(t, err)
	require.Equal(t, "last", first.Project.Last.Task, "the newest that ended, behind one that runs and one that waits")
	require.NoError(t, os.WriteFile(filepath.Join(data, "big"), make([]byte, 1<<20), 0o600))
	again, err := s.Report(t.Context(), "app", 5)
	require.NoError(t, err)
	require.Equal(t, first.Disk.Data, again.Disk.Data)
	now = now.Add(2 * time.Minute)
	again, err = s.Report(t.Context(), "app", 5)
	require.NoError(t, err)
	require.GreaterOrEqual(t, again.Disk.Data, int64(1<<20))
}

// many is some projects of which one is broken; it counts the queries.
type many struct {
	one
	asked *int
}

func (many) List(context.Context) ([]registry.Project, error) {
	var all []registry.Project
	for i := range 100 {
		all = append(all, registry.Project{Name: project.Name(fmt.Sprintf("p%02d", i)), RemoteLess: i == 7, Missing: i == 8})
	}
	return all, nil
}

func (c many) LastLive(context.Context, []project.Name) (map[project.Name]project.Record, error) {
	return nil, nil
}

func (c many) Last(_ context.Context, names []project.Name) (map[project.Name]project.Record, error) {
	*c.asked++
	return map[project.Name]project.Record{names[3]: {State: project.Live}}, nil
}

func (many) Queue(context.Context, project.Name) (project.Queue, error) { return project.Queue{}, nil }

type bare struct {
	name project.Name
	repo project.Repo
}

func (b bare) Live(context.Context) (string, project.Commit, error) {
	if b.name == "p05" && b.repo == project.PillarRepo {
		return "", "", errors.New("it is broken")
	}
	return "refs/heads/main", project.Commit(string(b.name) + string(b.repo)), nil
}

// All projects are described with one query of the records, and a broken one does not hide the others.
func TestAll(t *testing.T) {
	asked := 0
	c := many{asked: &asked}
	s := &status.Source{Projects: c, Records: c, Repository: func(n project.Name, r project.Repo) status.Repository { return bare{n, r} }}
	all, err := s.All(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, asked)
	require.Len(t, all, 100)
	for i, p := range all {
		require.Equal(t, fmt.Sprintf("p%02d", i), string(p.Name), "in their order")
		require.Equal(t, i == 3, p.Last != nil)
		switch i {
		case 5:
			require.Equal(t, "it is broken", p.Problem)
		case 7, 8:
			require.Empty(t, p.Code+p.Pillar)
		default:
			require.Equal(t, "main", p.Branch)
			require.Equal(t, string(p.Name)+"project", string(p.Code))
			require.Equal(t, string(p.Name)+"pillar", string(p.Pillar))
			require.Empty(t, p.Problem)
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	_, err = s.All(stopped)
	require.ErrorIs(t, err, context.Canceled)
}

// One project has a file whose path is longer than the kernel accepts: the measurement reports that, and includes all
// the rest.
func TestUsageOfAPathThatIsTooLong(t *testing.T) {
	l := layout.Root(t.TempDir()).Project("app")
	require.NoError(t, os.MkdirAll(l.Live(), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(l.Live(), "page"), make([]byte, 100_000), 0o644))
	d, err := vfs.OS{}.OpenDir(l.Live())
	require.NoError(t, err)
	for range 20 {
		name := strings.Repeat("x", 250)
		require.NoError(t, d.Mkdir(name, 0o755))
		sub, err := d.OpenDir(name)
		require.NoError(t, err)
		require.NoError(t, d.Close())
		d = sub
	}
	require.NoError(t, d.Close())
	got, err := status.Usage(t.Context(), l)
	require.NoError(t, err)
	require.GreaterOrEqual(t, got.Live, int64(100_000))
	require.Contains(t, got.Incomplete, "file name too long")
	require.Less(t, len([]rune(got.Incomplete)), 400)
}
