package pages

import (
	"bytes"
	"context"
	"embed"
	"html/template"
	"iter"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/access"
	"corpus-git/internal/event"
	"corpus-git/internal/printable"
	"corpus-git/project"
	"corpus-git/project/approval"
	"corpus-git/project/registry"
	"corpus-git/project/status"
	"corpus-git/web/api"
)

//go:embed templates/*.html assets/*
var files embed.FS

// Status fills the documents; *status.Source satisfies it.
type Status interface {
	All(ctx context.Context) ([]status.Project, error)
	List(ctx context.Context) ([]registry.Project, error)
	Describe(ctx context.Context, projects []registry.Project) ([]status.Project, error)
	Project(ctx context.Context, name project.Name) (status.Project, error)
	Report(ctx context.Context, name project.Name, limit int) (status.Report, error)
}

// Runs are the deployments; the pipeline satisfies it.
type Runs interface {
	Deployments(ctx context.Context, name project.Name, limit int) ([]project.Record, error)
	Before(ctx context.Context, name project.Name, id project.ID, limit int) ([]project.Record, error)
	Find(ctx context.Context, name project.Name, prefix string) (project.Record, error)
	Follow(ctx context.Context, id project.ID, seq uint64) iter.Seq2[event.Event, error]
	Queue(ctx context.Context, name project.Name) (project.Queue, error)
}

// Recent are the newest deployments of many projects; *recent.Table satisfies it.
type Recent interface {
	Newest(ctx context.Context, names []project.Name, n int) (map[project.Name][]status.Mark, error)
	// Failed returns those whose newest that has ended did not go well.
	Failed(ctx context.Context, names []project.Name) (map[project.Name]bool, error)
	// Asked counts what waits for approval.
	Asked(ctx context.Context, names []project.Name) (map[project.Name]int, error)
}

// Checks are the checks that run periodically; *watch.Watcher satisfies it.
type Checks interface {
	States(name project.Name) []project.CheckState
	History(ctx context.Context, name project.Name, limit int) ([]project.CheckPeriod, error)
}

// API answers what is below api.Prefix; *api.API satisfies it.
type API interface {
	Serve(w http.ResponseWriter, r *http.Request, who access.Identity)
}

// Config contains the dependencies of the pages. Status, Runs, Access and API are required; parts of the pages whose dependency is nil are not shown.
type Config struct {
	Status Status
	Runs   Runs
	Recent Recent
	// Events reads the log of a deployment written so far, without waiting.
	Events func(name project.Name, id project.ID) iter.Seq2[event.Event, error]
	// Subjects returns subject and author of those commits that the repository has.
	Subjects func(ctx context.Context, name project.Name, repo project.Repo, commits []project.Commit) (map[project.Commit]project.Subject, error)
	// Approvals are the requests for approval of a project, the newest first; with open only those that wait.
	Approvals func(ctx context.Context, name project.Name, open bool, limit int) ([]approval.Request, error)
	// Tasks are the names of the tasks of what is live.
	Tasks func(name project.Name) ([]string, error)
	// Units returns the units of a project with the last lines of their logs.
	Units func(ctx context.Context, name project.Name) ([]project.UnitState, error)
	// Checks are the checks that run periodically.
	Checks Checks
	// Access checks permissions.
	Access access.Authority
	API    API
	// Run runs a verb for somebody, as over ssh, and gives the exit status: see api.Run.
	Run api.Run
	// Disks are the folders whose file systems the system page shows.
	Disks []string
	Build status.Build
	// Host is this machine's name.
	Host string
	Now  func() time.Time
	Log  zerolog.Logger
}

// Reader identifies the user of a request.
type Reader interface {
	// Identity is whose request it is, who has logged in.
	Identity(r *http.Request) access.Identity
	// Secret returns the credential of the request, which no other site knows; "" for none.
	Secret(r *http.Request) string
}

// Pages answers what is not an API.
type Pages struct {
	Config
	reader  Reader
	parsed  map[string]*template.Template
	started time.Time

	mu     sync.Mutex
	doctor diagnosis
}

// New makes the pages.
func New(c Config, reader Reader) (*Pages, error) {
	p := &Pages{Config: c, reader: reader, parsed: map[string]*template.Template{}, started: c.Now()}
	entries, err := files.ReadDir("templates")
	if err != nil {
		return nil, err
	}
	frame, err := template.New("frame.html").Funcs(p.functions()).ParseFS(files, "templates/frame.html", "templates/parts.html")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		t, err := frame.Clone()
		if err == nil && e.Name() != "frame.html" && e.Name() != "parts.html" {
			t, err = t.ParseFS(files, "templates/"+e.Name())
		}
		if err != nil {
			return nil, err
		}
		p.parsed[e.Name()] = t
	}
	return p, nil
}

