package config

import (
	"time"

	"corpus-git/project"
)

// Size is a number of bytes, written as 512MiB, 2GiB or a plain number.
type Size int64

// Config is the configuration of a server. The tags say: key (the name in the file; the variable and the flag follow from
// it), default, help (the text of the documentation), oneof (the words allowed), min (the least number), form (addr for
// host:port), restart (a change takes effect only after a restart).
type Config struct {
	Root        string   `key:"root" restart:"yes" help:"Directory that holds projects/, salt/ and pillar/. The default is /srv for root, ./srv for others."`
	StateDir    string   `key:"state_dir" restart:"yes" help:"Directory of the database, host key, journals, event logs and control socket. The default is .corpus-git under root."`
	Listen      string   `key:"listen" default:":2222" form:"addr" restart:"yes" help:"Address of the SSH server."`
	HTTP        string   `key:"http_listen" default:"" form:"addr" restart:"yes" help:"Address of the web pages, API and metrics; empty turns them off. Browsers log in with the link of corpus-git web login, programs send an API token (corpus-git token create)."`
	HTTPCert    string   `key:"http_tls_cert" default:"" help:"File with the TLS certificate of http_listen, in PEM with those that it depends on; with http_tls_key the pages and the API are https. It is read again at SIGHUP." restart:"yes"`
	HTTPKey     string   `key:"http_tls_key" default:"" help:"File with the private key of http_tls_cert, in PEM." restart:"yes"`
	ACME        ACME     `key:"acme"`
	HTTPURL     string   `key:"http_url" default:"" form:"url" help:"Where others reach the pages, as https://deploy.example.org of a reverse proxy; links and the addresses of signals begin with it. Empty: http_listen."`
	HTTPProxies []string `key:"http_trusted_proxies" restart:"yes" help:"Addresses and networks (127.0.0.1, 10.0.0.0/8) of reverse proxies in front of http_listen. Of their requests http_forwarded_header says who the client is (for limits, sessions and the audit log), and whether it came by https; of those of others, nothing."`
	HTTPHeader  string   `key:"http_forwarded_header" default:"x-forwarded-for" oneof:"x-forwarded-for,forwarded" restart:"yes" help:"Which header of theirs says so: X-Forwarded-For with X-Forwarded-Proto, or Forwarded (RFC 7239). The other one counts for nothing, as a proxy may hand on what its client put there."`
	HTTPRate    int      `key:"http_rate" default:"50" help:"How many API requests one token or session may send a second, for long; five times as many at once. 0 is no limit." restart:"yes"`
	OpenMetrics bool     `key:"http_open_metrics" default:"false" restart:"yes" help:"Whether everybody who reaches http_listen may read /metrics without logging in."`
	Public      string   `key:"public_address" default:"" help:"Host, or host:port, that clients reach the SSH server by; used in the remotes that are printed. Empty means the machine's own name and the port of listen."`
	AdminKeys   []string `key:"admin_keys" help:"Public keys, in the form of authorized_keys, that are administrators besides those in the database."`
	CAKeys      []string `key:"ssh_ca_keys" help:"Public keys, in the form of authorized_keys, of authorities whose SSH certificates log in as the user that they name."`
	RevokedKeys string   `key:"ssh_revoked_keys" default:"" help:"File of keys and certificates that may not log in any more: public keys, one a line, or a KRL of ssh-keygen -k. It is read again when it changes; while it cannot be read, no key logs in."`
	Shell       bool     `key:"ssh_shell" default:"false" help:"Whether those who hold the permission shell on a project may open a terminal over SSH as its user, with corpus-git enter."`
	LDAP        LDAP     `key:"ldap"`

	Runner    string   `key:"runner" default:"auto" oneof:"auto,builtin,salt-call" help:"What runs SLS files: the built-in runner, salt-call, or for each file the one that can."`
	SaltCall  string   `key:"salt_call" default:"salt-call" help:"The salt-call program: a path, or a name to look up in PATH."`
	FileRoots []string `key:"file_roots" restart:"yes" help:"More directories in which salt:// paths are looked up, after those of root."`

	CfgDir string `key:"cfg_dir" default:"/etc/corpus-git/cfg.d" restart:"yes" help:"Directory of what the machine's image says of projects' configurations: files *.yaml of root, under PILLAR.sample (docs/cfg.md). Empty reads none."`

	Accounts string `key:"accounts" default:"auto" oneof:"auto,off" restart:"yes" help:"Whether each project gets a system user and group that own its files. auto: where the server runs as root; off: never."`

	DefaultEnv   string   `key:"default_env" default:"prod" help:"The environment of a project that names none: dev, staging, prod, or a name of environments."`
	Environments []string `key:"environments" help:"Further environments, each as name=class: preprod=staging, qa=dev. A class is dev (a failed tree stays, hand edits are kept), staging or prod (both roll back)."`

	KeepArchives int           `key:"keep_archives" default:"3" min:"1" help:"How many archives of a project are kept where its own configuration does not say."`
	KeepFailed   int           `key:"keep_failed_archives" default:"1" min:"0" help:"How many archives of failed deployments are kept, each with the tree that failed."`
	MaxBytes     Size          `key:"archives_max_bytes" default:"0" min:"0" help:"What all archives of one project may take on disk; 0 sets no bound. Failed ones go first, then the oldest; pinned ones and the newest good one stay."`
	MaxAge       time.Duration `key:"archives_max_age" default:"0s" min:"0" help:"Archives of good deployments that are older go; 0s sets no bound. Pinned ones and the newest two stay."`
	FailedMaxAge time.Duration `key:"failed_archives_max_age" default:"7d" min:"0" help:"Archives of failed deployments that are older go; 0s sets no bound."`
	DiskReserve  Size          `key:"disk_reserve" default:"512MiB" min:"0" restart:"yes" help:"What a deployment must leave free on the disk, in bytes; a push that would not is refused."`
	DiskPercent  int           `key:"disk_reserve_percent" default:"5" min:"0" restart:"yes" help:"The same as a share of the disk, in percent; the larger of both counts."`
	Deadline     time.Duration `key:"deadline" default:"5h" min:"1" restart:"yes" help:"The longest that a deployment may take; then it is cancelled and rolled back."`
	Grace        time.Duration `key:"shutdown_grace" default:"5m" min:"0" help:"How long a stopping server lets running deployments go on before it cancels them."`
	Progress     time.Duration `key:"progress_interval" default:"30s" min:"1" help:"How long a push, or a command that follows a deployment, shows nothing before it names the step that runs and the last line that it printed."`

	CreateOnPush       bool `key:"create_on_push" default:"false" help:"Whether an administrator's first push to a new, valid name creates the project."`
	StoreOtherBranches bool `key:"store_other_branches" default:"false" help:"Whether pushes of other branches than the deployed one are stored, without deploying; else they are refused."`

	Require     Require     `key:"require"`
	Submodules  Submodules  `key:"submodules"`
	Maintenance Maintenance `key:"maintenance"`
	History     History     `key:"history"`
	Converge    Converge    `key:"converge"`

	Log    Log    `key:"log"`
	Notify Notify `key:"notify"`
	Traces Traces `key:"traces"`
	Limits Limits `key:"limits"`

	// Warnings are what is odd but no error: variables that look like ours and are not.
	Warnings []string

	origins map[string]Origin
}

