package status_test

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/project/registry"
	"corpus-git/project/status"
)

// Every field of every document stands in docs/json.md.
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
		status.ArchiveDocument{}, status.Pruned{}, status.Reports{}, status.Audit{}, status.Doctor{}, status.Build{}, status.Problem{}} {
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
func (one) Queue(context.Context, project.Name) (project.Queue, error) {
	return project.Queue{Running: &project.Record{}, Waiting: []project.Record{{}}}, nil
}

type noArchives struct{}

func (noArchives) List(context.Context, project.Name) ([]status.Archive, error) { return nil, nil }

func TestReportRemembersTheDisk(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	root := layout.Root(t.TempDir())
	s := &status.Source{Root: root, Projects: one{}, Runs: one{}, Archives: noArchives{}, Remember: time.Minute, Now: func() time.Time { return now }}
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
