package pages

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"corpus-git/access"
	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/project/status"
	"corpus-git/web/api"
)

// notFound returns the error for something that does not exist or may not be read.
func notFound(text string) error { return fault.New(fault.Refused, "", "%s", text) }

// NoPage returns the error for an unknown path.
func NoPage() error { return notFound("there is no such page") }

func noProject(name project.Name) error {
	return notFound("there is no project " + string(name) + ", or you have no right on it")
}

// refusal is an unsuccessful response of the API.
type refusal struct{ api.Problem }

// Error implements error.
func (r refusal) Error() string { return r.Detail }

// code returns the HTTP status of an error.
func code(err error) int {
	if r, ok := errors.AsType[refusal](err); ok {
		return r.Status
	}
	switch fault.KindOf(err) {
	case fault.Refused:
		return http.StatusNotFound
	case fault.Usage:
		return http.StatusBadRequest
	case fault.Conflict:
		return http.StatusConflict
	case fault.Busy:
		return http.StatusServiceUnavailable
	}
	if errors.Is(err, fs.ErrNotExist) {
		return http.StatusNotFound
	}
	return http.StatusInternalServerError
}

// Fail logs internal errors and responds with what the client may know.
func (p *Pages) Fail(r *http.Request, err error) (int, string) {
	if r.Context().Err() != nil {
		return http.StatusServiceUnavailable, "the server is stopping"
	}
	c := code(err)
	if _, ours := errors.AsType[refusal](err); c == http.StatusInternalServerError && !ours {
		p.Log.Error().Err(err).Str("path", r.URL.Path).Msg("request failed")
		return c, "internal server error; see the server's log"
	}
	return c, err.Error()
}

// problem returns the message of a page for an error.
type problem struct{ Text, Hint string }

func (p *Pages) explain(r *http.Request, err error) (int, problem) {
	code, text := p.Fail(r, err)
	out := problem{Text: text}
	if q, ok := errors.AsType[refusal](err); ok {
		out.Hint = q.Hint
	}
	return code, out
}

// Problem responds to an error with a page.
func (p *Pages) Problem(w http.ResponseWriter, r *http.Request, err error) {
	code, text := p.explain(r, err)
	p.Show(w, r, code, "problem.html", page{Title: http.StatusText(code), Body: text})
}

// nilIfGone returns nil for errors of writing to a client that has disconnected.
func nilIfGone(r *http.Request, err error) error {
	if r.Context().Err() != nil {
		return nil
	}
	return err
}

// readable returns the project of the path and the reader's permissions on it. Without the permission to read it, the error is that of a project that does not
// exist.
func (p *Pages) readable(r *http.Request) (project.Name, access.Rights, error) {
	return p.allowed(r, project.Read)
}

// allowed is readable with an additional permission.
func (p *Pages) allowed(r *http.Request, want project.Right) (project.Name, access.Rights, error) {
	name, err := project.ParseName(r.PathValue("name"))
	if err != nil {
		return "", access.Rights{}, notFound("there is no such project")
	}
	rights, err := p.Access.Rights(r.Context(), p.reader.Identity(r))
	switch {
	case err != nil:
	case !rights.Can(name, project.Read):
		err = noProject(name)
	case !rights.Can(name, want):
		err = notFound("this requires " + string(want) + " permission on " + string(name))
	}
	return name, rights, err
}

// record returns the deployment of the path.
func (p *Pages) record(r *http.Request) (project.Record, access.Rights, error) {
	name, rights, err := p.readable(r)
	if err != nil {
		return project.Record{}, rights, err
	}
	if _, err := p.Status.Project(r.Context(), name); err != nil {
		return project.Record{}, rights, noProject(name)
	}
	prefix, err := project.ParseIDPrefix(r.PathValue("id"))
	if err != nil {
		return project.Record{}, rights, err
	}
	rec, err := p.Runs.Find(r.Context(), name, prefix)
	return rec, rights, err
}

// number reads a number from 1 to max from the query; usual is the default.
func number(r *http.Request, key string, usual, max int) (int, error) {
	text := r.URL.Query().Get(key)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > max {
		return 0, fault.New(fault.Usage, "", "%s must be a number from 1 to %d", key, max)
	}
	return n, nil
}

// read runs a verb as the reader and decodes its document.
func (p *Pages) read(r *http.Request, doc any, words string, args ...string) error {
	if p.Run == nil {
		return notFound("this server shows no such page")
	}
	var out, errs bytes.Buffer
	argv := append(append(strings.Fields(words), "--json", "--"), args...)
	exit := p.Run(r.Context(), p.reader.Identity(r), argv, nil, http.NoBody, &out, &errs)
	var bad status.Problem
	if err := json.NewDecoder(bytes.NewReader(out.Bytes())).Decode(&bad); exit != 0 && err == nil && bad.Error != "" {
		return refusal{api.Problem{Status: map[bool]int{true: http.StatusNotFound, false: http.StatusInternalServerError}[bad.Kind == fault.Refused.String()], Detail: bad.Error, Hint: bad.Hint}}
	}
	if err := json.NewDecoder(&out).Decode(doc); err != nil {
		return fault.New(fault.Internal, words, "exit status %d: %w", exit, err)
	}
	return nil
}

// change sends a request to the API as the reader. at is the page of the created resource, "" if there is none.
func (p *Pages) change(r *http.Request, method, path string, body any) (at string, err error) {
	out, err := p.ask(r, method, path, body)
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(out.Headers.Get("Location"), api.Prefix), nil
}

// ask has the API do something as the reader; an answer that is no success is an error.
func (p *Pages) ask(r *http.Request, method, path string, body any) (*api.Answer, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(r.Context(), method, "http://localhost"+api.Prefix+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.RemoteAddr = r.RemoteAddr
	req.Header.Set("Content-Type", "application/json")
	if key := r.PostForm.Get("once"); key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	out := api.NewAnswer()
	p.API.Serve(out, req, p.reader.Identity(r))
	if out.Status >= http.StatusBadRequest {
		var q api.Problem
		if err := json.Unmarshal(out.Body.Bytes(), &q); err != nil {
			return nil, fault.New(fault.Internal, path, "status %d: %w", out.Status, err)
		}
		for _, e := range q.Errors {
			q.Detail += ": " + e.Message + " (" + e.Location + ")"
		}
		q.Status = out.Status
		return nil, refusal{q}
	}
	return out, nil
}

// pathOf returns the path of a project's page.
func pathOf(name project.Name, more ...string) string {
	out := "/projects/" + url.PathEscape(string(name))
	for _, m := range more {
		out += "/" + url.PathEscape(m)
	}
	return out
}

// deadlineWriter is a response of unlimited duration; each write has its own deadline and is flushed.
type deadlineWriter struct {
	w http.ResponseWriter
	c *http.ResponseController
}

// newFlow also removes the read deadline, which would end the request's context during a streaming response.
func newFlow(w http.ResponseWriter) *deadlineWriter {
	f := &deadlineWriter{w, http.NewResponseController(w)}
	_ = f.c.SetReadDeadline(time.Time{}) // a recorder in tests has none
	return f
}

// Write implements io.Writer.
func (f *deadlineWriter) Write(p []byte) (int, error) {
	// A recorder in tests has no deadlines; a connection has.
	if err := f.c.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	n, err := f.w.Write(p)
	if err == nil {
		err = f.c.Flush()
	}
	return n, err
}

var _ io.Writer = (*deadlineWriter)(nil)