// ACME says which certificates an authority is asked for, in place of http_tls_cert.
type ACME struct {
	Hosts  []string `key:"hosts" restart:"yes" help:"Names for which the TLS certificates of http_listen come from an authority by ACME; setting them agrees to its terms. It must reach this machine by them: on port 443, which is http_listen or is forwarded to it, or on port 80 for acme.http_listen. Empty asks for none."`
	Email  string   `key:"email" default:"" restart:"yes" help:"Address that the authority may write to about the certificates; empty gives none."`
	CA     string   `key:"ca" default:"https://acme-v02.api.letsencrypt.org/directory" form:"https" restart:"yes" help:"Directory of the authority (RFC 8555)."`
	CAFile string   `key:"ca_file" default:"" restart:"yes" help:"Certificates that vouch for the authority's own address, as PEM; empty means those of the machine."`
	HTTP   string   `key:"http_listen" default:"" form:"addr" restart:"yes" help:"Address that answers the authority's http-01 challenges and sends browsers to https, such as :80; empty leaves tls-alpn-01 on http_listen."`
}

// Maintenance keeps repositories fast and small, in the background and never during a deployment of theirs.
type Maintenance struct {
	Enabled  bool          `key:"enabled" default:"true" help:"Whether the server maintains repositories by itself; corpus-git gc does it at any time."`
	MaxPacks int           `key:"max_packs" default:"20" min:"1" help:"The most packs of a repository; more are consolidated, the small ones first. Each push brings one."`
	MaxLoose int           `key:"max_loose" default:"2000" min:"0" help:"The most loose objects of a repository; more are packed."`
	MaxRefs  int           `key:"max_loose_refs" default:"500" min:"0" help:"The most refs that are files of their own; more are packed when packs are."`
	Grace    time.Duration `key:"prune_after" default:"336h" min:"0" help:"How old an object that no ref, archive or deployment refers to must be before it is removed; 0 removes none."`
	Every    time.Duration `key:"prune_interval" default:"168h" min:"1" help:"How often a repository is searched for such objects. A search walks all of its history."`
	Quiet    time.Duration `key:"quiet" default:"1m" min:"0" help:"How long after the end of a deployment its repositories are maintained."`
	Rate     Size          `key:"rate" default:"32MiB" min:"1024" help:"How many bytes a second maintenance writes at most. It also waits while anything is deployed."`
}

