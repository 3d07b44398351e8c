package web

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/project"
	"corpus-git/project/status"
)

//go:embed pages/*.html assets/*
var files embed.FS

// page is what every template gets.
type page struct {
	Title, Host, Release string
	Now                  time.Time
	Body                 any
}

func (s *Server) functions() template.FuncMap {
	return template.FuncMap{
		"age":   func(t time.Time) string { return humanize.Age(s.Now(), t) },
		"exact": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"iso":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"short": func(c project.Commit) string {
			if c == "" {
				return "–"
			}
			return c.Short()
		},
		"id":        func(id project.ID) string { return id.Short() },
		"bytes":     func(n int64) string { return humanize.Bytes(n) },
		"count":     func(n int64) string { return humanize.Count(n) },
		"class":     stateClass,
		"unitClass": unitClass,
		"took": func(r *project.Result) string {
			if r == nil || r.Started.IsZero() || r.Ended.IsZero() {
				return "–"
			}
			return humanize.Seconds(r.Ended.Sub(r.Started))
		},
		"what":    what,
		"every":   project.FormatDuration,
		"seconds": humanize.Seconds,
	}
}

func stateClass(s project.State) string {
	switch {
	case s.Good():
		return "good"
	case s.Terminal():
		return "bad"
	}
	return "busy"
}

func what(r project.Record) string {
	switch {
	case r.Trigger == project.TriggerTask:
		return "task " + r.Task
	case r.Trigger == project.TriggerPush && r.Repo == project.PillarRepo:
		return "push of the pillar"
	case r.Trigger == project.TriggerPush && r.Forced:
		return "forced push"
	}
	return string(r.Trigger)
}

