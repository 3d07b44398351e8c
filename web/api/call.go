package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"corpus-git/internal/fault"
	"corpus-git/project/status"
)

// Text is the response of a command without a JSON document: its output.
type Text struct {
	Version int    `json:"version"`
	Text    string `json:"text"`
}

// Cfg is the document of cfg --json.
type Cfg struct {
	Version int    `json:"version"`
	Project string `json:"project"`
	Path    string `json:"path,omitempty"`
	Cfg     any    `json:"cfg"`
	// Origins has the layer of each value by its path.
	Origins map[string]string `json:"origins"`
}

// operation is one method of one resource.
type operation struct {
	method, path, id, tag, summary string
	// status is that of success; 0 is 200.
	status int
	// lookup: a usage error means that the resource in the path does not exist.
	lookup bool
	// about is more for the document.
	about string
}

// call is a command line.
type call struct {
	// words are the command, options the arguments before "--", args those after it.
	words, options, args []string
	stdin                string
	// text: the command prints no document.
	text bool
	// page returns the query of the next page, from the document; "" is none.
	page func(doc []byte) string
	// location returns the path of the created resource below Prefix, from the document.
	location func(doc []byte) string
}

func (c call) argv() []string {
	argv := append([]string{}, c.words...)
	argv = append(argv, c.options...)
	if !c.text {
		argv = append(argv, "--json")
	}
	return append(append(argv, "--"), c.args...)
}

// option adds --name=value where value is not the zero value.
func (c call) option(name string, value any) call {
	if v := reflect.ValueOf(value); v.IsZero() {
		return c
	}
	c.options = append(append([]string{}, c.options...), "--"+name+"="+fmt.Sprint(value))
	return c
}

// options adds --name=value for each value.
func (c call) all(name string, values []string) call {
	for _, v := range values {
		c = c.option(name, v)
	}
	return c
}

// csv adds an option that takes a comma-separated list, in which values with a comma are quoted.
func (c call) csv(name string, values []string) call {
	for _, v := range values {
		c = c.option(name, `"`+strings.ReplaceAll(v, `"`, `""`)+`"`)
	}
	return c
}

// do returns a call of words with args.
func do(words string, args ...string) call { return call{words: strings.Fields(words), args: args} }

// command is like do for a verb that prints no document.
func command(words string, args ...string) call {
	c := do(words, args...)
	c.text = true
	return c
}

// add registers an operation that returns a D.
func add[I, D any](a *API, op operation, call func(*I) call) {
	code := op.status
	if code == 0 {
		code = http.StatusOK
	}
	registry := a.huma.OpenAPI().Components.Schemas
	schema := registry.Schema(reflect.TypeFor[D](), true, op.id+"Answer")
	huma.Register(a.huma, a.described(op, code, map[string]*huma.MediaType{"application/json": {Schema: schema}}),
		func(_ context.Context, in *I) (*huma.StreamResponse, error) {
			return &huma.StreamResponse{Body: func(ctx huma.Context) {
				r, w := humago.Unwrap(ctx)
				a.run(w, r, op, code, call(in))
			}}, nil
		})
}

