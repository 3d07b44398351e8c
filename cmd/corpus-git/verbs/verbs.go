package verbs

import (
	"bufio"
	"context"
	"io"
	"iter"
	"strings"
	"time"

	"corpus-git/access"
	"corpus-git/backup"
	"corpus-git/bundle"
	"corpus-git/bundle/local"
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
	"corpus-git/cmd/corpus-git/verbs/requests"
	"corpus-git/cmd/corpus-git/verbs/waits"
	"corpus-git/fleet/agent"
	"corpus-git/internal/audit"
	"corpus-git/internal/diskfull"
	"corpus-git/internal/event"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/internal/terminal"
	"corpus-git/project"
	"corpus-git/project/registry"
	"corpus-git/project/status"
	"corpus-git/remote"
	"corpus-git/units"
)

// Caller is who types, and where.
type Caller struct {
	access.Identity
	// Remote reports that the words came over ssh: nothing of this machine's files can be meant by them.
	Remote bool
	// Program reports that a program reads standard output: what went wrong is a document there, with --json or without.
	Program bool
	Term    Terminal
	// Screen is the terminal itself, for a command that takes it over; nil if there is none.
	Screen *terminal.Terminal
}

// Terminal is what is known of the caller's.
type Terminal struct {
	Colour bool `json:"colour,omitempty"`
	// Width in columns; 0 means unknown, and that no terminal reads this.
	Width int `json:"width,omitempty"`
}

// Pusher returns the caller as a deployment remembers it.
func (c Caller) Pusher() project.Pusher {
	return project.Pusher{Key: c.Name, Fingerprint: c.Fingerprint, From: c.From}
}

// Projects is the registry.
type Projects interface {
	Get(ctx context.Context, name project.Name) (registry.Project, error)
	List(ctx context.Context) ([]registry.Project, error)
	Create(ctx context.Context, name project.Name, s registry.Settings) (registry.Created, error)
	Destroy(ctx context.Context, name project.Name, data bool) (registry.Destroyed, error)
	Link(ctx context.Context, name project.Name) (changed bool, err error)
	Unlink(ctx context.Context, name project.Name) (changed bool, err error)
}

// Runs is the pipeline.
type Runs interface {
	requests.Runs
	Deployments(ctx context.Context, name project.Name, limit int) ([]project.Record, error)
	// Before returns those that are older than one.
	Before(ctx context.Context, name project.Name, id project.ID, limit int) ([]project.Record, error)
	// Find resolves a prefix of an ID; none and several are fault errors that say so.
	Find(ctx context.Context, name project.Name, prefix string) (project.Record, error)
}

// Access is the principals, their keys, tokens and grants.
type Access interface {
	AddPrincipal(ctx context.Context, by access.Identity, p access.Principal) (access.Principal, error)
	SetPrincipal(ctx context.Context, by access.Identity, name string, c access.Change) (access.Principal, error)
	RemovePrincipal(ctx context.Context, by access.Identity, name string) error
	FindPrincipal(ctx context.Context, name string) (access.Principal, error)
	ListPrincipals(ctx context.Context) ([]access.Principal, error)
	AddToken(ctx context.Context, by access.Identity, t access.Token) (token access.Token, secret string, err error)
	RevokeToken(ctx context.Context, by access.Identity, principal, token string) error
	// ListTokens returns those of a principal, of all for "".
	ListTokens(ctx context.Context, principal string) ([]access.Token, error)
	// ListCertificates returns the SSH certificates that logged in as a principal and have not expired.
	ListCertificates(ctx context.Context, principal string) ([]access.Certificate, error)
	// LookupUser asks the directory for a user, and changes nothing.
	LookupUser(ctx context.Context, name string) (access.DirectoryUser, error)
	GrantsOf(ctx context.Context, principal string) ([]access.Grant, error)
	AddKeyTo(ctx context.Context, by access.Identity, k access.NewKey) (access.Key, error)
	RemoveKey(ctx context.Context, by access.Identity, name string) error
	ListKeys(ctx context.Context) ([]access.Key, error)
	// FindByName returns one key; an unknown name is fault.Refused.
	FindByName(ctx context.Context, name string) (access.Key, error)
	Grant(ctx context.Context, by access.Identity, name project.Name, principal string, right project.Right) error
	Revoke(ctx context.Context, by access.Identity, name project.Name, principal string, right project.Right) error
	RevokeAll(ctx context.Context, by access.Identity, name project.Name) error
	ListGrants(ctx context.Context, name project.Name) ([]access.Grant, error)
	Can(ctx context.Context, who access.Identity, name project.Name, want project.Right) (bool, error)
	// Rights returns those of all projects, looked up at once.
	Rights(ctx context.Context, who access.Identity) (access.Rights, error)
	IsAdmin(ctx context.Context, who access.Identity) (bool, error)
	// Valid reports whether who may still log in.
	Valid(ctx context.Context, who access.Identity) (bool, error)
}

