package verbs

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"corpus-git/access"
	"corpus-git/bundle"
	"corpus-git/bundle/local"
	"corpus-git/cmd/corpus-git/verbs/requests"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/project"
)

func bundleCommand(s *session) *cobra.Command {
	c := &cobra.Command{
		Use: "bundle", Short: "Move a release to another machine in one file",
		Long: "A bundle contains both commits of a project, their objects, with submodules and extended recipes, and the settings of the deployment, signed by the machine that\n" +
			"created it. Another machine deploys exactly that, with its own archive, checks and rollback. remote deploy does all of this over ssh.",
	}
	c.AddCommand(bundleCreate(s), bundleApply(s), bundleVerify(s), bundleTips(s), bundleTrust(s), bundleTrusted(s), bundleUntrust(s), bundleKey(s), bundleSession(s))
	return c
}

// local refuses a bundle verb to who is not on the machine, or no administrator.
func (s *session) local(verb string, object string) error {
	if err := s.admin(verb, object); err != nil {
		return err
	}
	if s.who.Remote {
		return fault.New(fault.Refused, "", "%s works only on the machine itself, as bundles contain pillars", verb).
			WithHint("log in to the machine and run  corpus-git %s", verb)
	}
	return nil
}

func bundleCreate(s *session) *cobra.Command {
	var q local.Request
	var have []string
	var id, export, tips string
	c := &cobra.Command{
		Use: "create PROJECT [KEY=VALUE...]", Short: "Write a bundle of the live commits of a project",
		Long: "Writes to --export. Bundles contain the pillar, so keep them secret. --tips omits what another machine has: it is what\n" +
			"bundle tips  prints there. --have omits objects of commits only." + aboutSettings,
		Example: "  corpus-git bundle create app --export app.bundle\n  corpus-git bundle create app --export - | ssh web1 corpus-git bundle apply",
		Args:    andSettings("PROJECT"),
		RunE: func(_ *cobra.Command, args []string) error {
			set, err := project.ParseSettings(args[1:], &q.Select)
			if err != nil {
				return err
			}
			name, err := project.ParseName(args[0])
			if err != nil {
				return err
			}
			if err := checkSelection(q.Select); err != nil {
				return err
			}
			if err := s.local("bundle create", string(name)); err != nil {
				return err
			}
			if export != "-" {
				return usage("--export names the file; - is standard output")
			}
			q.Have = bundle.Unknown()
			if tips != "" {
				q.Have = bundle.Tips{}
				if err := json.Unmarshal([]byte(tips), &q.Have); err != nil {
					return usage("--tips: %w", err)
				}
			}
			var all []project.Commit
			for _, h := range have {
				commit, ok := project.ParseCommit(h)
				if !ok {
					return usage("%q is not a full commit ID", h)
				}
				all = append(all, commit)
			}
			q.Have.Code, q.Have.Pillar = append(q.Have.Code, all...), append(q.Have.Pillar, all...)
			if q.ID = project.ID(id); id != "" {
				if _, err := project.ParseIDPrefix(id); err != nil || len(id) != 36 {
					return usage("%q is not a full deployment ID", id)
				}
			}
			q.Set, q.By = set, s.who.Pusher()
			m, err := s.b.Bundles.Create(s.ctx, name, q, s.out)
			if err := s.audited(audit.Entry{Action: "bundle create", Project: string(name), Object: m.Digest, Deployment: string(m.Deployment)}, err); err != nil {
				return err
			}
			p := &printer{w: s.err}
			p.line("bundle of %s  %s, pillar %s, %s", name, m.Release.Code.Short(), m.Release.Pillar.Short(), packed(m))
			return p.err
		},
	}
	c.Flags().StringVar(&export, ExportFlag, "", "write the bundle to `FILE`; - is standard output")
	c.Flags().StringVar(&q.Task, "task", "", "run this `TASK` of the live release there instead of deploying")
	c.Flags().StringSliceVar(&have, "have", nil, "commits that the other machine already has")
	c.Flags().StringVar(&tips, "tips", "", "what the other machine already has: the `JSON` of its  bundle tips ; one of an older release takes no submodules and no recipes")
	c.Flags().StringVar(&id, "id", "", "the `ID` of the deployment; default: a new one")
	selectionFlags(c, &q.Select)
	return c
}