// show renders a page, whole before the first byte is sent.
func (s *Server) show(w http.ResponseWriter, r *http.Request, code int, name, title string, body any) {
	t, err := template.New("frame.html").Funcs(s.functions()).ParseFS(files, "pages/frame.html", "pages/"+name)
	var b bytes.Buffer
	if err == nil {
		err = t.Execute(&b, page{Title: title, Host: s.Host, Release: s.Release, Now: s.Now(), Body: body})
	}
	if err != nil {
		s.Log.Error().Err(err).Str("path", r.URL.Path).Msg("page")
		http.Error(w, "the server failed at this page; its log has the details", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = printable.TextWriter{W: w}.Write(b.Bytes())
}

// problem answers an error in the form that the client reads.
func (s *Server) problem(w http.ResponseWriter, r *http.Request, err error) {
	code, text := s.fail(r, err)
	s.show(w, r, code, "problem.html", "Not found", struct{ Text, Hint string }{text, ""})
}

func (s *Server) home(w http.ResponseWriter, r *http.Request) {
	rights, err := s.Access.Rights(r.Context(), identity(r))
	var all []status.Project
	if err == nil {
		all, err = s.Status.All(r.Context())
	}
	if err != nil {
		s.problem(w, r, err)
		return
	}
	all = slices.DeleteFunc(slices.Clone(all), func(p status.Project) bool { return !rights.Can(p.Name, project.Read) })
	s.show(w, r, http.StatusOK, "home.html", "Projects", all)
}

func (s *Server) project(w http.ResponseWriter, r *http.Request) {
	rep, err := s.report(r)
	if err != nil {
		s.problem(w, r, err)
		return
	}
	body := struct {
		status.Report
		Units   []project.UnitState
		Problem string
		Checks  status.Checks
	}{Report: rep}
	if body.Checks, err = s.checks(r, rep.Project.Name, shownPeriods); err != nil {
		s.problem(w, r, err)
		return
	}
	if body.Units, err = s.units(r, rep.Project.Name); err != nil {
		_, body.Problem = s.fail(r, err)
	}
	s.show(w, r, http.StatusOK, "project.html", string(rep.Project.Name), body)
}

// unitClass is how the state of a unit looks.
func unitClass(u project.UnitState) string {
	switch u.State {
	case project.UnitActive:
		return "good"
	case project.UnitFailed, project.UnitUnknown:
		return "bad"
	}
	return "busy"
}

// logLine is one line of a log, and how it looks.
type logLine struct {
	Class string `json:"c,omitempty"`
	Text  string `json:"t"`
}

func classOf(e event.Event, text string) string {
	switch {
	case e.Kind == event.Verdict && e.Status == event.Bad:
		return "bad"
	case e.Kind == event.Verdict:
		return "good"
	case e.Kind == event.Failure:
		return "fail"
	case e.Kind == event.Output:
		return "out"
	case strings.HasPrefix(text, "----->"):
		return "head"
	}
	return ""
}

// lister turns events into lines.
type lister struct {
	buf     bytes.Buffer
	console *event.Console
}

func newLister() *lister {
	l := &lister{}
	l.console = event.NewConsole(&l.buf, event.Style{Verbose: true})
	return l
}

func (l *lister) lines(e event.Event) []logLine {
	l.buf.Reset()
	if _, err := l.console.Show(e); err != nil {
		return nil
	}
	var out []logLine
	for text := range strings.Lines(l.buf.String()) {
		text = strings.TrimSuffix(text, "\n")
		out = append(out, logLine{classOf(e, text), text})
	}
	return out
}

// log is what the page of a deployment shows.
type log struct {
	Project status.Project
	Record  project.Record
	Lines   []logLine
	// Seq is the last event shown; the script asks for what follows.
	Seq  uint64
	Live bool
	Cut  bool
}

// maxLines is how much of a log a page holds; the API has it all.
const maxLines = 20000

func (s *Server) deployment(w http.ResponseWriter, r *http.Request) {
	rec, err := s.record(r)
	if err != nil {
		s.problem(w, r, err)
		return
	}
	p, err := s.Status.Project(r.Context(), rec.Project)
	if err != nil {
		s.problem(w, r, err)
		return
	}
	body := log{Project: p, Record: rec, Live: !rec.State.Terminal()}
	if !body.Live {
		l := newLister()
		for e, err := range s.Runs.Follow(r.Context(), rec.ID, 0) {
			if err != nil {
				body.Lines = append(body.Lines, logLine{"fail", "the log cannot be read"})
				break
			}
			body.Seq = e.Seq
			if body.Lines = append(body.Lines, l.lines(e)...); len(body.Lines) > maxLines {
				body.Cut = true
				break
			}
		}
	}
	s.show(w, r, http.StatusOK, "deployment.html", string(rec.Project)+" "+rec.ID.Short(), body)
}

// lines follows a deployment. A script gets server-sent events (HTML, "Server-sent events"); anybody else plain text that
// grows until the deployment has ended, which a browser without JavaScript shows in a frame-less link.
func (s *Server) lines(w http.ResponseWriter, r *http.Request) {
	rec, err := s.record(r)
	if err != nil {
		s.problem(w, r, err)
		return
	}
	sse := strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	var after uint64
	if text := r.Header.Get("Last-Event-ID"); text != "" {
		if after, err = strconv.ParseUint(text, 10, 64); err != nil {
			s.problem(w, r, fault.New(fault.Usage, "", "Last-Event-ID wants a number"))
			return
		}
	}
	if sse {
		w.Header().Set("Content-Type", "text/event-stream")
	} else {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	out := newFlow(w)
	l := newLister()
	for e, err := range s.Runs.Follow(r.Context(), rec.ID, 0) {
		if err != nil {
			return
		}
		lines := l.lines(e)
		if e.Seq <= after || len(lines) == 0 {
			continue
		}
		var b bytes.Buffer
		if sse {
			data, err := json.Marshal(lines)
			if err != nil {
				return
			}
			fmt.Fprintf(&b, "id: %d\ndata: %s\n\n", e.Seq, printable.JSON(data))
		} else {
			for _, line := range lines {
				b.WriteString(line.Text + "\n")
			}
		}
		if _, err := out.Write(b.Bytes()); err != nil {
			return
		}
	}
	if sse && r.Context().Err() == nil {
		_, _ = io.WriteString(out, "event: end\ndata: {}\n\n")
	}
}

func (s *Server) asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	types := map[string]string{"style.css": "text/css; charset=utf-8", "live.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}
	data, err := files.ReadFile("assets/" + name)
	if types[name] == "" || err != nil {
		s.problem(w, r, notFound("there is no such file"))
		return
	}
	w.Header().Set("Content-Type", types[name])
	w.Header().Set("Cache-Control", "max-age=300")
	_, _ = w.Write(data)
}
