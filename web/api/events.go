package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"corpus-git/project/status"
)

const (
	// writeIdle is the timeout of a write to a client that does not read.
	writeIdle = time.Minute
)

// streams are the operations with streaming responses.
func (a *API) streams() {
	type events struct {
		OnProject
		ID    string `path:"id" pattern:"^[0-9a-fA-F-]{4,36}$" doc:"The deployment; the first four or more digits do"`
		After uint64 `query:"after" doc:"Leave out the events up to this seq"`
		Last  string `header:"Last-Event-ID" doc:"The same, as browsers send it"`
		As    string `header:"Accept"`
	}
	registry := a.huma.OpenAPI().Components.Schemas
	registry.Schema(reflect.TypeFor[status.Event](), true, "Event")
	op := operation{method: http.MethodGet, path: "/projects/{name}/deployments/{id}/events", id: "followDeployment", tag: "deployments", lookup: true,
		summary: "Follow a deployment to its end",
		about: "One event a line (#/components/schemas/Event). With Accept: text/event-stream server-sent events: id is seq, data the event, and an event named end comes last; " +
			"a reader that was cut off goes on with Last-Event-ID."}
	huma.Register(a.huma, a.described(op, http.StatusOK, map[string]*huma.MediaType{
		"application/x-ndjson": {Schema: &huma.Schema{Type: huma.TypeString}}, "text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}},
	}), func(_ context.Context, in *events) (*huma.StreamResponse, error) {
		after := in.After
		if in.Last != "" {
			n, err := strconv.ParseUint(in.Last, 10, 64)
			if err != nil {
				return nil, huma.Error400BadRequest("Last-Event-ID must be the seq of an event")
			}
			after = n
		}
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			r, w := humago.Unwrap(ctx)
			c := do("logs", in.Name, in.ID).option("follow", true)
			a.follow(w, r, op, c, &stream{w: w, control: http.NewResponseController(w), sse: strings.Contains(in.As, "text/event-stream"), after: after})
		}}, nil
	})
}

// follow writes the lines of a command as they arrive. The web server ends the request when its session or token ends.
func (a *API) follow(w http.ResponseWriter, r *http.Request, op operation, c call, s *stream) {
	ctx := r.Context()
	_ = s.control.SetReadDeadline(time.Time{}) // a recorder in tests has none
	var errs bytes.Buffer
	exit := a.Run(ctx, identity(ctx), c.argv(), nil, http.NoBody, s, &errs)
	if !s.begun {
		if p, is := problemIn(s.held.Bytes()); is || exit != 0 {
			a.fail(w, r, op, p, exit)
			return
		}
		s.begin()
	}
	if s.sse && ctx.Err() == nil && exit == 0 {
		_ = s.write([]byte("event: end\ndata: {}\n\n"))
	}
}

// stream receives the lines of a command, each an event, and writes those that the client has not seen.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	sse     bool
	after   uint64

	begun bool
	held  bytes.Buffer // of a line that is not whole, or a problem
}

// Write implements io.Writer.
func (s *stream) Write(p []byte) (int, error) {
	s.held.Write(p)
	for {
		line, rest, whole := bytes.Cut(s.held.Bytes(), []byte("\n"))
		if !whole {
			return len(p), nil
		}
		var e struct {
			Seq uint64 `json:"seq"`
		}
		if err := json.Unmarshal(line, &e); err != nil || e.Seq == 0 {
			return len(p), nil // a problem, which is told when it is whole
		}
		var out []byte
		if s.sse {
			out = fmt.Appendf(nil, "id: %d\ndata: %s\n\n", e.Seq, line)
		} else {
			out = append(append(out, line...), '\n')
		}
		left := append([]byte(nil), rest...)
		s.held.Reset()
		s.held.Write(left)
		if e.Seq <= s.after {
			continue
		}
		if err := s.write(out); err != nil {
			return 0, err
		}
	}
}

func (s *stream) begin() {
	s.begun = true
	s.w.Header().Set("Content-Type", "application/x-ndjson; charset=utf-8")
	if s.sse {
		s.w.Header().Set("Content-Type", "text/event-stream")
	}
	s.w.WriteHeader(http.StatusOK)
}

// write sets its own deadline, so a client that stopped reading is disconnected.
func (s *stream) write(p []byte) error {
	if !s.begun {
		s.begin()
	}
	if err := s.control.SetWriteDeadline(time.Now().Add(writeIdle)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.w.Write(p); err != nil {
		return err
	}
	return s.control.Flush()
}
