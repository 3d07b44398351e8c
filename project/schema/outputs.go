package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"corpus-git/internal/fault"
	"corpus-git/internal/nearest"
	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
)

// OutputsFile is the file in which a recipe declares the outputs of its steps.
const OutputsFile = "outputs.yaml"

// ErrorOutput is the output that makes its step fail if it is not empty, whether declared or not.
const ErrorOutput = "error_output"

// MaxOutputs is the number of bytes that one step may write, maxOutputNames the number of values.
const (
	MaxOutputs     = 64 << 10
	maxOutputNames = 200
)

// Outputs are the outputs of the steps of a recipe, by the step's name. A step that is not declared may write anything. A nil *Outputs declares nothing.
type Outputs struct {
	// File is the name of the file in messages.
	File  string
	steps map[string][]*Field
}

// ParseOutputs reads .salt/outputs.yaml; file is its name in messages, and steps are the names of the recipe's steps. Errors are fault.Failed with the
// position.
func ParseOutputs(file string, src []byte, steps []string) (*Outputs, error) {
	r, root, err := open(file, src)
	if err != nil {
		return nil, err
	}
	r.output = true
	out := &Outputs{File: file, steps: map[string][]*Field{}}
	if root == nil {
		return out, nil
	}
	for i, k := range root.Keys {
		step := py.Str(k.Value)
		if !contains(steps, step) {
			return nil, r.unknownStep(k, step, steps)
		}
		n := root.Items[i]
		if n.Kind != saltyaml.Mapping || len(n.Keys) > maxFields {
			return nil, r.bad(n, "the outputs of %s must be a mapping of names", step).WithHint("as in  %s: {version: {type: string}}", step)
		}
		out.steps[step] = []*Field{}
		for j, name := range n.Keys {
			f, err := r.field(name, n.Items[j])
			if err != nil {
				return nil, err
			}
			if strings.Contains(f.Name, ".") {
				return nil, r.bad(name, "the name of an output has no dots")
			}
			out.steps[step] = append(out.steps[step], f)
		}
	}
	return out, nil
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

func (r *reader) unknownStep(at *saltyaml.Node, step string, steps []string) error {
	e := r.bad(at, "no step %s", step)
	if n := nearest.To(step, steps); n != "" {
		return e.WithHint("did you mean  %s?", n).WithFix(step, n)
	}
	return e.WithHint("the name of a step is its file name without the extension")
}

// Output is a value that a step wrote.
type Output struct {
	Name  string
	Value any
	// Text reports that it was written as key=value: a declared type decides what it means.
	Text bool
	// Secret values are never shown or recorded.
	Secret bool
}

// ReadOutputs reads what a step wrote: JSON objects, and lines key=value; blank lines and lines that begin with # are ignored. If a name is written twice,
// the last value counts. Errors are fault.Failed, with the line, and never show a value.
func ReadOutputs(src []byte) ([]Output, error) {
	bad := func(at int, format string, args ...any) error {
		line := 1 + bytes.Count(src[:at], []byte("\n"))
		return fault.New(fault.Failed, "", "$CORPUS_OUTPUTS, line %d: %s", line, fmt.Sprintf(format, args...)).
			WithHint("write JSON, or lines  key=value")
	}
	if len(src) > MaxOutputs {
		return nil, fault.New(fault.Failed, "", "the step wrote more than %d KiB of outputs", MaxOutputs>>10).WithHint("write a file below data/, and output its path")
	}
	if !utf8.Valid(src) {
		return nil, bad(0, "it is not valid UTF-8")
	}
	var out []Output
	set := func(at int, o Output) error {
		if !validName(o.Name) || strings.Contains(o.Name, ".") {
			return bad(at, "a name has letters, digits, _ and -")
		}
		for i := range out {
			if out[i].Name == o.Name {
				out[i] = o
				return nil
			}
		}
		if out = append(out, o); len(out) > maxOutputNames {
			return bad(at, "more than %d outputs", maxOutputNames)
		}
		return nil
	}
	for at := 0; at < len(src); {
		rest := src[at:]
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		switch text := strings.TrimSpace(string(line)); {
		case text == "" || text[0] == '#':
		case text[0] == '{':
			dec := json.NewDecoder(bytes.NewReader(rest))
			var raw json.RawMessage
			if err := dec.Decode(&raw); err != nil {
				return nil, bad(at, "it is not a JSON object")
			}
			v, err := py.LoadJSON(string(raw), true)
			d, ok := v.(*py.Dict)
			if err != nil || !ok {
				return nil, bad(at, "it is not a JSON object")
			}
			for _, item := range d.Items() {
				if err := set(at, Output{Name: py.Str(item.Key), Value: item.Value}); err != nil {
					return nil, err
				}
			}
			at += int(dec.InputOffset())
			continue
		default:
			name, value, ok := strings.Cut(strings.TrimRight(string(line), "\r"), "=")
			if !ok {
				return nil, bad(at, "it is neither JSON nor key=value")
			}
			if err := set(at, Output{Name: strings.TrimSpace(name), Value: value, Text: true}); err != nil {
				return nil, err
			}
		}
		at += len(line) + 1
	}
	return out, nil
}

// Hold checks what a step wrote against what is declared, converts strings to their declared type, and adds defaults. An error is fault.Failed. The outputs
// that it returns are valid, and secrets among them are marked.
func (o *Outputs) Hold(step string, wrote []Output) (out []Output, err error) {
	if o == nil || o.steps[step] == nil {
		return wrote, nil
	}
	fields := o.steps[step]
	var names []string
	byName := map[string]*Field{}
	for _, f := range fields {
		names = append(names, f.Name)
		byName[f.Name] = f
	}
	had := map[string]bool{}
	keep := func(e error) {
		if err == nil {
			err = e
		}
	}
	for _, w := range wrote {
		f := byName[w.Name]
		switch {
		case f == nil && w.Name == ErrorOutput:
			out = append(out, w)
			continue
		case f == nil:
			e := fault.New(fault.Failed, "", "the output %s of %s is not declared in %s", w.Name, step, o.File)
			if n := nearest.To(w.Name, names); n != "" {
				e = e.WithHint("did you mean  %s?", n)
			}
			keep(e)
			continue
		}
		w.Secret = f.Secret
		if w.Text {
			w.Value, w.Text = f.Type.fromText(w.Value.(string)), false
		}
		if why := f.Check(w.Value); why != "" {
			keep(fault.New(fault.Failed, "", "the output %s of %s %s", w.Name, step, why).
				WithHint("it is declared in %s", fault.Pos{File: o.File, Line: f.Line}))
			continue
		}
		had[w.Name] = true
		out = append(out, w)
	}
	for _, f := range fields {
		if f.HasDefault && !had[f.Name] {
			out = append(out, Output{Name: f.Name, Value: py.DeepCopy(f.Default), Secret: f.Secret})
		}
	}
	return out, err
}

// Failure returns the text of an output that makes its step fail, "" if there is none.
func (o *Outputs) Failure(step string, wrote []Output) string {
	for _, w := range wrote {
		fails := w.Name == ErrorOutput
		if o != nil {
			for _, f := range o.steps[step] {
				fails = fails || f.Error && f.Name == w.Name
			}
		}
		if fails && py.Truth(w.Value) {
			return strings.TrimSpace(py.Str(w.Value))
		}
	}
	return ""
}

// fromText returns a string as a value of a type; if it is not one, it stays a string.
func (t Type) fromText(text string) any {
	if t == String {
		return text
	}
	doc, err := saltyaml.Parse("", []byte(text), saltyaml.Options{Private: true, MaxBytes: MaxOutputs, MaxDepth: 50})
	if err != nil || doc.Value == nil {
		return text
	}
	if t == List {
		if s, ok := doc.Value.(string); ok {
			l := py.NewList()
			for item := range strings.SplitSeq(s, ",") {
				if item = strings.TrimSpace(item); item != "" {
					l.Append(item)
				}
			}
			return l
		}
	}
	return doc.Value
}

// ReadLimited reads what a step wrote, and not much more than the limit.
func ReadLimited(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, MaxOutputs+1)) }
