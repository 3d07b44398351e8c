// Package promote is the verb about bringing live in one project, or environment, what is live in another.
//
// It owns its words and flags. What is copied is decided by package bundle/local, what may be deployed over what by package pipeline.
package promote

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/bundle/local"
	"corpus-git/cmd/corpus-git/verbs/nodes"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/project"
)

// Promotions are those of this machine's projects.
type Promotions interface {
	// Promote copies what is live in a project to another one, and returns the deployment of it there.
	Promote(ctx context.Context, q local.Promotion) (project.Deployment, error)
}

// Session is one run of the verb.
type Session struct {
	nodes.Session
	Promotions Promotions
	// Prepare runs before something changes.
	Prepare func() error
	// AboutSettings is what help says of KEY=VALUE.
	AboutSettings string
}

// Command returns the verb promote.
func Command(s Session) *cobra.Command {
	var q local.Promotion
	var verbose, plan bool
	var how project.Deployment
	c := &cobra.Command{
		Use: "promote FROM [TO] [KEY=VALUE...]", Short: "Bring what is live in a project live in another one, or in another environment",
		Long: "Deploys in the project TO the commit that is live in FROM, with the recipes that it extends there, and with the pillar of TO.\n" +
			"--pillar takes the commit of the pillar, too. What is live in TO must be part of it, or --force given.\n" +
			"With --env and without TO, the two commits that are live are deployed again in that environment, which the project then has." + s.AboutSettings,
		Example: "  corpus-git promote shop-staging shop --plan\n  corpus-git promote shop-staging shop\n  corpus-git promote shop --env prod",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fault.New(fault.Usage, "", "FROM is missing").WithHint("usage:  %s", c.UseLine())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			to, settings := args[0], args[1:]
			if len(settings) > 0 && !strings.Contains(settings[0], "=") {
				to, settings = settings[0], settings[1:]
			}
			var err error
			if how.Set, err = project.ParseSettings(settings, &how.Select); err != nil {
				return err
			}
			if err := checkEnvironment(args[0], to, q.Environment, &how); err != nil {
				return err
			}
			if err := s.allowed(&q, args[0], to); err != nil {
				return err
			}
			return s.promote(q, how, plan, verbose)
		},
	}
	c.Flags().StringVar(&q.Environment, "env", "", "the `ENVIRONMENT` that the project has from then on")
	c.Flags().BoolVar(&q.WithPillar, "pillar", false, "the commit of the pillar, too")
	c.Flags().BoolVar(&how.Forced, "force", false, "even where what is live is not part of what comes; in dev: overwrite files that were changed by hand")
	c.Flags().BoolVar(&how.AllowMissing, "allow-missing", false, "skip nodes that are not ready")
	c.Flags().BoolVar(&plan, "plan", false, "show what it would change, and change nothing")
	return s.RunFlags(c, &verbose)
}

// checkEnvironment refuses a promotion to nowhere, and sets the environment of one within a project.
func checkEnvironment(from, to, env string, how *project.Deployment) error {
	sets := slices.ContainsFunc(how.Set, func(s project.Setting) bool { return s.Key == "default_env" })
	switch {
	case to == from && env == "":
		return fault.New(fault.Usage, "", "TO is missing").WithHint("corpus-git promote %s TO  ; to another environment of the same project:  corpus-git promote %s --env ENVIRONMENT", from, from)
	case to != from && env != "":
		return fault.New(fault.Usage, "", "--env is for a promotion within one project")
	case env == "":
		return nil
	case sets:
		return fault.New(fault.Usage, "", "--env says the environment already")
	}
	set, err := project.ParseSettings([]string{"default_env=" + env}, &project.Selection{})
	how.Set = append(how.Set, set...)
	return err
}

// allowed checks the rights on both projects, and sets them.
func (s Session) allowed(q *local.Promotion, from, to string) (err error) {
	if q.To, err = s.Project("promote", to, project.Deploy); err != nil {
		return err
	}
	if q.From, err = s.Project("promote", from, project.Read); err != nil || !q.WithPillar {
		return err
	}
	if _, err = s.Project("promote", to, project.Configure); err == nil {
		_, err = s.Project("promote", from, project.Configure)
	}
	return err
}

// promote starts the deployment of a promotion; how has what the caller chose of it.
func (s Session) promote(q local.Promotion, how project.Deployment, plan, verbose bool) error {
	if err := s.Prepare(); err != nil {
		return err
	}
	d, err := s.Promotions.Promote(s.Context, q)
	if err != nil {
		return s.Audited(audit.Entry{Action: "promote", Project: q.To.String(), Object: "of " + q.From.String()}, err)
	}
	d.Set, d.Select, d.Forced, d.AllowMissing = how.Set, how.Select, how.Forced, how.AllowMissing
	if plan {
		d.Trigger = project.TriggerPlan
	}
	return s.Deploy("promote", d, verbose)
}
