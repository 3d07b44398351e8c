// Command schemas holds JSON texts against the schemas in a document, with a validator that is not ours. It is a program of its own, because the
// validator prepares its metaschemas for some milliseconds whenever a program begins that has it: the program of the scenarios begins thousands of times.
//
// Its argument is the document's file. Each line of its input is a question; each line of its output is the answer, a JSON text: what is wrong, or nothing.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

type question struct {
	Pointer string `json:"pointer"` // where the schema is in the document
	Text    string `json:"text"`
}

func main() {
	if err := answer(os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "schemas:", err)
		os.Exit(1)
	}
}

func answer(file string, in io.Reader, out io.Writer) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource("document.json", doc); err != nil {
		return err
	}
	d, e := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var q question
		if err := d.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		wrong := ""
		if err := check(compiler, q); err != nil {
			wrong = err.Error()
		}
		if err := e.Encode(wrong); err != nil {
			return err
		}
	}
}

func check(compiler *jsonschema.Compiler, q question) error {
	schema, err := compiler.Compile("document.json#" + q.Pointer)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(q.Text)))
	if err != nil {
		return fmt.Errorf("%w: %s", err, q.Text)
	}
	return schema.Validate(v)
}