// History bounds what is recorded. The server keeps these limits once an hour.
type History struct {
	Deployments int           `key:"max_deployments" default:"10000" min:"0" help:"How many deployments of one project are listed; older ones go with their logs. The newest ten, what is live, and what an archive belongs to stay. 0 sets no bound."`
	LogBytes    Size          `key:"max_log_bytes" default:"1GiB" min:"0" help:"What the logs of all deployments of one project may take on disk; the oldest go, their deployments are still listed. 0 sets no bound."`
	UndoLogs    int           `key:"max_undo_logs" default:"100" min:"0" help:"Of how many deployments of one project that went live is kept what they changed outside of the trees; a rollback over older ones says that it is no longer known. 0 sets no bound."`
	AuditAge    time.Duration `key:"audit_max_age" default:"0s" min:"0" help:"Audit entries that are older go; 0s keeps all."`
	NotifyAge   time.Duration `key:"notifications_max_age" default:"30d" min:"0" help:"Notifications that were delivered or given up longer ago go; 0s keeps all."`
	NotifyMax   int           `key:"max_notifications" default:"100000" min:"0" help:"How many deliveries are kept; beyond that the oldest go, those delivered first, then those given up, then those that wait. 0 sets no bound."`
}

// Converge says when live releases are applied again where a project's own configuration does not say.
type Converge struct {
	Boot   bool          `key:"boot" default:"false" help:"Whether the live release of each project is applied again after the machine has started."`
	Every  time.Duration `key:"every" default:"0s" min:"0" help:"How often that is done while the server runs; 0s is never."`
	Splay  time.Duration `key:"splay" default:"10m" min:"0" help:"Within which time the projects spread their runs, each always with the same delay."`
	Mode   string        `key:"mode" default:"enforce" oneof:"enforce,report" help:"Whether a run changes what differs (enforce), or tells it only (report)."`
	AtOnce int           `key:"at_once" default:"2" min:"1" help:"In how many projects it runs at the same time; others wait for their turn."`
}

