package pkgrepo

import (
	"regexp"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// aptParagraph is an entry in the deb822 style: fields with values, comments above and below them.
// Source: sources.list(5), "DEB822-STYLE FORMAT".
type aptParagraph struct {
	file           string
	fields         []aptField
	header, footer []string
}

type aptField struct{ name, value string }

var fieldLine = regexp.MustCompile(`^(\S+):\s*(\S.*|)`)

func newAptParagraph(text, file string) *aptParagraph {
	p := &aptParagraph{file: file}
	seen := false
	for _, l := range core.SplitLines(text) {
		if strings.HasPrefix(l, "#") {
			if seen {
				p.footer = append(p.footer, l)
			} else {
				p.header = append(p.header, l)
			}
			continue
		}
		seen = true
		if m := fieldLine.FindStringSubmatch(l); m != nil {
			p.fields = append(p.fields, aptField{m[1], m[2]})
		} else if n := len(p.fields); n > 0 {
			p.fields[n-1].value += "\n" + l
		}
	}
	for i := range p.fields {
		p.fields[i].value = strings.TrimSpace(p.fields[i].value)
	}
	return p
}

func (p *aptParagraph) at(name string) int {
	return slices.IndexFunc(p.fields, func(f aptField) bool { return strings.EqualFold(f.name, name) })
}

func (p *aptParagraph) field(name string) string {
	if i := p.at(name); i >= 0 {
		return p.fields[i].value
	}
	return ""
}

func (p *aptParagraph) setField(name, value string) {
	if i := p.at(name); i >= 0 {
		p.fields[i].value = value
		return
	}
	p.fields = append(p.fields, aptField{name, value})
}

func (p *aptParagraph) drop(name string) {
	p.fields = slices.DeleteFunc(p.fields, func(f aptField) bool { return strings.EqualFold(f.name, name) })
}

func (p *aptParagraph) path() string     { return p.file }
func (p *aptParagraph) valid() bool      { return len(p.fields) > 0 && p.kind() != "" }
func (p *aptParagraph) kind() string     { return p.field("Types") }
func (p *aptParagraph) types() []string  { return strings.Fields(p.kind()) }
func (p *aptParagraph) uris() []string   { return strings.Fields(p.field("URIs")) }
func (p *aptParagraph) suites() []string { return strings.Fields(p.field("Suites")) }
func (p *aptParagraph) comps() []string  { return strings.Fields(p.field("Components")) }
func (p *aptParagraph) archs() []string  { return strings.Fields(p.field("Architectures")) }

func (p *aptParagraph) disabled() bool {
	i := p.at("Enabled")
	return i >= 0 && !isTrueWord(p.fields[i].value)
}

func (p *aptParagraph) signedBy() any {
	if i := p.at("Signed-By"); i >= 0 {
		return p.fields[i].value
	}
	return nil
}

func (p *aptParagraph) set(key string, v any) {
	fields := map[string]string{"architectures": "Architectures", "comps": "Components", "types": "Types", "uris": "URIs", "suites": "Suites"}
	switch key {
	case "architectures", "comps", "types", "uris", "suites":
		p.setField(fields[key], strings.Join(core.Texts(v), " "))
	case "uri":
		p.setField("URIs", py.Str(v))
	case "dist":
		p.setField("Suites", py.Str(v))
	case "signedby":
		p.setField("Signed-By", py.Str(v))
	case "file":
		p.file = py.Str(v)
	case "disabled":
		if p.drop("Enabled"); py.Truth(v) {
			p.setField("Enabled", "no")
		}
	case "trusted":
		if on := trust(v); on == nil {
			p.drop("Trusted")
		} else {
			p.setField("Trusted", map[bool]string{true: "yes", false: "no"}[*on])
		}
	case "comments":
		p.header = core.SplitLines(py.Str(v))
		if slices.ContainsFunc(p.header, func(l string) bool { return !strings.HasPrefix(l, "#") }) {
			for i := range p.header {
				p.header[i] = "#" + p.header[i]
			}
		}
	}
}

func (p *aptParagraph) text() string {
	lines := append([]string{}, p.header...)
	for _, f := range p.fields {
		if f.value != "" {
			lines = append(lines, f.name+": "+f.value)
		}
	}
	return strings.TrimSpace(strings.Join(append(lines, p.footer...), "\n"))
}
