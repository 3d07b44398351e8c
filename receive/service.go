package receive

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"corpus-git/access"
	"corpus-git/git/pack"
	"corpus-git/git/upload"
	"corpus-git/internal/audit"
	"corpus-git/internal/fault"
	"corpus-git/internal/nearest"
	"corpus-git/internal/printable"
	"corpus-git/layout"
	"corpus-git/project"
	"corpus-git/project/demands"
	"corpus-git/receive/session"
	"corpus-git/receive/signed"
	"corpus-git/receive/sshd"
)

// Commands runs the commands of a client that are not git's: the verbs of the command line. argv is empty for a client without a command,
// which is shown its identity and the projects that it may push to. The result is the exit status.
type Commands interface {
	Run(ctx context.Context, who access.Identity, argv []string, stdin io.Reader, stdout, stderr io.Writer, term sshd.Terminal) (exit int)
}

// Access looks up permissions; access.Store implements it.
type Access interface {
	Can(ctx context.Context, who access.Identity, name project.Name, want project.Right) (bool, error)
	IsAdmin(ctx context.Context, who access.Identity) (bool, error)
	Used(ctx context.Context, fingerprint string) error
}

// Settings is what receiving needs to know about a project.
type Settings struct {
	// RemoteLess projects have no repositories.
	RemoteLess bool
	// StoreOtherBranches accepts branches that do not deploy.
	StoreOtherBranches bool
}

// Projects knows which projects exist.
type Projects interface {
	// Lookup returns a project's settings; ok is false for an unknown one.
	Lookup(ctx context.Context, name project.Name) (s Settings, ok bool, err error)
	// Create makes a project with its repositories, for create_on_push.
	Create(ctx context.Context, by access.Identity, name project.Name) error
}

// Audit records who did what; audit.Log satisfies it.
type Audit interface {
	RecordAll(ctx context.Context, all []audit.Entry) error
}

// Service serves sessions over ssh. It is an sshd.Handler. Fields are set before use.
type Service struct {
	Root     layout.Root
	Repos    *Repositories
	Access   Access
	Projects Projects
	Deployer session.Deployer
	Commands Commands
	Audit    Audit
	// Shared is called before a client learns how its push to a project ended, and returns when that cannot be lost; nil does nothing.
	Shared func(project.Name)
	// Find resolves the prefix of a deployment's ID for refs/rollback; with nil the prefix is passed to the Deployer as it is.
	Find func(ctx context.Context, name project.Name, prefix string) (project.ID, error)
	// Expect is told that a client which may push to a project is about to; the function that it returns is called when the push has ended. nil does nothing.
	Expect func(ctx context.Context, name project.Name) (over func())
	// Waiting returns the branch of a first deployment of a commit that waits for approval, "" if there is none; nil means none.
	Waiting func(ctx context.Context, name project.Name, repo project.Repo, commit project.Commit) string
	// Signatures verifies signed pushes; nil accepts none.
	Signatures *signed.Verifier
	// Prefix returns how people run the server's commands over SSH, "ssh -p 2222 deploy@server", for use in hints; nil leaves hints as they are.
	Prefix func() string
	// Visible returns the projects that an identity may know of, for suggestions after a typo; nil means none.
	Visible func(ctx context.Context, who access.Identity) ([]string, error)
	// CreateOnPush lets the first push of an admin to a new valid name create the project.
	CreateOnPush bool
	// Version is our version, for the agent capability.
	Version string
	// Limits limit a push, PackLimits its pack, UploadLimits a fetch. Zero fields mean the defaults.
	Limits       session.Limits
	PackLimits   pack.Limits
	UploadLimits upload.Limits
	// Keepalive and ProgressAfter are those of session.Push.
	Keepalive, ProgressAfter time.Duration
	// NewID names quarantines and pushes; nil means project.NewID.
	NewID func() project.ID
	Now   func() time.Time
	Log   zerolog.Logger
}

var _ sshd.Handler = (*Service)(nil)