// Archives is the archives of all projects.
type Archives interface {
	// List returns the newest first.
	List(ctx context.Context, name project.Name) ([]status.Archive, error)
	Pin(ctx context.Context, name project.Name, id project.ID, pinned bool) error
	// Keeping says which archives stay.
	Keeping(ctx context.Context, name project.Name) (status.Keeping, error)
	// Prune removes what retention does not keep, or reports what it would remove.
	Prune(ctx context.Context, name project.Name, how Prune) (status.Pruned, error)
	// Export writes an archive as tar.zst.
	Export(ctx context.Context, name project.Name, id project.ID, w io.Writer) error
}

// Prune is how archives are pruned.
type Prune struct {
	// Keep is how many good archives stay; 0 is what the configuration says.
	Keep int
	// DryRun removes nothing.
	DryRun bool
}

// Cfg computes a project's configuration.
type Cfg interface {
	// Cfg returns the configuration of what is live.
	Cfg(ctx context.Context, name project.Name) (*project.Cfg, error)
	// Explain reports what each layer says of it, at a key or below: see project.Cfg.Explain.
	Explain(ctx context.Context, name project.Name, key string, show project.Show) ([]project.Explained, error)
}

// Units are what projects run.
type Units interface {
	// List returns the units that only selects, all for none.
	List(ctx context.Context, name project.Name, only []string) ([]project.UnitState, error)
	// Act starts, stops or restarts them while no deployment runs, and gives their states after it. Where one is not in the state that was
	// asked for the error wraps a *units.Failure.
	Act(ctx context.Context, name project.Name, a project.UnitAction, only []string, by project.Pusher) ([]project.UnitState, error)
	// Logs hands over the lines of their logs; the error of emit ends it.
	Logs(ctx context.Context, name project.Name, req units.LogRequest, emit func(source, line string) error) error
	// Run runs a command as the project's user, in its environment and its live tree, and gives the exit status. begin is called before it
	// starts, with what is run, redacted, and who runs it, "" for the server's user; its error ends it.
	Run(ctx context.Context, name project.Name, argv []string, begin func(what, user string) error, stdin io.Reader, stdout, stderr io.Writer) (exit int, err error)
}

// Checks are the checks that run periodically.
type Checks interface {
	// States returns those of what is live, as they stand; none where no server is running.
	States(name project.Name) []project.CheckState
	// History returns the newest periods first, at most limit.
	History(ctx context.Context, name project.Name, limit int) ([]project.CheckPeriod, error)
}

// Bundles moves what is deployed between machines.
type Bundles interface {
	requests.Bundles
	// Create writes a bundle of the commits of both branches of a project.
	Create(ctx context.Context, name project.Name, q local.Request, w io.Writer) (bundle.Manifest, error)
	// Untrust removes a key whose bundles are deployed here, TrustedKeys returns all but this machine's own.
	Untrust(ctx context.Context, text string) (fingerprint string, changed bool, err error)
	TrustedKeys(ctx context.Context) ([]string, error)
	// LastLive returns the deployment that went live last, "" if nothing is live.
	LastLive(ctx context.Context, name project.Name) (project.ID, error)
	// Key returns the public key that signs the bundles of this machine.
	Key() (string, error)
}

