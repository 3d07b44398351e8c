package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// openAPI is docs/openapi.json as an independent validator of JSON Schema, which OpenAPI 3.1 uses, reads it: the program internal/testutil/schemas.
type openAPI struct {
	questions *json.Encoder
	answers   *json.Decoder
	paths     map[string]any // path, method, operation
}

// readOpenAPI starts the validator, which it builds once in a scenario; end ends it.
func readOpenAPI(ts *testscript.TestScript) (o *openAPI, end func()) {
	const file = "../../docs/openapi.json"
	data, err := os.ReadFile(file)
	ts.Check(err)
	var doc struct {
		Paths map[string]any `json:"paths"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	ts.Check(d.Decode(&doc))
	program := filepath.Join(ts.Getenv("WORK"), "schemas")
	if _, err := os.Stat(program); err != nil {
		out, err := exec.CommandContext(context.Background(), "go", "build", "-o", program, "../../internal/testutil/schemas").CombinedOutput()
		if err != nil {
			ts.Fatalf("build the validator: %v\n%s", err, out)
		}
	}
	cmd := exec.CommandContext(context.Background(), program, file)
	cmd.Stderr = ts.Stderr()
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	return &openAPI{questions: json.NewEncoder(in), answers: json.NewDecoder(out), paths: doc.Paths}, func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
}

// operation is the one that a request is, with the place of its description in the document.
func (o *openAPI) operation(method, path string) (operation map[string]any, at []string) {
	for _, template := range slices.Sorted(maps.Keys(o.paths)) {
		pattern := regexp.MustCompile(`\\\{[^}]*\\\}`).ReplaceAllString(regexp.QuoteMeta(template), "[^/]+")
		if !regexp.MustCompile("^" + pattern + "$").MatchString(path) {
			continue
		}
		if op, ok := o.paths[template].(map[string]any)[strings.ToLower(method)].(map[string]any); ok {
			return op, []string{"paths", template, strings.ToLower(method)}
		}
	}
	return nil, nil
}

// check holds a JSON text against the schema at a place in the document.
func (o *openAPI) check(text []byte, at ...string) error {
	var pointer strings.Builder
	for _, name := range at {
		pointer.WriteString("/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name)))
	}
	if err := o.questions.Encode(map[string]string{"pointer": pointer.String(), "text": string(text)}); err != nil {
		return err
	}
	var wrong string
	if err := o.answers.Decode(&wrong); err != nil {
		return fmt.Errorf("the validator's answer: %w", err)
	}
	if wrong != "" {
		return errors.New(wrong)
	}
	return nil
}

// checkParameters holds what is in the path and the query of a request against the document: each parameter is described there, as what it is, and those that
// are required are given.
func (o *openAPI) checkParameters(ts *testscript.TestScript, op map[string]any, at []string, method, target string) {
	path, query, _ := strings.Cut(target, "?")
	values, err := url.ParseQuery(query)
	ts.Check(err)
	given := map[string]string{}
	for k := range values {
		given["query "+k] = values.Get(k)
	}
	parts := strings.Split(path, "/")
	for i, name := range strings.Split(at[1], "/") {
		if inner, ok := strings.CutPrefix(name, "{"); ok {
			text, err := url.PathUnescape(parts[i])
			ts.Check(err)
			given["path "+strings.TrimSuffix(inner, "}")] = text
		}
	}
	list, _ := op["parameters"].([]any)
	for i, p := range list {
		p := p.(map[string]any)
		key := fmt.Sprint(p["in"], " ", p["name"])
		text, ok := given[key]
		delete(given, key)
		if !ok {
			if p["required"] == true && p["in"] != "header" {
				ts.Fatalf("%s %s: the document requires the parameter %s", method, target, key)
			}
			continue
		}
		value, err := json.Marshal(text)
		ts.Check(err)
		if schema := p["schema"].(map[string]any); schema["type"] == "integer" || schema["type"] == "boolean" {
			value = []byte(text)
		}
		if err := o.check(value, append(slices.Clone(at), "parameters", strconv.Itoa(i), "schema")...); err != nil {
			ts.Fatalf("%s %s: the parameter %s is not as the document says: %v", method, target, key, err)
		}
	}
	if len(given) > 0 {
		ts.Fatalf("%s %s: the document does not have %v", method, target, slices.Sorted(maps.Keys(given)))
	}
}

// sampleQuery gives each parameter of a GET a value that its schema allows; texts, which name something, are left out.
func (o *openAPI) sampleQuery(template string) url.Values {
	out := url.Values{}
	list, _ := o.paths[template].(map[string]any)["get"].(map[string]any)["parameters"].([]any)
	for _, p := range list {
		p := p.(map[string]any)
		schema := p["schema"].(map[string]any)
		switch {
		case p["in"] != "query":
		case schema["enum"] != nil:
			out.Set(fmt.Sprint(p["name"]), fmt.Sprint(schema["enum"].([]any)[0]))
		case schema["type"] == "boolean":
			out.Set(fmt.Sprint(p["name"]), "true")
		case schema["maximum"] != nil:
			out.Set(fmt.Sprint(p["name"]), fmt.Sprint(schema["maximum"]))
		}
	}
	return out
}

// ask does one request and holds it and its answer against the document.
func (o *openAPI) ask(ts *testscript.TestScript, method, target, body string) (status int, answer []byte) {
	path, _, _ := strings.Cut(target, "?")
	op, at := o.operation(method, path)
	if op == nil {
		ts.Fatalf("the document has no operation %s %s", method, path)
	}
	o.checkParameters(ts, op, at, method, target)
	if body != "" {
		if err := o.check([]byte(body), append(slices.Clone(at), "requestBody", "content", "application/json", "schema")...); err != nil {
			ts.Fatalf("%s %s: the request is not as the document says: %v", method, path, err)
		}
	}
	var addr struct {
		HTTP string `json:"http"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(ts.Getenv("ROOT")+"/.corpus-git/addr.json")), &addr))
	r, err := http.NewRequest(method, "http://"+addr.HTTP+"/api/v1"+target, strings.NewReader(body))
	ts.Check(err)
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(ts.ReadFile(ts.Getenv("WORK")+"/token")))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(r)
	ts.Check(err)
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	ts.Check(err)
	key, kind := strconv.Itoa(res.StatusCode), "application/json"
	if _, ok := op["responses"].(map[string]any)[key]; !ok {
		key, kind = "default", "application/problem+json"
	}
	if got, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";"); got != kind {
		ts.Fatalf("%s %s: %d with content of type %q, not %q", method, path, res.StatusCode, got, kind)
	}
	if err := o.check(answer, append(slices.Clone(at), "responses", key, "content", kind, "schema")...); err != nil {
		ts.Fatalf("%s %s: the answer is not as the document says: %v\n%s", method, path, err, answer)
	}
	return res.StatusCode, answer
}

