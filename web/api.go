package web

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/project"
	"corpus-git/project/status"
)

func notFound(text string) error { return fault.New(fault.Refused, "", "%s", text) }

func noProject(name project.Name) error {
	return notFound("there is no project " + string(name) + ", or you have no right on it")
}

// code is the HTTP status of an error.
func code(err error) int {
	switch fault.KindOf(err) {
	case fault.Refused:
		return http.StatusNotFound
	case fault.Usage:
		return http.StatusBadRequest
	case fault.Busy:
		return http.StatusServiceUnavailable
	}
	if errors.Is(err, fs.ErrNotExist) {
		return http.StatusNotFound
	}
	return http.StatusInternalServerError
}

// fail logs what is our own fault and tells what the client may know.
func (s *Server) fail(r *http.Request, err error) (int, string) {
	if r.Context().Err() != nil {
		return http.StatusServiceUnavailable, "the server is stopping"
	}
	c := code(err)
	if c == http.StatusInternalServerError {
		s.Log.Error().Err(err).Str("path", r.URL.Path).Msg("request failed")
		return c, "the server failed at this; its log has the details"
	}
	return c, err.Error()
}

// name is the project of the path; it exists.
func (s *Server) name(r *http.Request) (project.Name, error) {
	name, err := project.ParseName(r.PathValue("name"))
	if err != nil {
		return "", notFound("there is no such project")
	}
	return name, nil
}

// readable is the project of the path, which the reader may read; one without a right is told what is told of a project that does not exist.
func (s *Server) readable(r *http.Request) (project.Name, error) {
	name, err := s.name(r)
	if err != nil {
		return "", err
	}
	can, err := s.Access.Can(r.Context(), identity(r), name, project.Read)
	if err == nil && !can {
		err = noProject(name)
	}
	return name, err
}

func (s *Server) record(r *http.Request) (project.Record, error) {
	name, err := s.readable(r)
	if err != nil {
		return project.Record{}, err
	}
	if _, err := s.Status.Project(r.Context(), name); err != nil {
		return project.Record{}, noProject(name)
	}
	prefix, err := project.ParseIDPrefix(r.PathValue("id"))
	if err != nil {
		return project.Record{}, err
	}
	return s.Runs.Find(r.Context(), name, prefix)
}

// limit reads ?limit=, 1 to 1000.
func limit(r *http.Request, usual int) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1000 {
		return 0, fault.New(fault.Usage, "", "limit wants a number from 1 to 1000")
	}
	return n, nil
}

func (s *Server) report(r *http.Request) (status.Report, error) {
	name, err := s.readable(r)
	if err != nil {
		return status.Report{}, err
	}
	n, err := limit(r, 20)
	if err != nil {
		return status.Report{}, err
	}
	return s.Status.Report(r.Context(), name, n)
}

// flow is a response that goes on for long: each write has a deadline of its own and is flushed.
type flow struct {
	w http.ResponseWriter
	c *http.ResponseController
}

// newFlow also lifts the deadline of reading: it would end the request's context in the midst of a long answer.
func newFlow(w http.ResponseWriter) *flow {
	f := &flow{w, http.NewResponseController(w)}
	_ = f.c.SetReadDeadline(time.Time{}) // a recorder in tests has none
	return f
}

func (f *flow) Write(p []byte) (int, error) {
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

// unitsWait bounds how long a page waits for systemd and the like.
const unitsWait = 5 * time.Second

// units is what a project runs; the project exists.
func (s *Server) units(r *http.Request, name project.Name) ([]project.UnitState, error) {
	if s.Units == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), unitsWait)
	defer cancel()
	return s.Units(ctx, name)
}

// shownPeriods is how much of the history of checks a page shows.
const shownPeriods = 20

// checks are the periodic checks of a project, which exists, and their history.
func (s *Server) checks(r *http.Request, name project.Name, limit int) (doc status.Checks, err error) {
	doc = status.Checks{Version: status.Version, Project: name, Checks: []project.CheckState{}, History: []project.CheckPeriod{}}
	if s.Checks == nil {
		return doc, nil
	}
	history, err := s.Checks.History(r.Context(), name, limit)
	doc.Checks, doc.History = append(doc.Checks, s.Checks.States(name)...), append(doc.History, history...)
	return doc, err
}
