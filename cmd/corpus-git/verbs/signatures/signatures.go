// Package signatures shows the signatures of a deployment to people.
package signatures

import (
	"strings"

	"corpus-git/internal/printable"
	"corpus-git/project/demands"
)

// Lines returns those that  deployments PROJECT DEPLOYMENT  prints: a line for each signature, and the text of a push certificate, indented.
func Lines(list []demands.Signature) (out []string) {
	for _, s := range list {
		line := "signed " + s.String()
		if s.Object != "" {
			line += ": " + s.Object
		}
		out = append(out, printable.Line(line))
		if s.Certificate == "" {
			continue
		}
		for l := range strings.SplitSeq(strings.TrimRight(s.Certificate, "\n"), "\n") {
			out = append(out, "  "+printable.Line(l))
		}
	}
	return out
}