// Audit is the audit log.
type Audit interface {
	Record(ctx context.Context, e audit.Entry) error
	// List returns the newest first, Before those that are older than an entry.
	List(ctx context.Context, project string, limit int) ([]audit.Entry, error)
	Before(ctx context.Context, project string, before int64, limit int) ([]audit.Entry, error)
}

// Backend is everything the verbs work with.
type Backend struct {
	Projects Projects
	Runs     Runs
	Access   Access
	Archives Archives
	Cfg      Cfg
	Units    Units
	Checks   Checks
	Bundles  Bundles
	// Configs is what was applied.
	Configs Configs
	Fleet   nodes.Fleet
	Hubs    hubs.Backend
	Jobs    jobs.Jobs
	Signals waits.Signals
	// Approvals are the deployments that wait until others approve them.
	Approvals approve.Approvals
	// Promotions bring what is live in one project live in another one.
	Promotions promote.Promotions
	KV         keys.KV
	Recipes    recipes.Recipes
	// Begin stores the first commits of a project, made of a skeleton, in its two repositories, and gives the deployments that bring them live,
	// in their order. One that has commits already is fault.Refused.
	Begin func(ctx context.Context, name project.Name, skeleton string, by project.Pusher) ([]project.Deployment, error)
	Audit Audit
	// Notifications are what others are told.
	Notifications Notifications
	Status        *status.Source
	// Events reads the event log of a deployment as far as it is written, without waiting.
	Events func(name project.Name, id project.ID) iter.Seq2[event.Event, error]
	// Doctor looks at the machine.
	Doctor diagnose.Doctor
	// Enter runs commands in projects on a terminal; Shells tells whether others than this machine's users may.
	Enter  enter.Projects
	Shells bool
	// Prepare runs before a verb that changes a project: recovery, where no server has done it. It may be nil.
	Prepare func(ctx context.Context) error
	// Discard empties the trash after a project was destroyed, in the background or not, as the process lives. It may be nil.
	Discard func(ctx context.Context)
	// PublishedKeys reads the keys that a host publishes; nil if nothing is fetched.
	PublishedKeys func(ctx context.Context, address string) ([]access.Published, error)
	// WebLogin makes a link that logs a browser in as who, once; nil if no server is running.
	WebLogin func(ctx context.Context, who access.Identity) (string, error)
	// Backup writes a backup of everything to w, and tells note what it reads.
	Backup func(ctx context.Context, w io.Writer, what Backup, note func(string)) (backup.Contents, error)
	// Maintainer maintains repositories.
	Maintainer Maintainer
	// Commands is how people run the server's commands over SSH, "ssh -p 2222 deploy@server", for the hints that they read; nil leaves hints as they are.
	Commands func() string
	// Address is HOST:PORT at which the server's ssh port is reached.
	Address func() string
	// NATS is where agents connect over NATS; nil if they connect by ssh.
	NATS *agent.NATS
	// Hello is what this machine says of itself to another one. Upgrade takes a program for its agent; nil if none dials in.
	Hello   func() remote.Hello
	Upgrade func(ctx context.Context, in *bufio.Reader) error
	// HubKeys keeps by which keys its agent knows the hub; nil if none dials in.
	HubKeys func(bundle.Succession) error
	// HostKeys replaces the server's host keys.
	HostKeys hostkeys.Backend
	// Host is the name of this machine for people, Build what runs.
	Host  string
	Build status.Build
	Now   func() time.Time
	// Detached reports that deployments outlive the caller: a server runs them. Otherwise they end with the process,
	// and a caller who leaves cancels them.
	Detached bool
	// Recheck is how often it is looked up whether who follows a log still may; 0 is 15 seconds.
	Recheck time.Duration
	// ProgressAfter is how long a deployment that is followed shows nothing before the running step is named; 0 is 30 seconds.
	ProgressAfter time.Duration
}

