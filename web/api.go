package web

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
	"corpus-git/project/status"
)

func notFound(text string) error { return fault.New(fault.Refused, "", "%s", text) }

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

// answer writes a document.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, doc any, err error) {
	c := http.StatusOK
	if err != nil {
		var text string
		c, text = s.fail(r, err)
		doc = status.Problem{Version: status.Version, Error: text, Kind: fault.KindOf(err).String(), Exit: fault.ExitCode(err)}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(c)
	e := json.NewEncoder(printable.JSONWriter{W: w})
	e.SetIndent("", "  ")
	_ = e.Encode(doc)
}

// name is the project of the path; it exists.
func (s *Server) name(r *http.Request) (project.Name, error) {
	name, err := project.ParseName(r.PathValue("name"))
	if err != nil {
		return "", notFound("there is no such project")
	}
	return name, nil
}

func (s *Server) record(r *http.Request) (project.Record, error) {
	name, err := s.name(r)
	if err != nil {
		return project.Record{}, err
	}
	if _, err := s.Status.Project(r.Context(), name); err != nil {
		return project.Record{}, err
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

func (s *Server) apiProjects(w http.ResponseWriter, r *http.Request) {
	all, err := s.Status.All(r.Context())
	s.answer(w, r, status.Projects{Version: status.Version, Projects: all}, err)
}

func (s *Server) apiProject(w http.ResponseWriter, r *http.Request) {
	name, err := s.name(r)
	var p status.Project
	if err == nil {
		p, err = s.Status.Project(r.Context(), name)
	}
	s.answer(w, r, status.ProjectDocument{Version: status.Version, Project: p}, err)
}

func (s *Server) report(r *http.Request) (status.Report, error) {
	name, err := s.name(r)
	if err != nil {
		return status.Report{}, err
	}
	n, err := limit(r, 20)
	if err != nil {
		return status.Report{}, err
	}
	return s.Status.Report(r.Context(), name, n)
}

func (s *Server) apiReport(w http.ResponseWriter, r *http.Request) {
	rep, err := s.report(r)
	s.answer(w, r, status.Reports{Version: status.Version, Reports: []status.Report{rep}}, err)
}

func (s *Server) apiArchives(w http.ResponseWriter, r *http.Request) {
	doc := status.Archives{Version: status.Version, Archives: []status.Archive{}}
	name, err := s.name(r)
	if err == nil {
		doc.Project = name
		var all []status.Archive
		all, err = s.Status.ArchivesOf(r.Context(), name)
		doc.Archives = append(doc.Archives, all...)
	}
	s.answer(w, r, doc, err)
}

func (s *Server) apiDeployments(w http.ResponseWriter, r *http.Request) {
	doc := status.Deployments{Version: status.Version, Deployments: []project.Record{}}
	err := func() (err error) {
		if doc.Project, err = s.name(r); err != nil {
			return err
		}
		if _, err := s.Status.Project(r.Context(), doc.Project); err != nil {
			return err
		}
		n, err := limit(r, 20)
		if err != nil {
			return err
		}
		recs, err := s.Runs.Deployments(r.Context(), doc.Project, n)
		doc.Deployments = append(doc.Deployments, recs...)
		return err
	}()
	s.answer(w, r, doc, err)
}

func (s *Server) apiDeployment(w http.ResponseWriter, r *http.Request) {
	rec, err := s.record(r)
	s.answer(w, r, status.DeploymentDocument{Version: status.Version, Deployment: rec}, err)
}

// apiEvents gives the events of a deployment as JSON lines, until it has ended. ?after=SEQ leaves out what was seen.
func (s *Server) apiEvents(w http.ResponseWriter, r *http.Request) {
	rec, err := s.record(r)
	var after uint64
	if text := r.URL.Query().Get("after"); err == nil && text != "" {
		if after, err = strconv.ParseUint(text, 10, 64); err != nil {
			err = fault.New(fault.Usage, "", "after wants the seq of an event")
		}
	}
	if err != nil {
		s.answer(w, r, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson; charset=utf-8")
	out := newFlow(w)
	e := json.NewEncoder(printable.JSONWriter{W: out})
	for ev, err := range s.Runs.Follow(r.Context(), rec.ID, after) {
		if err != nil || e.Encode(status.Event{Version: status.Version, Event: ev}) != nil {
			return
		}
	}
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

// wantsJSON reports whether the client reads JSON rather than pages.
func wantsJSON(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/api/") || strings.HasPrefix(r.Header.Get("Accept"), "application/json")
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

func (s *Server) apiUnits(w http.ResponseWriter, r *http.Request) {
	name, err := s.name(r)
	if err == nil {
		_, err = s.Status.Project(r.Context(), name)
	}
	doc := status.Units{Version: status.Version, Project: name, Units: []project.UnitState{}}
	if err == nil {
		var all []project.UnitState
		all, err = s.units(r, name)
		doc.Units = append(doc.Units, all...)
	}
	s.answer(w, r, doc, err)
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

func (s *Server) apiChecks(w http.ResponseWriter, r *http.Request) {
	name, err := s.name(r)
	n := 0
	if err == nil {
		n, err = limit(r, 100)
	}
	if err == nil {
		_, err = s.Status.Project(r.Context(), name)
	}
	var doc status.Checks
	if err == nil {
		doc, err = s.checks(r, name, n)
	}
	s.answer(w, r, doc, err)
}