// described returns the OpenAPI description of an operation.
func (a *API) described(op operation, code int, content map[string]*huma.MediaType) huma.Operation {
	registry := a.huma.OpenAPI().Components.Schemas
	text := func(name, about string) *huma.Param {
		return &huma.Param{Name: name, In: "header", Description: about, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	header := func(about string) *huma.Param {
		return &huma.Header{Description: about, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	h := huma.Operation{
		OperationID: op.id, Method: op.method, Path: op.path, Summary: op.summary, Description: op.about, Tags: []string{op.tag}, DefaultStatus: code, MaxBodyBytes: maxBody,
		Responses: map[string]*huma.Response{
			strconv.Itoa(code): {Description: http.StatusText(code), Content: content, Headers: map[string]*huma.Param{}},
			"default": {Description: "What went wrong (RFC 9457)", Content: map[string]*huma.MediaType{
				"application/problem+json": {Schema: registry.Schema(reflect.TypeFor[Problem](), true, "Problem")},
			}},
		},
	}
	if op.method == http.MethodGet {
		if content["application/json"] != nil {
			h.Parameters = []*huma.Param{text("If-None-Match", "Answer 304 where the ETag is still this one")}
			h.Responses[strconv.Itoa(code)].Headers["ETag"] = header("Changes with the answer")
			h.Responses["304"] = &huma.Response{Description: http.StatusText(http.StatusNotModified)}
		}
		return h
	}
	h.Parameters = []*huma.Param{
		text("Idempotency-Key", "The answer to the first request with this key is given again for 24 hours, and nothing is done again"),
		text("If-Match", "Change only where the ETag of this resource, or of the nearest above it that can be read, is still this one"),
	}
	return h
}

// run responds with the output of a command.
func (a *API) run(w http.ResponseWriter, r *http.Request, op operation, code int, c call) {
	var out, errs bytes.Buffer
	var changed *Problem
	var check func() error
	if list := r.Header.Get("If-Match"); list != "" && r.Method != http.MethodGet {
		check = func() error {
			if changed = a.compare(r, list); changed != nil {
				return fault.New(fault.Refused, "", "%s", changed.Detail)
			}
			return nil
		}
	}
	exit := a.Run(r.Context(), identity(r.Context()), c.argv(), check, strings.NewReader(c.stdin), &out, &errs)
	if changed != nil {
		WriteProblem(w, *changed)
		return
	}
	if r.Context().Err() != nil && exit != 0 {
		WriteProblem(w, Problem{Status: http.StatusServiceUnavailable, Detail: "the server is stopping, or the client went away", Kind: fault.Busy.String(), Exit: fault.Busy.ExitCode()})
		return
	}
	if exit != 0 {
		if p, is := problemIn(out.Bytes()); is || out.Len() == 0 {
			a.fail(w, r, op, p, exit)
			return
		}
	}
	doc := out.Bytes()
	if c.text {
		var b bytes.Buffer
		if err := marshal(&b, Text{Version: status.Version, Text: strings.TrimSpace(out.String())}); err != nil {
			a.Log.Error().Err(err).Msg("answer")
		}
		doc = b.Bytes()
	}
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	if c.page != nil {
		if next := c.page(doc); next != "" {
			h.Set("Link", "<"+r.URL.Path+"?"+next+`>; rel="next"`) // RFC 8288
		}
	}
	if c.location != nil {
		h.Set("Location", Prefix+c.location(doc))
	}
	w.WriteHeader(code)
	_, _ = w.Write(doc)
}

// problemIn reads the document of a command that failed.
func problemIn(doc []byte) (p status.Problem, is bool) {
	err := json.NewDecoder(bytes.NewReader(doc)).Decode(&p)
	return p, err == nil && p.Error != "" && p.Kind != ""
}

func (a *API) fail(w http.ResponseWriter, r *http.Request, op operation, p status.Problem, exit int) {
	if p.Error == "" {
		p = status.Problem{Error: "internal server error; see the server's log", Kind: fault.Internal.String(), Exit: exit}
	}
	out := problemOf(r.Method, op.lookup, p)
	if out.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	if out.Status == http.StatusInternalServerError {
		a.Log.Error().Str("path", r.URL.Path).Int("exit", exit).Str("error", p.Error).Msg("request failed")
	}
	WriteProblem(w, out)
}

// next returns the query of the page after a full one.
func next(limit int, cursors func(doc []byte) []string) func([]byte) string {
	return func(doc []byte) string {
		all := cursors(doc)
		if len(all) < limit {
			return ""
		}
		return url.Values{"limit": {strconv.Itoa(limit)}, "cursor": {all[len(all)-1]}}.Encode()
	}
}