// Serve runs one session's command.
func (s *Service) Serve(ctx context.Context, sess *sshd.Session) int {
	if sess.Subsystem != "" {
		return s.refuse(sess, fault.New(fault.Refused, "", "subsystem %s is not supported", quotedPath(sess.Subsystem)).
			WithHint("this server supports only git and the commands of corpus-git, not sftp, scp or a shell"))
	}
	argv, err := Words(sess.Command)
	if err != nil {
		return s.refuse(sess, err)
	}
	if len(argv) > 0 && strings.Contains(argv[0], "/") {
		// --upload-pack=/usr/bin/git-upload-pack, and sh by its path: no programs are run, so only the name matters.
		switch base := path.Base(argv[0]); base {
		case "git", "git-receive-pack", "git-upload-pack", "git-upload-archive", "scp", "rsync", "sftp-server":
			argv[0] = base
		default:
			if isShell(base) {
				argv[0] = base
			}
		}
	}
	if len(argv) > 1 && argv[0] == "git" && (argv[1] == "receive-pack" || argv[1] == "upload-pack") {
		argv = append([]string{"git-" + argv[1]}, argv[2:]...)
	}
	if len(argv) > 0 {
		switch argv[0] {
		case "git-receive-pack", "git-upload-pack":
			return s.git(ctx, sess, argv[0], argv[1:])
		case "git-lfs-authenticate", "git-lfs-transfer":
			return s.refuse(sess, fault.New(fault.Refused, "", "this server does not support git-lfs").
				WithHint("push without them:  GIT_LFS_SKIP_PUSH=1 git push … ; their pointer files are deployed, see docs/submodules.md"))
		case "git-upload-archive":
			return s.refuse(sess, fault.New(fault.Refused, "", "git archive --remote is not supported here").WithHint("git clone --depth 1 … , then  git archive  in the clone"))
		case "scp", "rsync", "sftp-server":
			return s.refuse(sess, fault.New(fault.Refused, "", "%s is not supported here", argv[0]).WithHint("clone, fetch, push and the commands listed by  help  are"))
		}
	}
	if len(argv) > 0 && isShell(argv[0]) {
		return s.refuse(sess, fault.New(fault.Refused, "", "this server has no shell: cannot run %s", printable.Clip(sess.Command, 100)).
			WithHint("use git and the commands listed by  help ; for a shell, log in to the machine's own ssh server"))
	}
	if len(argv) > 0 && strings.HasPrefix(argv[0], "git-") {
		return s.refuse(sess, fault.New(fault.Usage, "", "unknown command %s", quotedPath(argv[0])).WithHint("only git-upload-pack and git-receive-pack are supported; leave out --upload-pack and --receive-pack"))
	}
	if s.Commands == nil {
		return s.refuse(sess, fault.New(fault.Usage, "", "this server supports only git commands"))
	}
	return s.Commands.Run(ctx, sess.Identity, argv, sess.Stdin, sess.Stdout, sess.Stderr, sess.Terminal)
}

// isShell reports whether a word is the name of a shell, or of a program that runs another program.
func isShell(word string) bool {
	switch word {
	case "sh", "bash", "dash", "zsh", "ksh", "csh", "tcsh", "fish", "sudo", "su", "env", "exec":
		return true
	}
	return false
}

// git serves one git command.
func (s *Service) git(ctx context.Context, sess *sshd.Session, command string, args []string) int {
	action, push := "fetch", command == "git-receive-pack"
	if push {
		action = "push"
	}
	if len(args) != 1 {
		return s.refuse(sess, fault.New(fault.Usage, "", "%s takes one path", command))
	}
	if sess.Terminal.Pty {
		return s.refuse(sess, fault.New(fault.Usage, "", "git needs a connection without a terminal").WithHint("leave out  -t  (RequestTTY in ~/.ssh/config)"))
	}
	name, repo, err := ParsePath(s.Root, args[0])
	if err != nil {
		return s.refuse(sess, err)
	}
	settings, err := s.allowed(ctx, sess.Identity, name, repo, push)
	if err != nil {
		s.record(ctx, sess.Identity, action, name, string(repo)+".git", err)
		return s.refuse(sess, err)
	}
	version := upload.Version(sess.Env["GIT_PROTOCOL"])
	if !push {
		o, err := s.Repos.Open(name, repo).acquire()
		if err != nil {
			return s.refuse(sess, err)
		}
		defer s.Repos.release(o)
		db, err := s.Repos.objects(o)
		if err != nil {
			return s.refuse(sess, err)
		}
		err = upload.Serve(ctx, upload.Request{Objects: db, Refs: o.refs, Version: version, Agent: s.agent(), Limits: s.UploadLimits}, sess.Stdin, sess.Stdout)
		if err != nil && fault.KindOf(err) == fault.Internal {
			s.Log.Error().Err(err).Str("project", string(name)).Str("repo", string(repo)).Msg("fetch failed")
		}
		return fault.ExitCode(err)
	}
	if s.Expect != nil {
		defer s.Expect(ctx, name)()
	}
	p, done, err := s.push(ctx, sess.Identity, name, repo, settings)
	if err != nil {
		return s.refuse(sess, err)
	}
	defer done()
	p.Colour = sess.Terminal.Colour
	if version != 2 { // there is no push in protocol 2 (gitprotocol-v2(5)); git itself falls back to 0
		p.Version = version
	}
	return p.Serve(ctx, sess.Stdin, sess.Stdout, sess.Stderr)
}