// Register adds the routes.
func (p *Pages) Register(mux *http.ServeMux) {
	for pattern, f := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /{$}":                                       p.home,
		"GET /changes":                                   p.changes,
		"GET /projects/{name}":                           p.project,
		"GET /projects/{name}/changes":                   p.changes,
		"GET /projects/{name}/units":                     p.units,
		"GET /projects/{name}/archives":                  p.archives,
		"GET /projects/{name}/statistics":                p.statistics,
		"GET /projects/{name}/cfg":                       p.cfg,
		"GET /projects/{name}/access":                    p.access,
		"GET /projects/{name}/notifications":             p.notifications,
		"GET /projects/{name}/audit":                     p.audit,
		"GET /projects/{name}/deployments/{id}":          p.deployment,
		"GET /projects/{name}/deployments/{id}/lines":    p.lines,
		"GET /projects/{name}/deploy":                    p.deployForm,
		"POST /projects/{name}/deploy":                   p.deploy,
		"GET /projects/{name}/rollback":                  p.rollbackForm,
		"POST /projects/{name}/rollback":                 p.rollback,
		"GET /projects/{name}/promote":                   p.promoteForm,
		"POST /projects/{name}/promote":                  p.promote,
		"GET /projects/{name}/tasks":                     p.taskForm,
		"POST /projects/{name}/tasks":                    p.task,
		"GET /projects/{name}/deployments/{id}/cancel":   p.cancelForm,
		"POST /projects/{name}/deployments/{id}/cancel":  p.cancel,
		"GET /projects/{name}/deployments/{id}/approve":  p.approveForm,
		"POST /projects/{name}/deployments/{id}/approve": p.approve,
		"GET /create":                                    p.createForm,
		"POST /create":                                   p.create,
		"GET /keys":                                      p.keysPage,
		"POST /keys":                                     p.addKey,
		"GET /audit":                                     p.audit,
		"GET /system":                                    p.system,
		"POST /system/doctor":                            p.runDoctor,
		"GET /assets/{file}":                             p.asset,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := f(w, r); err != nil {
				p.Problem(w, r, err)
			}
		})
	}
}

// page is the data of every template.
type page struct {
	Title, Host, Release string
	Now                  time.Time
	// Reader is who reads; "" on the page to log in. Admin: may do everything.
	Reader string
	Admin  bool
	// Session: the reader logged in with a browser, and may log out.
	Session bool
	// Token is that of the page's forms, Once of what is sent with them.
	Token, Once string
	// Live is what the script follows; "" for nothing.
	Live string
	Tabs []tab
	Body any
}

// Show renders a page completely before it sends the first byte.
func (p *Pages) Show(w http.ResponseWriter, r *http.Request, code int, name string, v page) {
	who := p.reader.Identity(r)
	v.Host, v.Release, v.Now, v.Reader = p.Host, p.Build.Release, p.Now(), who.Name
	if who.Name != "" {
		v.Admin, _ = p.Access.IsAdmin(r.Context(), who) // without an answer a link is missing
		v.Session = r.Header.Get("Authorization") == ""
		v.Token, v.Once = p.token(r), once()
	}
	var b bytes.Buffer
	if err := p.parsed[name].Execute(&b, v); err != nil {
		p.Log.Error().Err(err).Str("path", r.URL.Path).Msg("page")
		http.Error(w, "internal server error; see the server's log", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = printable.TextWriter{W: w}.Write(b.Bytes())
}

// policy is the Content-Security-Policy: only our own assets, and forms only to this server.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// Login shows the login form; wrong is the error of the previous attempt.
func (p *Pages) Login(w http.ResponseWriter, r *http.Request, code int, wrong string) {
	p.Show(w, r, code, "login.html", page{Title: "Log in", Body: wrong})
}

func (p *Pages) asset(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("file")
	types := map[string]string{"style.css": "text/css; charset=utf-8", "live.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}
	data, err := files.ReadFile("assets/" + name)
	if types[name] == "" || err != nil {
		return notFound("there is no such file")
	}
	w.Header().Set("Content-Type", types[name])
	w.Header().Set("Cache-Control", "max-age=300")
	_, err = w.Write(data)
	return nilIfGone(r, err)
}
