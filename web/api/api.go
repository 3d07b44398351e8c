package api

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/rs/zerolog"

	"corpus-git/access"
	"corpus-git/internal/db"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project/status"
)

// Prefix is the path prefix of the API.
const Prefix = "/api/v1"

// maxBody is the maximum size of a request body; a public key is the largest thing sent.
const maxBody = 1 << 20

// Run runs a verb for a user, as over ssh, and returns the exit status. If it is not 0, standard output contains a status.Problem, or the document of a verb
// that prints one anyway. check, if it is not nil, is called right before the verb's first change, with no other change of the server between them; the verb
// fails with its error.
type Run func(ctx context.Context, who access.Identity, argv []string, check func() error, stdin io.Reader, stdout, stderr io.Writer) int

// Config contains the dependencies and settings of an API.
type Config struct {
	Run Run
	// DB stores responses to requests with an Idempotency-Key.
	DB *sql.DB
	// Rate is the average number of requests per second allowed for a credential; 0 means no limit.
	Rate float64
	// Release is the version of the program, for the document.
	Release string
	Now     func() time.Time
	Log     zerolog.Logger
}

// API answers requests below Prefix.
type API struct {
	Config
	mux    *http.ServeMux
	huma   huma.API
	limits *limits
	keys   inFlight
	spec   []byte
}

// Open creates an API and migrates its table. It does not close the database.
func Open(ctx context.Context, c Config) (*API, error) {
	if err := db.Migrate(ctx, c.DB, "web_api", []string{migration1}); err != nil {
		return nil, err
	}
	a := describe(c.Release)
	a.Config, a.limits = c, newLimits(c.Rate, c.Now)
	var err error
	a.spec, err = json.MarshalIndent(a.huma.OpenAPI(), "", "  ")
	return a, err
}

// Document returns the OpenAPI 3.1 document.
func Document(release string) ([]byte, error) { return json.MarshalIndent(OpenAPI(release), "", "  ") }

// OpenAPI returns the document before it is encoded.
func OpenAPI(release string) *huma.OpenAPI { return describe(release).huma.OpenAPI() }

// describe registers the routes.
func describe(release string) *API {
	a := &API{mux: http.NewServeMux()}
	config := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{Title: "corpus-git", Version: release, Description: "What the commands do, over HTTP. Rights are those of the user whose token or session it is; " +
				"what somebody has no right on answers as what does not exist."},
			Servers: []*huma.Server{{URL: Prefix}},
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", schemaName),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"token":   {Type: "http", Scheme: "bearer", Description: "An API token: corpus-git token create NAME"},
					"session": {Type: "apiKey", In: "cookie", Name: "corpus-git", Description: "A browser's session: corpus-git web login"},
				},
			},
			Security: []map[string][]string{{"token": {}}, {"session": {}}},
		},
		Formats:       map[string]huma.Format{"application/json": {Marshal: marshal, Unmarshal: json.Unmarshal}, "json": {Marshal: marshal, Unmarshal: json.Unmarshal}},
		DefaultFormat: "application/json",

		RejectUnknownQueryParameters: true,
	}
	a.huma = humago.NewWithPrefix(a.mux, Prefix, config)
	a.register()
	return a
}

// marshal encodes JSON that is safe to show in a terminal or a page; see printable.
func marshal(w io.Writer, v any) error {
	e := json.NewEncoder(printable.JSONWriter{W: w})
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// identityKey is the key of the identity in a request's context.
type identityKey struct{}

func identity(ctx context.Context) access.Identity {
	who, _ := ctx.Value(identityKey{}).(access.Identity)
	return who
}

// Serve handles a request of an authenticated user.
func (a *API) Serve(w http.ResponseWriter, r *http.Request, who access.Identity) {
	if wait := a.limits.take(credential(who)); wait > 0 {
		TooMany(w, wait)
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), identityKey{}, who))
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	switch {
	case r.Method == http.MethodHead && flows(r.URL.Path):
		w.Header().Set("Allow", http.MethodGet)
		WriteProblem(w, noMethod(r))
	case r.Method == http.MethodHead:
		a.read(w, r)
	case r.URL.Path == Prefix+"/openapi.json" && r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(a.spec)
	case flows(r.URL.Path):
		a.route(w, r)
	case r.Method == http.MethodGet:
		a.read(w, r)
	case who.ReadOnly:
		WriteProblem(w, Problem{Status: http.StatusForbidden, Detail: "this token may only read", Kind: fault.Refused.String(), Hint: "make one that may do more:  corpus-git token create NAME", Exit: fault.Refused.ExitCode()})
	default:
		a.change(w, r)
	}
}

// flows reports whether the answer of a path is sent as it comes: it may be long, and has no ETag.
func flows(path string) bool {
	return strings.HasSuffix(path, "/events") || strings.HasSuffix(path, "/export")
}

func noMethod(r *http.Request) Problem {
	return Problem{Status: http.StatusMethodNotAllowed, Detail: "this resource has no " + printable.Clip(r.Method, 20), Kind: fault.Usage.String(), Exit: fault.Usage.ExitCode()}
}

// credential returns the key by which requests are rate-limited.
func credential(who access.Identity) string {
	if who.Fingerprint == "" || who.Fingerprint == "session" {
		return who.Fingerprint + " " + who.Name
	}
	return who.Fingerprint
}

