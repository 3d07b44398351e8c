// Package diagnose is the verb doctor.
//
// It owns its words and output, and asks before anything is changed. What is wrong, and how it is mended, is the package doctor's.
package diagnose

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/doctor"
	"corpus-git/cmd/corpus-git/verbs/nodes"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/project/status"
)

// Doctor is what the verb asks.
type Doctor struct {
	// Inspect checks the machine, the state, and the server's records of the projects.
	Inspect func(ctx context.Context) []doctor.Finding
	// Projects walks the trees of all projects; nil if no state is open. Then Relay asks the server that runs: its exit status, fault.Refused where none runs.
	Projects func(ctx context.Context) []doctor.Finding
	Relay    func(ctx context.Context, argv []string, stdout, stderr io.Writer) (int, error)
}

// Session is one run of the verb.
type Session struct {
	nodes.Session
	Doctor
	// Remote: the caller is not on the machine, or not known to be. Err is standard error.
	Remote bool
	Err    io.Writer
	// Show prints checks.
	Show func(checks []status.Check) error
}

type flags struct{ projects, fix, yes bool }

// Command returns the verb doctor. annotations are those of the command.
func Command(s Session, annotations map[string]string) *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use: "doctor", Short: "Check the server and its data for problems", Args: s.Exactly(), Annotations: annotations,
		Long: "Checks the machine, the state and the projects, and suggests fixes for problems. --projects also walks\n" +
			"the trees of all projects: accounts, links, owners and modes, and accounts of deleted projects.\n" +
			"--fix looks at all of that, asks, and fixes what it can: owners and modes, locks that a process left, links,\n" +
			"missing accounts, and accounts of deleted projects. Other problems are only reported.",
		Example: "  corpus-git doctor\n  corpus-git doctor --fix",
		RunE: func(*cobra.Command, []string) error {
			if s.Remote {
				if err := s.Admin("doctor", ""); err != nil {
					return err
				}
			}
			if s.Inspect == nil {
				return fault.New(fault.Internal, "doctor", "doctor is not available here")
			}
			if s.JSON() && f.fix {
				return fault.New(fault.Usage, "", "--fix is interactive and cannot be combined with --json")
			}
			return s.run(f)
		},
	}
	c.Flags().BoolVar(&f.projects, "projects", false, "also check accounts, links, owners and modes of all projects")
	c.Flags().BoolVar(&f.fix, "fix", false, "fix problems, after confirmation")
	c.Flags().BoolVar(&f.yes, "yes", false, "with --fix: do not ask for confirmation")
	return s.JSONFlag(c)
}

func (s Session) run(f flags) error {
	found := s.Inspect(s.Context)
	if f.projects || f.fix {
		more, err := s.ofProjects()
		if err != nil {
			return err
		}
		found = append(found, more...)
	}
	if s.JSON() {
		if err := s.Document(status.Doctor{Version: status.Version, Checks: doctor.Checks(found)}); err != nil {
			return err
		}
		return verdict(found)
	}
	if err := s.Show(doctor.Checks(found)); err != nil || !f.fix {
		if err == nil {
			err = verdict(found)
		}
		return err
	}
	return s.repair(found, f.yes)
}

// verdict is an error where a check failed.
func verdict(found []doctor.Finding) error {
	bad := 0
	for _, c := range found {
		if c.Status == "failed" {
			bad++
		}
	}
	if bad == 0 {
		return nil
	}
	return fault.New(fault.Failed, "", "%s", humanize.Plural(bad, "check failed", "checks failed"))
}

// ofServer reports whether a check is one that the server makes of its projects, and fixes.
func ofServer(name string) bool {
	return name == "accounts" || name == "links" || name == "permissions" || name == "orphan"
}

// ofProjects looks at the projects, here or by the server.
func (s Session) ofProjects() ([]doctor.Finding, error) {
	if s.Projects != nil {
		return s.Projects(s.Context), nil
	}
	var out, errs bytes.Buffer
	_, err := s.Relay(s.Context, []string{"doctor", "--projects", "--json"}, &out, &errs)
	if fault.KindOf(err) == fault.Refused && err != nil {
		return []doctor.Finding{{Check: status.Check{Name: "projects", Status: "skipped", Text: "accounts, links, owners and modes are checked by the server, which is not running", Hint: "start it:  systemctl start corpus-git , or  corpus-git serve"}}}, nil
	}
	if err != nil {
		return nil, err
	}
	var doc status.Doctor
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		return nil, fault.New(fault.Internal, "doctor", "cannot read the server's response: %s", strings.TrimSpace(errs.String()))
	}
	var found []doctor.Finding
	for _, c := range doc.Checks {
		if c.Name != "projects" && !ofServer(c.Name) {
			continue // seen here, too
		}
		f := doctor.Finding{Check: c}
		if ofServer(c.Name) && c.Status == "warning" && !strings.HasPrefix(c.Hint, "look at") {
			f.Fix, f.Once, f.Do = "by the server: "+c.Text, "relay", s.relayed
		}
		found = append(found, f)
	}
	return found, nil
}

// relayed has the server fix what it finds.
func (s Session) relayed(ctx context.Context) error {
	var out bytes.Buffer
	code, err := s.Relay(ctx, []string{"doctor", "--fix", "--yes"}, &out, s.Err)
	p := s.Printer()
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "fixed: ") || strings.HasPrefix(line, "not fixed: ") { // the rest has been shown
			p.Line("%s", strings.TrimSuffix(line, "\n"))
		}
	}
	if err == nil {
		err = p.Err()
	}
	if err == nil && code != 0 {
		err = fault.New(fault.Failed, "", "the server could not fix everything")
	}
	return err
}

// repair fixes what can be fixed, after asking unless yes is set.
func (s Session) repair(found []doctor.Finding, yes bool) error {
	p := s.Printer()
	var todo []doctor.Finding
	left := 0
	for _, f := range found {
		switch {
		case f.Do != nil:
			todo = append(todo, f)
		case f.Status == "failed" || f.Status == "warning":
			left++
		}
	}
	if left > 0 {
		p.Line("%s to fix by hand: see the hints above", humanize.Plural(left, "problem is", "problems are"))
	}
	if len(todo) == 0 {
		p.Line("nothing to fix")
		return errorOr(p.Err(), verdict(found))
	}
	p.Line("to fix:")
	for _, f := range todo {
		p.Line("  %s", f.Fix)
	}
	if !yes {
		p.Line("continue? [y/N]")
		answer, _ := bufio.NewReader(io.LimitReader(s.In, 100)).ReadString('\n')
		if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
			return errorOr(p.Err(), fault.New(fault.Refused, "doctor --fix", "nothing was changed").WithHint("answer y, or add --yes"))
		}
	}
	failed := 0
	done := map[string]bool{}
	for _, f := range todo {
		if done[f.Once] {
			continue
		}
		done[f.Once] = true
		err := f.Do(s.Context)
		if s.Projects != nil {
			err = s.Audited(audit.Entry{Action: "doctor fix", Object: f.Fix}, err)
		}
		if err != nil {
			failed++
			p.Line("not fixed: %s: %v", f.Fix, err)
		} else if f.Once != "relay" { // the server has said what it did
			p.Line("fixed: %s", f.Fix)
		}
	}
	if failed > 0 {
		return errorOr(p.Err(), fault.New(fault.Failed, "", "%s not fixed", humanize.Plural(failed, "problem was", "problems were")))
	}
	return errorOr(p.Err(), verdict(slices.DeleteFunc(found, func(f doctor.Finding) bool { return f.Do != nil })))
}

func errorOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
