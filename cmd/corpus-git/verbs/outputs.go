package verbs

import (
	"corpus-git/internal/printable"
	"corpus-git/project"
)

// outputs shows what the steps of a deployment wrote, and what their tests found.
func (s *session) outputs(p *printer, rec project.Record) {
	defer s.tests(p, rec)
	if rec.Result == nil || len(rec.Result.Outputs) == 0 {
		return
	}
	p.line("")
	t := table{heads: []string{"STEP", "OUTPUT", "VALUE"}, flexible: []int{2}}
	for _, o := range rec.Result.Outputs {
		t.add(plain(o.Step), plain(o.Name), plain(printable.Line(o.Text())))
	}
	t.print(p, s.who.Term)
}

func (s *session) tests(p *printer, rec project.Record) {
	if rec.Result == nil || len(rec.Result.Tests) == 0 {
		return
	}
	p.line("")
	p.line("tests:")
	for _, t := range rec.Result.Tests {
		for _, line := range t.Lines() {
			p.line("  %s", line)
		}
	}
}
