// Package generate generates the Go client of the API from its OpenAPI document. It does no I/O; a test compares the committed client with its output.
package generate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/format"
	"maps"
	"slices"
	"strings"
)

type schema struct {
	Ref        string             `json:"$ref"`
	Type       any                `json:"type"`
	Format     string             `json:"format"`
	Properties map[string]*schema `json:"properties"`
	Items      *schema            `json:"items"`
	// Additional is a schema, or whether there may be more.
	Additional json.RawMessage `json:"additionalProperties"`
	Required   []string        `json:"required"`
	Text       string          `json:"description"`
}

type content map[string]struct {
	Schema *schema `json:"schema"`
}

type operation struct {
	ID         string `json:"operationId"`
	Summary    string `json:"summary"`
	Parameters []struct {
		Name, In string
	} `json:"parameters"`
	Body *struct {
		Content content `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Content content `json:"content"`
	} `json:"responses"`
}

// Client returns the source of the client's types and methods.
func Client(document []byte) ([]byte, error) {
	var doc struct {
		Paths      map[string]map[string]operation
		Components struct{ Schemas map[string]*schema }
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("// Code generated from the OpenAPI document by web/api/generate. DO NOT EDIT.\n\npackage client\n\nimport (\n\t\"context\"\n\t\"net/url\"\n\t\"time\"\n)\n\n")
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		structOf(&b, name, doc.Components.Schemas[name])
	}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			if err := methodOf(&b, strings.ToUpper(method), path, doc.Paths[path][method]); err != nil {
				return nil, err
			}
		}
	}
	return format.Source(b.Bytes())
}

func structOf(b *bytes.Buffer, name string, s *schema) {
	fmt.Fprintf(b, "// %s is a schema of the document.\ntype %s struct {\n", name, name)
	for _, p := range slices.Sorted(maps.Keys(s.Properties)) {
		t, tag := typeOf(s.Properties[p]), p
		if !slices.Contains(s.Required, p) {
			tag += ",omitzero"
			scalar := !strings.HasPrefix(t, "[]") && !strings.HasPrefix(t, "map[") && t != "any"
			if strings.HasSuffix(name, "Body") && scalar || s.Properties[p].Ref != "" {
				t = "*" + t
			}
		}
		if text := s.Properties[p].Text; text != "" {
			fmt.Fprintf(b, "\t// %s: %s\n", exported(p), text)
		}
		fmt.Fprintf(b, "\t%s %s `json:%q`\n", exported(p), t, tag)
	}
	b.WriteString("}\n\n")
}

// typeOf returns the Go type of a schema.
func typeOf(s *schema) string {
	if s.Ref != "" {
		return s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
	}
	kind, _ := s.Type.(string)
	if list, ok := s.Type.([]any); ok && len(list) > 0 { // such as array or null
		kind, _ = list[0].(string)
	}
	switch kind {
	case "string":
		if s.Format == "date-time" {
			return "time.Time"
		}
		return "string"
	case "integer":
		return "int64"
	case "number":
		return "float64"
	case "boolean":
		return "bool"
	case "array":
		return "[]" + typeOf(s.Items)
	case "object":
		var of schema
		if json.Unmarshal(s.Additional, &of) == nil {
			return "map[string]" + typeOf(&of)
		}
	}
	return "any"
}

func methodOf(b *bytes.Buffer, method, path string, op operation) error {
	answer := ""
	for code, r := range op.Responses {
		if c, ok := r.Content["application/json"]; ok && code != "default" {
			answer = typeOf(c.Schema)
		}
	}
	if answer == "" {
		return nil // its answer goes on: see Follow
	}
	args, expr, body := "ctx context.Context", fmt.Sprintf("%q", path), "nil"
	for _, p := range op.Parameters {
		if p.In != "path" {
			continue
		}
		args += ", " + p.Name + " string"
		expr = strings.ReplaceAll(expr, "{"+p.Name+"}", `" + url.PathEscape(`+p.Name+`) + "`)
	}
	if op.Body != nil {
		c, ok := op.Body.Content["application/json"]
		if !ok {
			return fmt.Errorf("%s: the body is not JSON", op.ID)
		}
		args += ", body *" + typeOf(c.Schema)
		body = "body"
	}
	expr = strings.TrimSuffix(expr, ` + ""`)
	name := exported(op.ID)
	fmt.Fprintf(b, "// %s: %s (%s %s).\nfunc (c *Client) %s(%s, options ...Option) (out %s, err error) {\n\terr = c.do(ctx, %q, %s, %s, &out, options)\n\treturn out, err\n}\n\n",
		name, op.Summary, method, path, name, args, answer, method, expr, body)
	return nil
}

// exported converts a JSON name to an exported Go name.
func exported(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(strings.ReplaceAll(name, "-", "_"), "_") {
		switch word {
		case "id", "ssh", "http", "pid":
			word = strings.ToUpper(word)
		}
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