// commands returns the prefix with which the client runs the server's commands, if it came by SSH.
func (s *Service) commands(who access.Identity) string {
	if s.Prefix == nil || who.Fingerprint == "" {
		return ""
	}
	return s.Prefix()
}

// push prepares a push to a repository, which stays open until done is called.
func (s *Service) push(ctx context.Context, who access.Identity, name project.Name, repo project.Repo, settings Settings) (p *session.Push, done func(), err error) {
	o, err := s.Repos.Open(name, repo).acquire()
	if err != nil {
		return nil, nil, err
	}
	done = func() { s.Repos.release(o) }
	db, err := s.Repos.objects(o)
	if err != nil {
		done()
		return nil, nil, err
	}
	want := project.Deploy
	if repo == project.PillarRepo {
		want = project.Configure
	}
	p = &session.Push{
		Policy:   session.Policy{StoreOtherBranches: settings.StoreOtherBranches, Repo: repo, Project: name, Remote: "prod"},
		Pusher:   project.Pusher{Key: who.Name, Fingerprint: who.Fingerprint, From: who.From},
		DB:       db,
		Refs:     o.refs,
		Hold:     func() func() { return s.Repos.hold(o) },
		Begin:    func() (func(), error) { return s.Repos.Underway.Begin(name) },
		Deployer: s.Deployer, Find: s.Find,
		Agent: s.agent(), Commands: s.commands(who),
		Limits: s.Limits, PackLimits: s.PackLimits, Keepalive: s.Keepalive, ProgressAfter: s.ProgressAfter,
		Now: s.Now, ID: s.newID(), Log: s.Log,
		Audit: func(all ...audit.Entry) { s.write(ctx, all...) },
	}
	if s.Waiting != nil {
		p.Policy.Waiting = func(commit project.Commit) string { return s.Waiting(ctx, name, repo, commit) }
	}
	if s.Shared != nil {
		p.Shared = func() { s.Shared(name) }
	}
	if s.Signatures != nil {
		p.Verify = func(ctx context.Context, c *signed.Certificate, nonce string, options []string) (demands.Signature, error) {
			return s.Signatures.Push(ctx, c, nonce, options, signed.For{Project: name, Right: want, From: who.From})
		}
	}
	return p, done, nil
}

func (s *Service) agent() string { return "corpus-git/" + strings.ReplaceAll(s.Version, " ", "-") }

func (s *Service) newID() string {
	if s.NewID != nil {
		return string(s.NewID())
	}
	return string(project.NewID())
}