// Policy is what projects have that say nothing themselves.
func (c Converge) Policy() project.ConvergePolicy {
	return project.ConvergePolicy{Boot: c.Boot, Every: c.Every, Splay: c.Splay, Mode: project.ConvergeMode(c.Mode)}
}

// Submodules says how submodules of what is pushed are fetched.
type Submodules struct {
	Hosts   []string      `key:"hosts" help:"Hosts that submodules may be fetched from, such as github.com or *.example.org; empty allows all. Projects of this server need no entry."`
	Mirrors []string      `key:"mirrors" help:"Where else submodules are looked for first: entries FROM=TO, such as https://github.com/=http://mirror.example.org:8417/git/, of which the one with the longest FROM that the submodule's URL begins with counts. The submodule's own address is asked where the mirror has it not."`
	Timeout time.Duration `key:"timeout" default:"10m" min:"1" help:"How long fetching one submodule may take; then the push is refused."`
}

// Log is what the server writes about itself.
type Log struct {
	Level  string `key:"level" default:"info" oneof:"debug,info,warn,error" help:"The least important messages that are logged."`
	Format string `key:"format" default:"text" oneof:"text,json" help:"The form of messages on standard error; the log file is always JSON."`
}

// Notify is who is told what happens.
type Notify struct {
	URL         project.Secret `key:"url" help:"Web address that each result is posted to, as JSON; empty posts nowhere. It may hold a token and is never shown. It is the same as a sink of kind json."`
	Timeout     time.Duration  `key:"timeout" default:"10s" min:"1" help:"How long one attempt to deliver a notification may take. It never changes a result."`
	Sinks       Sinks          `key:"sinks" help:"Receivers of notifications, a list of mappings (docs/notifications.md); the section may also be that list itself. In the environment and in a flag it is YAML or JSON."`
	Attempts    int            `key:"attempts" default:"15" min:"1" help:"How often delivering a notification is attempted before it is given up; corpus-git notify retry tries again."`
	RetryAfter  time.Duration  `key:"retry_after" default:"5s" min:"1" help:"How long after the first attempt the second follows, about; each further pause is twice as long."`
	RetryMax    time.Duration  `key:"retry_max" default:"6h" min:"1" help:"The longest pause between two attempts."`
	QueuedAfter time.Duration  `key:"queued_after" default:"10m" min:"1" help:"How long a deployment waits for its turn before queued-too-long is told."`
}

// Traces is where traces of deployments are sent.
type Traces struct {
	Endpoint string         `key:"otlp_endpoint" default:"" form:"url" help:"Address of a collector of OpenTelemetry that takes OTLP over HTTP, such as http://127.0.0.1:4318: each deployment is sent to its /v1/traces when it has ended, as a trace with a span for each procedure and step. Empty sends none."`
	Headers  project.Secret `key:"otlp_headers" help:"Headers of each request to it, as NAME=VALUE with commas in between."`
	Timeout  time.Duration  `key:"timeout" default:"10s" min:"1" help:"How long one attempt may take. A trace that the collector does not take is dropped; it never changes a result."`
}