// route finds the operation.
func (a *API) route(w http.ResponseWriter, r *http.Request) {
	if _, pattern := a.mux.Handler(r); pattern != "" {
		a.mux.ServeHTTP(w, r)
		return
	}
	// The mux responds with the allowed methods of a path as text; only these are used.
	plain := NewAnswer()
	a.mux.ServeHTTP(plain, r)
	p := Problem{Status: http.StatusNotFound, Detail: "there is no such resource", Kind: fault.Refused.String(), Hint: "see  " + Prefix + "/openapi.json", Exit: fault.Refused.ExitCode()}
	if plain.Status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", plain.Headers.Get("Allow"))
		p = noMethod(r)
	}
	WriteProblem(w, p)
}

// read handles GET and HEAD, with an ETag of the response (RFC 9110, 8.8.3).
func (a *API) read(w http.ResponseWriter, r *http.Request) {
	got := r
	if r.Method == http.MethodHead {
		got = r.Clone(r.Context())
		got.Method = http.MethodGet
	}
	out := NewAnswer()
	a.route(out, got)
	if out.Status == http.StatusOK {
		tag := out.tag()
		out.Headers.Set("ETag", tag)
		if matches(r.Header.Get("If-None-Match"), tag) {
			out.Status, out.Body = http.StatusNotModified, bytes.Buffer{}
			out.Headers.Del("Content-Type")
		}
	}
	if r.Method == http.MethodHead {
		out.Headers.Set("Content-Length", strconv.Itoa(out.Body.Len()))
		out.Body = bytes.Buffer{}
	}
	out.send(w)
}

// matches reports whether a list of entity tags, of If-Match or If-None-Match, contains one.
func matches(list, tag string) bool {
	for t := range strings.SplitSeq(list, ",") {
		if t = strings.TrimPrefix(strings.TrimSpace(t), "W/"); t == tag || t == "*" {
			return true
		}
	}
	return false
}

// compare checks If-Match against the tag of the resource itself, or of its nearest readable parent. It returns the problem, nil if the tag matches.
func (a *API) compare(r *http.Request, list string) *Problem {
	_, changing := a.mux.Handler(r)
	for path := r.URL.Path; strings.HasPrefix(path, Prefix+"/"); path = path[:strings.LastIndexByte(path, '/')] {
		q := r.Clone(r.Context())
		q.Method, q.Body, q.ContentLength = http.MethodGet, http.NoBody, 0
		q.URL.Path, q.URL.RawPath, q.URL.RawQuery = path, "", ""
		_, pattern := a.mux.Handler(q)
		if pattern == "" || path == r.URL.Path && resource(pattern) != resource(changing) { // archives/prune is not an archive
			continue
		}
		out := NewAnswer()
		a.route(out, q)
		if out.Status == http.StatusOK && matches(list, out.tag()) {
			return nil
		}
		return &Problem{Status: http.StatusPreconditionFailed, Detail: path + " is not as If-Match says", Kind: fault.Refused.String(), Hint: "read it again", Exit: fault.Refused.ExitCode()}
	}
	return &Problem{Status: http.StatusPreconditionFailed, Detail: "nothing here has an ETag", Kind: fault.Usage.String(), Exit: fault.Usage.ExitCode()}
}

// resource returns the path of a pattern of the mux, without its method.
func resource(pattern string) string {
	_, path, _ := strings.Cut(pattern, " ")
	return path
}

// change handles requests other than GET and HEAD.
func (a *API) change(w http.ResponseWriter, r *http.Request) {
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		a.once(w, r, key)
		return
	}
	a.apply(w, r)
}

func (a *API) apply(w http.ResponseWriter, r *http.Request) {
	// Changes may take longer than the deadlines of pages.
	c := http.NewResponseController(w)
	_, _ = c.SetReadDeadline(a.Now().Add(time.Minute)), c.SetWriteDeadline(time.Time{}) // a recorder in tests has none
	if list := r.Header.Get("If-Match"); list != "" {                                   // it is compared again right before the change: see run
		if p := a.compare(r, list); p != nil {
			WriteProblem(w, *p)
			return
		}
	}
	a.route(w, r)
}

// Problem is a problem document (RFC 9457), with the kind, hint and exit status of the command.
type Problem struct {
	Type     string              `json:"type,omitempty"`
	Title    string              `json:"title,omitempty"`
	Status   int                 `json:"status"`
	Detail   string              `json:"detail,omitempty"`
	Instance string              `json:"instance,omitempty"`
	Errors   []*huma.ErrorDetail `json:"errors,omitempty"`
	Kind     string              `json:"kind,omitempty"`
	Hint     string              `json:"hint,omitempty"`
	Exit     int                 `json:"exit,omitempty"`
}

// WriteProblem sends a problem document.
func WriteProblem(w http.ResponseWriter, p Problem) {
	p.Title = http.StatusText(p.Status)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = marshal(w, p)
}

// TooMany responds to a client that sends too many requests.
func TooMany(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int((wait+time.Second-1)/time.Second))))
	WriteProblem(w, Problem{Status: http.StatusTooManyRequests, Detail: "too many requests", Kind: fault.Busy.String(), Exit: fault.Busy.ExitCode()})
}

// problemOf returns the problem document for a failed verb.
func problemOf(method string, lookup bool, p status.Problem) Problem {
	code := http.StatusInternalServerError
	switch p.Kind {
	case fault.Usage.String():
		if code = http.StatusBadRequest; lookup {
			code = http.StatusNotFound
		}
	case fault.Refused.String():
		if code = http.StatusForbidden; method == http.MethodGet {
			code = http.StatusNotFound
		}
	case fault.Conflict.String():
		code = http.StatusConflict
	case fault.Busy.String():
		code = http.StatusServiceUnavailable
	}
	return Problem{Status: code, Detail: p.Error, Kind: p.Kind, Hint: p.Hint, Exit: p.Exit}
}