// packed says how much a bundle carries.
func packed(m bundle.Manifest) string {
	var bytes int64
	for _, p := range m.Packs {
		bytes += p.Bytes
	}
	objects := m.Objects()
	if objects == 0 {
		return "no missing objects"
	}
	return humanize.Plural(objects, "object") + ", " + humanize.Bytes(bytes)
}

func bundleApply(s *session) *cobra.Command {
	var verbose bool
	var file string
	c := &cobra.Command{
		Use: "apply", Short: "Deploy a bundle",
		Long: "Reads a bundle from standard input or --file, verifies its signature and contents, creates the project if necessary,\n" +
			"and deploys exactly the commits of the bundle. The exit status is that of the deployment. A bundle is deployed once; applying it again shows\n" +
			"the earlier deployment. In class dev, files that were edited on the machine are overwritten.",
		Example:     "  corpus-git bundle apply --file app.bundle",
		Args:        exactly(),
		Annotations: map[string]string{ReadsStdin: "yes", Creates: "yes"},
		RunE: func(*cobra.Command, []string) error {
			if err := s.local("bundle apply", ""); err != nil {
				return err
			}
			if err := s.prepare(); err != nil {
				return err
			}
			d, created, err := s.b.Bundles.Take(s.ctx, s.in, s.who.Pusher())
			if err != nil {
				return s.audited(audit.Entry{Action: "bundle apply", Project: string(d.Project), Object: string(d.Code)}, err)
			}
			p := &printer{w: s.err}
			if created {
				p.line("created %s", d.Project)
			}
			if d.Trigger == "" {
				p.line(requests.NothingToRollBack)
				return p.err
			}
			if err := s.outlived(d); err != nil {
				return s.audited(audit.Entry{Action: "bundle apply", Project: string(d.Project), Object: string(d.Code), Deployment: string(d.ID)}, err)
			}
			return s.start("bundle apply", d, verbose)
		},
	}
	c.Flags().StringVar(&file, "file", "-", "read the bundle from `FILE`; - is standard input")
	verboseFlag(c, &verbose)
	return s.jsonFlag(c)
}

// outlived refuses the deployment of a bundle that went live here before, if something else has been done since: its earlier result would look like today's.
func (s *session) outlived(d project.Deployment) error {
	rec, err := s.b.Runs.Find(s.ctx, d.Project, string(d.ID))
	if fault.KindOf(err) == fault.Usage { // it is new
		return nil
	}
	if err != nil || rec.Result == nil || rec.Result.State != project.Live {
		return err
	}
	switch live, err := s.b.Bundles.LastLive(s.ctx, d.Project); {
	case err != nil:
		return err
	case live == d.ID:
		return nil
	case live == "":
		return fault.New(fault.Refused, "", "this bundle was deployed here already, as %s, and %s was undeployed since: nothing is deployed again", d.ID.Short(), d.Project).
			WithHint("create another bundle of these commits")
	default:
		return fault.New(fault.Refused, "", "this bundle was deployed here already, as %s, and %s went live since: nothing is deployed again", d.ID.Short(), live.Short()).
			WithHint("create another bundle of these commits; or  corpus-git archives list %s  shows what can be restored here", d.Project)
	}
}

// BundleDocument is what bundle verify --json prints.
type BundleDocument struct {
	Version  int             `json:"version"`
	Manifest bundle.Manifest `json:"manifest"`
	Signer   string          `json:"signer"`
}

func bundleVerify(s *session) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "verify", Short: "Verify a bundle and show its contents",
		Args:        exactly(),
		Annotations: map[string]string{ReadsStdin: "yes", Stateless: "yes"},
		RunE: func(*cobra.Command, []string) error {
			r, err := bundle.Open(s.in, bundle.Anybody)
			if err != nil {
				return err
			}
			if err := r.Verify(); err != nil {
				return err
			}
			m, by := r.Manifest, access.Fingerprint(r.Signer)
			if s.json {
				return s.document(BundleDocument{Version: 1, Manifest: m, Signer: by})
			}
			p := s.printer()
			p.line("project     %s", m.Release.Project)
			p.line("code        %s", m.Release.Code)
			if m.Release.Pillar != "" {
				p.line("pillar      %s", m.Release.Pillar)
			}
			for _, r := range m.Release.Recipes {
				p.line("recipe      %s  %s", r, r.Commit)
			}
			p.line("digest      %s", m.Digest)
			p.line("deployment  %s", m.Deployment)
			p.line("packs       %s", packed(m))
			p.line("made        %s on %s by %s", m.At.Format("2006-01-02 15:04:05Z07:00"), printable.Text(m.From), printable.Text(m.By.Key))
			p.line("signed by   %s", by)
			return p.err
		},
	}
	c.Flags().StringVar(&file, "file", "-", "read the bundle from `FILE`; - is standard input")
	return s.jsonFlag(c)
}

