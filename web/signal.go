package web

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
	"corpus-git/signals"
	"corpus-git/web/api"
)

// Signals receives signals sent to their addresses; *signals.Store implements it.
type Signals interface {
	Parse(path string) (signals.Address, error)
	Accept(ctx context.Context, a signals.Address, g signals.Given) (signals.Answer, project.Name, error)
}

// Audit records actions; *audit.Log implements it.
type Audit interface {
	Record(ctx context.Context, e audit.Entry) error
}

// signal receives a signal, and so is an address at which nothing counts any more:
// those have been in logs, and each request is an entry of the audit log.
func (s *Server) signal(failed, idle *failures) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from := s.client(r)
		a, err := s.Signals.Parse(r.URL.Path)
		if err != nil {
			if failed.tooMany(from) {
				api.TooMany(w, time.Second)
				return
			}
			signalProblem(w, http.StatusForbidden, err)
			return
		}
		if r.Method != http.MethodPost && r.Method != http.MethodPut {
			w.Header().Set("Allow", "POST, PUT")
			signalProblem(w, http.StatusMethodNotAllowed, fault.New(fault.Usage, "", "a signal is sent with POST or PUT"))
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, signals.MaxBody))
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			signalProblem(w, http.StatusRequestEntityTooLarge, fault.New(fault.Usage, "", "a signal has at most %d bytes", signals.MaxBody))
			return
		}
		if err != nil {
			return // the sender has gone
		}
		g, err := signals.Parse(body)
		var answer signals.Answer
		var name project.Name
		if err == nil {
			g.By = "address"
			answer, name, err = s.Signals.Accept(r.Context(), a, g)
		}
		if !answer.Counted && idle.tooMany(strings.Join([]string{string(a.Deployment), a.Wait, a.Name}, "/")) {
			api.TooMany(w, time.Second)
			return
		}
		s.auditSignal(r.Context(), a, name, from, err)
		if err != nil {
			signalProblem(w, signalCode(err), s.hideInternal(r, err))
			return
		}
		s.shared()
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(printable.JSONWriter{W: w}).Encode(answer)
	}
}

func (s *Server) shared() {
	if s.Shared != nil {
		s.Shared()
	}
}

func (s *Server) auditSignal(ctx context.Context, a signals.Address, name project.Name, from string, err error) {
	e := audit.Entry{Action: "signal", From: from, Project: string(name), Object: a.Wait + "/" + a.Name, Deployment: string(a.Deployment), Outcome: "ok"}
	if err != nil {
		e.Outcome, e.Detail = "refused", err.Error()
		if fault.KindOf(err) == fault.Internal {
			e.Outcome = "failed"
		}
	}
	if err := s.Audit.Record(context.WithoutCancel(ctx), e); err != nil {
		s.Log.Error().Err(err).Msg("audit a signal")
	}
}

// hideInternal logs internal errors and hides them from the sender.
func (s *Server) hideInternal(r *http.Request, err error) error {
	if fault.KindOf(err) != fault.Internal {
		return err
	}
	parts := strings.Split(r.URL.Path, "/") // without the secret
	s.Log.Error().Err(err).Str("path", strings.Join(parts[:len(parts)-1], "/")).Msg("request failed")
	return fault.New(fault.Internal, "", "internal server error; see the server's log")
}

func signalCode(err error) int {
	switch fault.KindOf(err) {
	case fault.Conflict:
		return http.StatusConflict
	case fault.Usage:
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

func signalProblem(w http.ResponseWriter, code int, err error) {
	api.WriteProblem(w, api.Problem{Status: code, Detail: err.Error(), Hint: fault.HintOf(err), Kind: fault.KindOf(err).String(), Exit: fault.ExitCode(err)})
}