// cmdAPI does requests of the API as the owner of the token in $WORK/token, and holds requests and answers against the document:
//
//	api METHOD PATH [BODY]  one, whose status and answer it prints
//	api-reads NAME=VALUE…   each GET of the document, with these values in its path; @FILE is what a file holds
func cmdAPI(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: [!] api METHOD PATH [BODY]")
	}
	o, end := readOpenAPI(ts)
	defer end()
	status, answer := o.ask(ts, args[0], args[1], strings.Join(args[2:], ""))
	fmt.Fprintf(ts.Stdout(), "%d\n%s\n", status, answer)
	if failed := status >= http.StatusBadRequest; failed != neg {
		ts.Fatalf("%s %s: status %d: %s", args[0], args[1], status, answer)
	}
}

func cmdAPIReads(ts *testscript.TestScript, _ bool, args []string) {
	o, end := readOpenAPI(ts)
	defer end()
	replace := []string{}
	for _, kv := range args {
		k, v, _ := strings.Cut(kv, "=")
		if file, ok := strings.CutPrefix(v, "@"); ok {
			v = strings.TrimSpace(ts.ReadFile(file))
		}
		replace = append(replace, "{"+k+"}", v)
	}
	n := 0
	for _, template := range slices.Sorted(maps.Keys(o.paths)) {
		if o.paths[template].(map[string]any)["get"] == nil || strings.HasSuffix(template, "/events") || strings.HasSuffix(template, "/export") { // which are not one document
			continue
		}
		path := strings.NewReplacer(replace...).Replace(template)
		if strings.Contains(path, "{") {
			ts.Fatalf("%s: api-reads has no value for this path", path)
		}
		if status, answer := o.ask(ts, http.MethodGet, path, ""); status != http.StatusOK {
			ts.Fatalf("GET %s: status %d: %s", path, status, answer)
		}
		if query := o.sampleQuery(template); len(query) > 0 {
			if status, answer := o.ask(ts, http.MethodGet, path+"?"+query.Encode(), ""); status != http.StatusOK {
				ts.Fatalf("GET %s?%s: status %d: %s", path, query.Encode(), status, answer)
			}
		}
		n++
	}
	fmt.Fprintf(ts.Stdout(), "%d reads\n", n)
}