// LDAP is a directory that knows users; see docs/guide/access.md.
type LDAP struct {
	URL           string         `key:"url" default:"" help:"The directory: ldaps://HOST, or ldap://HOST, which is upgraded by StartTLS. Empty turns it off."`
	CAFile        string         `key:"ca_file" default:"" help:"Authorities that vouch for the directory, as PEM; empty means those of the machine."`
	BindDN        string         `key:"bind_dn" default:"" help:"Entry that searches; empty searches anonymously."`
	BindPassword  project.Secret `key:"bind_password" help:"Its password."`
	Base          string         `key:"base" default:"" help:"Entry below which users are."`
	GroupBase     string         `key:"group_base" default:"" help:"Entry below which groups are; empty means ldap.base."`
	UserFilter    string         `key:"user_filter" default:"(uid={user})" help:"Filter that finds a user; {user} is the name, escaped."`
	GroupFilter   string         `key:"group_filter" default:"(|(member={dn})(uniqueMember={dn})(memberUid={user}))" help:"Filter that finds the groups of an entry; {dn} is its DN, {user} the user's name, escaped."`
	NameAttribute string         `key:"name_attribute" default:"uid" help:"Attribute with the user's name."`
	MailAttribute string         `key:"mail_attribute" default:"mail" help:"Attribute with the user's e-mail address."`
	KeyAttribute  string         `key:"key_attribute" default:"sshPublicKey" help:"Attribute with the user's SSH keys, in the form of authorized_keys."`
	Groups        []string       `key:"groups" help:"What groups give, one a line: RIGHT PROJECT DN, PROJECT being * for all. admin * makes administrators."`
	TTL           time.Duration  `key:"ttl" default:"5m" min:"1" help:"How long an answer of the directory counts: who is removed there has no access after that."`
	Grace         time.Duration  `key:"grace" default:"1h" min:"1" help:"How long the last answer counts while the directory gives none."`
	Timeout       time.Duration  `key:"timeout" default:"5s" min:"1" help:"How long one question may take."`
}

