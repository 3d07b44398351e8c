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
		lines[i] = unknownField.ReplaceAllString(strings.TrimSpace(line), "unknown key $1")
	}
	return errors.New(strings.Join(lines, "; "))
}