// allowed decides whether an identity may push to, or fetch from, a repository. Without permission on a project the answer is always the
// same, whether it exists or not, and nothing is looked up about it, so that its timing reveals nothing either.
func (s *Service) allowed(ctx context.Context, who access.Identity, name project.Name, repo project.Repo, push bool) (Settings, error) {
	want := project.Read
	switch {
	case repo == project.PillarRepo:
		want = project.Configure
	case push:
		want = project.Deploy
	}
	var settings Settings
	can, err := s.Access.Can(ctx, who, name, want)
	if err != nil {
		return settings, err
	}
	knows := can
	for _, r := range []project.Right{project.Read, project.Configure} {
		ok, err := s.Access.Can(ctx, who, name, r)
		if err != nil {
			return settings, err
		}
		knows = knows || ok
	}
	admin, err := s.Access.IsAdmin(ctx, who)
	if err != nil {
		return settings, err
	}
	if !knows && !admin {
		return settings, s.unknown(ctx, who, name)
	}
	settings, exists, err := s.Projects.Lookup(ctx, name)
	if err != nil {
		return settings, err
	}
	switch {
	case exists && can:
		return settings, s.Repos.Open(name, repo).ensure(ctx, settings)
	case !exists && admin && push && s.CreateOnPush:
		if err := s.Projects.Create(ctx, who, name); err != nil {
			return settings, err
		}
		s.record(ctx, who, "project create", name, "on push", nil)
		settings, _, err = s.Projects.Lookup(ctx, name)
		return settings, err
	case !exists && admin:
		hint := fmt.Sprintf("create it with  corpus-git project create %s", name)
		if meant := s.suggestProject(ctx, who, name); meant != "" {
			hint = fmt.Sprintf("did you mean %s? Or %s", meant, hint)
		}
		return settings, fault.New(fault.Refused, "", "no project %s", name).WithHint("%s", hint)
	case exists && knows:
		what := "fetch from"
		if push {
			what = "push to"
		}
		return settings, fault.New(fault.Refused, "", "%s may not %s %s.git of %s: it requires %s permission", who.Name, what, repo, name, want).
			WithHint("an administrator can grant it:  corpus-git access grant %s %s %s", name, who.Name, want)
	}
	return settings, s.unknown(ctx, who, name)
}

// unknown returns the only answer about a project that does not exist, or that the identity may not know of.
func (s *Service) unknown(ctx context.Context, who access.Identity, name project.Name) error {
	hint := "ssh without a command lists the projects that you can push to; an administrator can grant more permissions"
	if meant := s.suggestProject(ctx, who, name); meant != "" {
		hint = fmt.Sprintf("did you mean %s? %s", meant, hint)
	}
	return fault.New(fault.Refused, "", "no project %s, or %s has no permission on it", name, who.Name).WithHint("%s", hint)
}

// suggestProject returns the project that was probably meant by a name, among those that the identity may know of; "" if there is none.
func (s *Service) suggestProject(ctx context.Context, who access.Identity, name project.Name) string {
	if s.Visible == nil {
		return ""
	}
	all, err := s.Visible(ctx, who)
	if err != nil {
		return ""
	}
	return nearest.To(string(name), slices.DeleteFunc(all, func(n string) bool { return n == string(name) }))
}

// ensure creates the repository if it is missing. A remote-less project has none.
func (r *Repository) ensure(ctx context.Context, settings Settings) error {
	if settings.RemoteLess {
		return fault.New(fault.Refused, "", "%s has no remotes: it is deployed by hand", r.name).WithHint("run  corpus-git deploy %s  on the machine", r.name)
	}
	there, err := r.Exists()
	if err != nil || there {
		return err
	}
	_, err = r.Create(ctx)
	return err
}

func (s *Service) record(ctx context.Context, who access.Identity, action string, name project.Name, object string, err error) {
	e := audit.Entry{Actor: who.Name, Fingerprint: who.Fingerprint, From: who.From, Action: action, Project: string(name), Object: object, Outcome: "ok"}
	if err != nil {
		e.Outcome, e.Detail = "refused", err.Error()
		if fault.KindOf(err) == fault.Internal {
			e.Outcome, e.Detail = "failed", "server error"
		}
	}
	s.write(ctx, e)
}

func (s *Service) write(ctx context.Context, all ...audit.Entry) {
	if err := s.Audit.RecordAll(context.WithoutCancel(ctx), all); err != nil {
		s.Log.Error().Err(err).Int("entries", len(all)).Str("action", all[0].Action).Str("actor", all[0].Actor).Msg("audit log")
	}
}

// LoggedIn records that a key was used; it is for sshd.Server.
func (s *Service) LoggedIn(who access.Identity) {
	if err := s.Access.Used(context.Background(), who.Fingerprint); err != nil {
		s.Log.Warn().Err(err).Str("key", who.Name).Msg("record the use of a key")
	}
}

// RefusedLogin records a connection whose keys are all unknown; it is for sshd.Server.
func (s *Service) RefusedLogin(from, user, fingerprint string) {
	s.write(context.Background(), audit.Entry{Fingerprint: fingerprint, From: from, Action: "login", Object: quotedPath(user), Outcome: "refused", Detail: "none of the offered keys is known"})
}