// Limits bound what clients may take.
type Limits struct {
	MaxPackBytes   Size  `key:"max_pack_bytes" default:"4GiB" min:"1" help:"The largest pack of a push, in bytes on the wire."`
	MaxObjectBytes Size  `key:"max_object_bytes" default:"2GiB" min:"1" help:"The largest object in a pack, inflated."`
	MaxTotalBytes  Size  `key:"max_total_bytes" default:"1TiB" min:"1" help:"The sum of all objects of a pack, inflated, deltas resolved."`
	MaxDeltaTotal  Size  `key:"max_delta_total" default:"4GiB" min:"1" help:"The sum of the objects that a pack's deltas make, beyond 1,000 bytes for each byte of the pack: it bounds the time that a small pack can ask for."`
	MaxDeltaBytes  Size  `key:"max_delta_bytes" default:"512MiB" min:"1" help:"The largest object that may be stored as a delta, or be the base of one: it is held in memory as a whole."`
	MaxObjects     int64 `key:"max_objects" default:"20000000" min:"1" help:"The most objects in one pack."`
	MaxDeltaDepth  int   `key:"max_delta_depth" default:"4095" min:"1" help:"The longest chain of deltas."`
	BaseMemory     Size  `key:"base_memory" default:"64MiB" min:"1" help:"Memory for bases of deltas while a pack is indexed; what does not fit is made again when needed."`
	DeltaMemory    Size  `key:"max_delta_memory" default:"0" min:"0" restart:"yes" help:"Memory for large objects that all pushes together are making from deltas; a push waits until there is enough. 0 is a quarter of the machine's, or of the cgroup's limit."`
	MaxRatio       int64 `key:"max_inflate_ratio" default:"0" min:"0" help:"The most bytes that one byte on the wire may inflate to, for objects over 1 MiB; 0 sets no bound but deflate's own, 1032."`
	MaxCommands    int   `key:"max_commands" default:"10000" min:"1" help:"The most refs that one push may update."`
	MaxPushOptions int   `key:"max_push_options" default:"64" min:"0" help:"The most push options of one push."`
	MaxOptionBytes int   `key:"max_push_option_bytes" default:"1024" min:"1" help:"The longest push option."`
	MaxRefName     int   `key:"max_ref_name_bytes" default:"1024" min:"16" help:"The longest name of a ref in a push; never more than 2048."`
	MaxShallow     int   `key:"max_shallow_roots" default:"10000" min:"1" help:"The most places where the history of a pushing clone may be cut."`
	MaxFiles       int   `key:"max_files" default:"1048576" min:"1" restart:"yes" help:"The most files and folders of a commit that is deployed."`
	MaxDrain       Size  `key:"max_drain_bytes" default:"256MiB" min:"1" help:"How much of a refused push is still read, so that the client gets to read why."`
	MaxLog         Size  `key:"max_log_bytes" default:"64MiB" min:"0" help:"About the most that the event log of one deployment takes. Of what commands print beyond half of it only the last lines are kept, and the log says what was left out. 0 sets no bound."`
	UnpackLimit    int   `key:"unpack_limit" default:"0" min:"0" help:"The number of objects up to which a push is stored as loose objects, as git's transfer.unpackLimit; 0 keeps every push as a pack, which is faster and keeps its deltas."`
	MaxWants       int   `key:"max_wants" default:"100000" min:"1" help:"The most objects that one fetch may ask for by name."`
	MaxHaves       int   `key:"max_haves" default:"1000000" min:"1" help:"The most objects that the client of one fetch may say it has."`
	MaxRequests    int   `key:"max_fetch_requests" default:"10000" min:"1" help:"The most requests of one connection in protocol version 2."`

	MaxConnections          int           `key:"max_connections" default:"1024" min:"1" help:"The most connections at a time."`
	MaxConnectionsPerSource int           `key:"max_connections_per_source" default:"512" min:"1" help:"The most connections at a time from one IPv4 address or IPv6 /64."`
	MaxUnauthenticated      int           `key:"max_unauthenticated" default:"256" min:"1" help:"The most connections at a time that have not logged in yet. One more takes the place of the oldest one of the source that has most of them."`
	MaxUnauthPerSource      int           `key:"max_unauthenticated_per_source" default:"128" min:"1" help:"The same, from one source."`
	MaxSessions             int           `key:"max_sessions_per_connection" default:"10" min:"1" help:"The most sessions at a time on one connection."`
	AuthTries               int           `key:"auth_tries" default:"6" min:"1" help:"How many keys a client may offer."`
	AuthTimeout             time.Duration `key:"auth_timeout" default:"30s" min:"1" help:"The time to log in."`
	KexTimeout              time.Duration `key:"kex_timeout" default:"10s" min:"1" help:"The part of auth_timeout in which a client must have begun the key exchange."`
	MaxLoginFailures        int           `key:"max_login_failures" default:"30" min:"1" help:"How many connections from one source may fail to log in within login_penalty; more are turned away for as long."`
	LoginPenalty            time.Duration `key:"login_penalty" default:"1m" min:"1" help:"How long failed logins count."`
	KeepaliveInterval       time.Duration `key:"keepalive_interval" default:"15s" min:"1" help:"How often a client is asked whether it is still there."`
	KeepaliveTimeout        time.Duration `key:"keepalive_timeout" default:"1m" min:"1" help:"How long a client may leave that question without an answer."`
	IdleTimeout             time.Duration `key:"idle_timeout" default:"1m" min:"1" help:"How long a connection may last that logged in and opens no session."`
	ReadTimeout             time.Duration `key:"read_timeout" default:"10m" min:"1" help:"How long a session waits for a byte of its input: git says nothing while it compresses objects."`
	WriteTimeout            time.Duration `key:"write_timeout" default:"2m" min:"1" help:"How long one write waits for a client that does not read."`
}

// Retention is which archives stay where a project's own configuration does not say.
func (c *Config) Retention() project.Retention {
	return project.Retention{Keep: c.KeepArchives, KeepFailed: c.KeepFailed, MaxBytes: int64(c.MaxBytes), MaxAge: c.MaxAge, FailedMaxAge: c.FailedMaxAge}
}

// Bounds are the limits on what is recorded of one project.
func (h History) Bounds() project.History {
	return project.History{Deployments: h.Deployments, LogBytes: int64(h.LogBytes), UndoLogs: h.UndoLogs}
}

// Envs are the environments that projects may have.
func (c *Config) Envs() (project.Environments, error) {
	return project.ParseEnvironments(c.Environments, c.DefaultEnv)
}
