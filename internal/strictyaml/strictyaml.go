// Package strictyaml decodes YAML files that people write into Go values, and refuses keys that these don't have.
package strictyaml

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// mismatch is how the YAML library says that a value is of another kind than its place.
var mismatch = regexp.MustCompile("cannot unmarshal !!([a-z]+)(?: `(.*)`)? into (.*)")

// kinds are the kinds of values by their tags, for people.
var kinds = map[string]string{"str": "a text", "int": "a number", "float": "a number", "bool": "true or false", "seq": "a list", "map": "a mapping", "null": "nothing", "timestamp": "a date"}

// expected says what a value of a Go type is written as.
func expected(goType string) string {
	switch {
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case goType == "string":
		return "a text"
	case goType == "bool":
		return "true or false"
	case strings.HasPrefix(goType, "int"), strings.HasPrefix(goType, "uint"), strings.HasPrefix(goType, "float"):
		return "a number"
	}
	return "a mapping"
}

// plainly rewords what the YAML library says about one line.
func plainly(line string) string {
	line = unknownField.ReplaceAllString(strings.TrimSpace(line), "unknown key $1")
	m := mismatch.FindStringSubmatchIndex(line)
	if m == nil {
		return line
	}
	part := func(i int) string { return line[m[2*i]:m[2*i+1]] }
	is := kinds[part(1)]
	if is == "" {
		is = part(1)
	}
	if m[4] >= 0 {
		is = "`" + part(2) + "` is " + is
	}
	return line[:m[0]] + is + ", where " + expected(part(3)) + " is expected"
}

// Lines finds lines in the first document of a file. The zero value finds none.
type Lines struct{ top *yaml.Node }

// Parse returns the Lines of a file; a text that is no YAML has none.
func Parse(text []byte) Lines {
	var doc yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&doc); err != nil || len(doc.Content) == 0 {
		return Lines{}
	}
	return Lines{doc.Content[0]}
}

// Of returns the line of a value: each element of path is a key of a mapping, whose line counts, or the index of an item of a list. If the path ends early, the line is that of its last part that
// exists; 0 if there is none.
func (l Lines) Of(path ...any) (line int) {
	at := l.top
	if at == nil {
		return 0
	}
	for _, x := range path {
		if at.Kind == yaml.AliasNode {
			at = at.Alias
		}
		var next *yaml.Node
		switch x := x.(type) {
		case string:
			for i := 0; at.Kind == yaml.MappingNode && i+1 < len(at.Content); i += 2 {
				if at.Content[i].Value == x {
					line, next = at.Content[i].Line, at.Content[i+1]
				}
			}
		case int:
			if at.Kind == yaml.SequenceNode && x < len(at.Content) {
				next = at.Content[x]
				line = next.Line
			}
		}
		if next == nil {
			return line
		}
		at = next
	}
	return line
}

// unknownField is how the YAML library names a key that the type of a file does not have.
var unknownField = regexp.MustCompile(`field (\S+) not found in type .*`)

// Decode decodes the first document of a file into a pointer; an empty file changes nothing. The error has one line, with the lines of the
// file: "line 3: unknown key stagse".
func Decode(text []byte, into any) error {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	err := dec.Decode(into)
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	lines := strings.Split(strings.TrimPrefix(strings.TrimPrefix(err.Error(), "yaml: "), "unmarshal errors:\n"), "\n")
	for i, line := range lines {
		lines[i] = plainly(line)
	}
	return errors.New(strings.Join(lines, "; "))
}
