package verbs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"corpus-git/cmd/corpus-git/verbs/approve"
	"corpus-git/cmd/corpus-git/verbs/diagnose"
	"corpus-git/cmd/corpus-git/verbs/enter"
	"corpus-git/cmd/corpus-git/verbs/hostkeys"
	"corpus-git/cmd/corpus-git/verbs/hubs"
	"corpus-git/cmd/corpus-git/verbs/jobs"
	"corpus-git/cmd/corpus-git/verbs/keys"
	"corpus-git/cmd/corpus-git/verbs/nodes"
	"corpus-git/cmd/corpus-git/verbs/promote"
	"corpus-git/cmd/corpus-git/verbs/recipes"
	"corpus-git/cmd/corpus-git/verbs/statistics"
	"corpus-git/cmd/corpus-git/verbs/waits"
	"corpus-git/cmd/corpus-git/verbs/weblogin"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/nearest"
	"corpus-git/project"
)

// Annotations of commands, for who runs them on the machine.
const (
	// ReadsStdin marks a command that reads standard input.
	ReadsStdin = "stdin"
	// Interactive marks a command that takes over the caller's terminal, if there is one.
	Interactive = "interactive"
	// WritesFile marks a command whose argument is a file that it writes to standard output; who runs it on the machine opens the file itself.
	WritesFile = "writes"
	// Stateless marks a command that works without a state directory.
	Stateless = "stateless"
	// Creates marks a command that may be the first one on a machine.
	Creates = "creates"
)

// LocalOnly names the commands that exist on the machine only.
func LocalOnly() []string {
	return []string{"serve", "demo", "docs", "completion", "restore", "lint", "init", "skeletons", "agent", "remote", "mirror", "container", "dns"}
}

// Tree builds the commands. s may be nil if they are only described or taken apart, never run.
func Tree(s *session) *cobra.Command {
	if s == nil {
		s = &session{b: &Backend{}}
	}
	root := &cobra.Command{
		Use:   "corpus-git",
		Short: "Deploy by git push",
		Long: "corpus-git is a git server to which a push is a deployment: archive, sync, release-sync,\n" +
			"fixperms, the steps of .salt in order. If one of them fails, everything is rolled back.",
		SilenceErrors: true, SilenceUsage: true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(c, args[0], s.who.Remote)
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		// pflag repeats what the parser says, which names itself.
		if text, rest, ok := strings.Cut(err.Error(), ": strconv."); ok {
			why := "not a valid value"
			if strings.HasSuffix(rest, "value out of range") {
				why = "out of range"
			}
			err = fmt.Errorf("%s: %s", text, why)
		}
		hint := "see  " + c.CommandPath() + " --help"
		if word, ok := strings.CutPrefix(err.Error(), "unknown flag: --"); ok {
			if meant := suggestFlag(c, word); meant != "" {
				hint = "did you mean  --" + meant + " ?  " + hint
			}
		}
		return fault.New(fault.Usage, "", "%w", err).WithHint("%s", hint)
	})
	root.AddCommand(
		projectCommand(s), userCommand(s), keyCommand(s), tokenCommand(s), accessCommand(s), ldapCommand(s),
		deployCommand(s), planCommand(s), promote.Command(s.promote()), rollbackCommand(s), taskCommand(s), checkCommand(s), convergeCommand(s), cancelCommand(s), undeployCommand(s), approve.Command(s.approve()), approve.RejectCommand(s.approve()), approve.ListCommand(s.approve()),
		psCommand(s), actCommand(s, project.StartUnit), actCommand(s, project.StopUnit), actCommand(s, project.RestartUnit), runCommand(s), enter.Command(s.enter(), map[string]string{ReadsStdin: "yes", Interactive: "yes"}),
		deploymentsCommand(s), configsCommand(s), logsCommand(s), archivesCommand(s),
		cfgCommand(s), reportCommand(s), auditCommand(s), gcCommand(s), backupCommand(s), bundleCommand(s), nodes.NodeCommand(s.nodes()), nodes.RolloutCommand(s.nodes()), hubs.Command(s.hubs(), map[string]string{ReadsStdin: "yes"}), jobs.Command(s.jobs(), map[string]string{ReadsStdin: "yes"}), recipes.Command(recipes.Session{Session: s.nodes(), Recipes: s.b.Recipes}), keys.Command(keys.Session{Session: s.nodes(), KV: s.b.KV}), waits.SignalCommand(s.waits()), waits.WaitsCommand(s.waits()), notifyCommand(s), statistics.Command(statistics.Session{Session: s.nodes(), Deployments: s.deployments}), weblogin.Command(weblogin.Session{Session: s.nodes(), Link: s.b.WebLogin}), diagnose.Command(s.doctor(), map[string]string{Stateless: "yes", ReadsStdin: "yes"}), hostkeys.Command(s.hostKeys()), versionCommand(s),
	)
	return root
}