// TipsDocument is what bundle tips prints.
type TipsDocument struct {
	Version int `json:"version"`
	bundle.Tips
}

func bundleTips(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "tips PROJECT", Short: "Print the commits of a project that this machine already has, as JSON",
		Args: exactly("PROJECT"), Annotations: map[string]string{Creates: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := project.ParseName(args[0])
			if err != nil {
				return err
			}
			if err := s.local("bundle tips", string(name)); err != nil {
				return err
			}
			t, err := s.b.Bundles.Tips(s.ctx, name)
			if err != nil {
				return err
			}
			return s.document(TipsDocument{Version: 1, Tips: t})
		},
	}
}

func bundleTrust(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "trust KEY", Short: "Trust bundles signed by a key",
		Long:    "KEY is the public key that  bundle key  prints on the machine that creates the bundles. The owner of the private key can run anything here.",
		Args:    exactly("KEY"),
		Example: "  corpus-git bundle trust \"$(ssh hub corpus-git bundle key)\"", Annotations: map[string]string{Creates: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.local("bundle trust", ""); err != nil {
				return err
			}
			fp, changed, err := s.b.Bundles.Trust(s.ctx, args[0])
			if err := s.audited(audit.Entry{Action: "bundle trust", Object: fp}, err); err != nil {
				return err
			}
			p := s.printer()
			if changed {
				p.line("trusted %s: bundles signed by it can be deployed here", fp)
			} else {
				p.line("%s is already trusted", fp)
			}
			return p.err
		},
	}
}

func bundleTrusted(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "trusted", Short: "List the keys whose bundles are deployed here, besides this machine's own", Args: exactly(), Annotations: map[string]string{Creates: "yes"},
		RunE: func(*cobra.Command, []string) error {
			if err := s.local("bundle trusted", ""); err != nil {
				return err
			}
			keys, err := s.b.Bundles.TrustedKeys(s.ctx)
			if err != nil {
				return err
			}
			p := s.printer()
			for _, k := range keys {
				p.line("%s", k)
			}
			return p.err
		},
	}
}

func bundleUntrust(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "untrust KEY", Short: "Do not trust bundles signed by a key any more",
		Long:    "KEY is a public key, as  bundle trusted  prints it, or its fingerprint. Run it on each machine when the key of a server was lost or replaced. An agent trusts the key of its hub again when it starts.",
		Args:    exactly("KEY"),
		Example: "  corpus-git bundle untrust SHA256:RG8gJ+s9R+Vfnw0LVheeXTtLYge0XWHBO7ZPdySm4BE", Annotations: map[string]string{Creates: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := s.local("bundle untrust", ""); err != nil {
				return err
			}
			fp, changed, err := s.b.Bundles.Untrust(s.ctx, args[0])
			if err := s.audited(audit.Entry{Action: "bundle untrust", Object: fp}, err); err != nil {
				return err
			}
			p := s.printer()
			if changed {
				p.line("%s is no longer trusted: bundles signed by it are refused here", fp)
			} else {
				p.line("%s was not trusted", fp)
			}
			return p.err
		},
	}
}

func bundleKey(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "key", Short: "Print the public key that signs the bundles of this machine", Args: exactly(), Annotations: map[string]string{Creates: "yes"},
		RunE: func(*cobra.Command, []string) error {
			if err := s.local("bundle key", ""); err != nil {
				return err
			}
			key, err := s.b.Bundles.Key()
			if err != nil {
				return err
			}
			p := s.printer()
			p.line("%s", key)
			return p.err
		},
	}
}