// Run does what argv (without the program's name) says and returns the exit status: 0 done, 1 the work
// failed, 2 wrong use, 3 refused, 4 busy or try again, 70 our own fault. When ctx ends, following ends; see Backend.Detached.
func Run(ctx context.Context, b *Backend, who Caller, argv []string, stdin io.Reader, stdout, stderr io.Writer) int {
	s := &session{ctx: ctx, b: b, who: who, in: stdin, out: stdout, err: stderr}
	if len(argv) == 0 && who.Remote {
		return s.end(s.printAccess())
	}
	if direct := nodes.Direct(argv); direct != nil {
		return s.end(direct(s.nodes()))
	}
	root := Tree(s)
	root.SetArgs(argv)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetContext(ctx)
	return s.end(root.ExecuteContext(ctx))
}

// session is one Run.
type session struct {
	ctx     context.Context //nolint:containedctx // it lives as long as the one call that it belongs to
	b       *Backend
	who     Caller
	in      io.Reader
	out     io.Writer
	err     io.Writer
	json    bool
	printed bool // a document was written
	exact   bool // times are shown as such, not as ages
	detach  bool // deployments are started, not followed
}

// end prints what went wrong and gives the exit status.
func (s *session) end(err error) int {
	if err == nil {
		return 0
	}
	var v verdict
	if asVerdict(err, &v) {
		return v.exit
	}
	err = diskfull.Explain(err)
	if (s.json || s.who.Program) && !s.printed {
		p := status.Problem{Version: status.Version, Error: s.explain(err), Kind: fault.KindOf(err).String(), Hint: s.hint(err), Exit: fault.ExitCode(err)}
		_ = s.document(p)
	}
	Report(s.err, s.who.Term, s.explain(err), s.hint(err), err)
	return fault.ExitCode(err)
}

// explain returns the error's line. What is our own fault is told to the machine's own users only.
func (s *session) explain(err error) string {
	if fault.KindOf(err) == fault.Internal && s.who.Remote {
		return "internal server error; see the server's log"
	}
	return err.Error()
}

// hint returns the hint of an error as the caller can follow it.
func (s *session) hint(err error) string { return event.WithCommands(fault.HintOf(err), s.commands()) }

// commands returns how the caller runs the server's commands, "" for corpus-git on its machine.
func (s *session) commands() string {
	if !s.who.Remote || s.b.Commands == nil {
		return ""
	}
	return s.b.Commands()
}

// Report prints an error as people read it: the line, the place with a caret where it is known, the hint.
func Report(w io.Writer, t Terminal, text, hint string, err error) {
	p := &printer{w: w}
	first, rest, _ := strings.Cut(text, "\n")
	p.line("%s %s", t.paint(red, "error:"), first)
	if rest != "" {
		for line := range strings.SplitSeq(rest, "\n") {
			p.line("  %s", line)
		}
	}
	if at, ok := fault.PosOf(err); ok && at.Text != "" {
		line, _, _ := strings.Cut(at.Text, "\n")
		p.line("  | %s", styled(printable.Text(line)))
		if at.Col > 0 {
			p.line("  | %s", styled(printable.Caret(line, at.Col)))
		}
	}
	if hint != "" {
		p.line("%s %s", t.paint(yellow, "hint:"), hint)
	}
}

// verdict is the end of a deployment that has said everything itself.
type verdict struct{ exit int }

func (v verdict) Error() string { return "the deployment did not succeed" }

func asVerdict(err error, v *verdict) bool {
	got, ok := err.(verdict) //nolint:errorlint // never wrapped: made by this package, for its own caller
	if ok {
		*v = got
	}
	return ok
}

// audited records what a verb did, or was refused.
func (s *session) audited(e audit.Entry, err error) error {
	e.Actor, e.Fingerprint, e.From = s.who.Name, s.who.Fingerprint, s.who.From
	e.Outcome = "ok"
	if err != nil {
		e.Outcome, e.Detail = "failed", err.Error()
		switch fault.KindOf(err) {
		case fault.Refused, fault.Busy, fault.Usage, fault.Conflict:
			e.Outcome = "refused"
		}
	}
	if aerr := s.b.Audit.Record(context.WithoutCancel(s.ctx), e); aerr != nil && err == nil {
		return fault.New(fault.Internal, "audit", "%w", aerr)
	}
	return err
}