// Describe builds the commands for who takes argv apart and prints help; their RunE must be replaced.
func Describe() *cobra.Command { return Tree(nil) }

// unknownCommand is the error of a word that is not a command, and names the nearest that is one.
func unknownCommand(c *cobra.Command, word string, remote bool) error {
	if remote && slices.Contains([]string{"lint", "init", "skeletons"}, word) {
		return fault.New(fault.Refused, "", "%s works on local files, not over ssh", word).WithHint("install corpus-git on your own machine and run  %s %s  there", c.Name(), word)
	}
	for _, w := range LocalOnly() {
		if w == word && remote {
			return fault.New(fault.Refused, "", "%s works on the machine itself, not over ssh", word).
				WithHint("log in to the machine and run  corpus-git %s", word)
		}
	}
	hint := "see  corpus-git help"
	if meant := suggestCommand(c, word); meant != "" {
		hint = "did you mean  " + meant + " ?"
	}
	return fault.New(fault.Usage, "", "unknown command %q", word).WithHint("%s", hint)
}

// suggestFlag returns the flag of c that word nearly is, "" if there is none.
func suggestFlag(c *cobra.Command, word string) string {
	var names []string
	for _, flags := range []*pflag.FlagSet{c.Flags(), c.InheritedFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
	}
	return nearest.To(word, names)
}

// suggestCommand returns the command below c that word nearly is, "" if there is none.
func suggestCommand(c *cobra.Command, word string) string {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	if meant := nearest.To(word, names); meant != "" {
		return c.CommandPath() + " " + meant
	}
	return ""
}

// exactly wants the named arguments; one in brackets may be left away.
func exactly(names ...string) cobra.PositionalArgs {
	least := 0
	for _, n := range names {
		if !strings.HasPrefix(n, "[") {
			least++
		}
	}
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return fault.New(fault.Usage, "", "%s is missing", names[len(args)]).WithHint("usage:  %s", c.UseLine())
		case len(args) > len(names):
			return fault.New(fault.Usage, "", "unexpected argument %q", args[len(names)]).WithHint("usage:  %s", c.UseLine())
		}
		return nil
	}
}

// andSettings wants the named arguments, and takes key=value after them.
func andSettings(names ...string) cobra.PositionalArgs {
	named := exactly(names...)
	return func(c *cobra.Command, args []string) error {
		return named(c, args[:min(len(args), len(names))])
	}
}

// group returns a command that only holds others.
func group(s *session, use, short string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			hint := "see  " + c.CommandPath() + " --help"
			if meant := suggestCommand(c, args[0]); meant != "" {
				hint = "did you mean  " + meant + " ?"
			}
			return fault.New(fault.Usage, "", "unknown command %q", c.Name()+" "+args[0]).WithHint("%s", hint)
		},
		RunE: func(c *cobra.Command, _ []string) error {
			var names []string
			for _, sub := range c.Commands() {
				names = append(names, sub.Name())
			}
			return fault.New(fault.Usage, "", "missing subcommand of %s: one of %s", c.Name(), strings.Join(names, ", ")).WithHint("see  %s --help", c.CommandPath())
		},
		Annotations: map[string]string{Stateless: "yes"},
	}
	c.AddCommand(subs...)
	return c
}

func (s *session) jsonFlag(c *cobra.Command) *cobra.Command {
	c.Flags().BoolVar(&s.json, "json", false, "print a JSON document (its schema: docs/json.md)")
	return c
}

// listFlags returns those of commands that show times.
func (s *session) listFlags(c *cobra.Command) *cobra.Command {
	c.Flags().BoolVar(&s.exact, "time", false, "show times in UTC (RFC 3339) instead of ages")
	return s.jsonFlag(c)
}

// when returns a time as people read it: how long ago it was, or with --time the time itself.
func (s *session) when(t time.Time) string {
	if s.exact && !t.IsZero() {
		return t.UTC().Format(time.RFC3339)
	}
	return humanize.Age(s.b.Now(), t)
}

// arg returns the i-th argument or "".
func arg(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

func usage(format string, args ...any) *fault.Error {
	return fault.New(fault.Usage, "", format, args...)
}

// ambiguous lists what a prefix could mean.
func ambiguous(prefix string, of []string) error {
	if len(of) > 8 {
		of = append(of[:8:8], "…")
	}
	return usage("%s is ambiguous: %s", prefix, strings.Join(of, ", ")).WithHint("give more of the name")
}

var errNoBackend = errors.New("this command has no backend")

// need guards a verb whose room was not wired.
func need(part any, what string) error {
	if part == nil {
		return fault.New(fault.Internal, what, "%w", errNoBackend)
	}
	return nil
}

func join(words ...any) string {
	var out []string
	for _, w := range words {
		if s := fmt.Sprint(w); s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, " ")
}
