package config

import (
	"time"

	"corpus-git/project"
)

// Size is a number of bytes, written as 512MiB, 2GiB or a plain number.
type Size int64

// Config is the configuration of a server. The tags say: key (the name in the file; the variable and the flag follow from
// it), default, help (the text of the documentation), oneof (the allowed words), min (the minimum), form (addr for
// host:port), restart (a change takes effect only after a restart).
type Config struct {
	Root        string   `key:"root" restart:"yes" help:"Directory that holds projects/, salt/ and pillar/. The default is /srv for root, ./srv for others."`
	StateDir    string   `key:"state_dir" restart:"yes" help:"Directory of the database, host key, journals, event logs and control socket. The default is .corpus-git under root."`
	Listen      string   `key:"listen" default:":2222" form:"addr" restart:"yes" help:"Address of the SSH server."`
	NATS        string   `key:"nats_url" default:"" restart:"yes" help:"Address of the NATS server for agents of nodes, tls://HOST:PORT, whose keys and configuration corpus-git nats init has generated; of several that form a cluster, separated by commas, the first that responds is used. Tokens of node token then contain it, and agents that join with them connect to it instead of the SSH server. Empty: no NATS."`
	HTTP        string   `key:"http_listen" default:"" form:"addr" restart:"yes" help:"Address of the web pages, API and metrics; empty turns them off. Browsers log in with the link of corpus-git web login, programs send an API token (corpus-git token create)."`
	HTTPCert    string   `key:"http_tls_cert" default:"" help:"File with the TLS certificate of http_listen in PEM, including intermediate certificates. With http_tls_key the pages and the API use https. SIGHUP reads it again." restart:"yes"`
	HTTPKey     string   `key:"http_tls_key" default:"" help:"File with the private key of http_tls_cert, in PEM." restart:"yes"`
	ACME        ACME     `key:"acme"`
	HTTPURL     string   `key:"http_url" default:"" form:"url" help:"URL of the web pages for clients, such as https://deploy.example.org of a reverse proxy; used in links and in addresses of signals. Empty: http_listen."`
	HTTPProxies []string `key:"http_trusted_proxies" restart:"yes" help:"Addresses and networks (127.0.0.1, 10.0.0.0/8) of reverse proxies in front of http_listen. The client's address (for limits, sessions and the audit log) and the use of https are taken from http_forwarded_header only in requests from these."`
	HTTPHeader  string   `key:"http_forwarded_header" default:"x-forwarded-for" oneof:"x-forwarded-for,forwarded" restart:"yes" help:"The header set by the proxies: X-Forwarded-For with X-Forwarded-Proto, or Forwarded (RFC 7239). The other one is ignored, as a proxy may pass it on from the client."`
	HTTPRate    int      `key:"http_rate" default:"50" help:"How many API requests per second a token or session may send on average, with bursts of five times as many. 0 means no limit." restart:"yes"`
	OpenMetrics bool     `key:"http_open_metrics" default:"false" restart:"yes" help:"Whether /metrics can be read without logging in."`
	Public      string   `key:"public_address" default:"" help:"Host, or host:port, at which clients reach the SSH server; used in printed remotes. Empty means the machine's own name and the port of listen."`
	AdminKeys   []string `key:"admin_keys" help:"Public keys of administrators, in the format of authorized_keys, in addition to those in the database."`
	CAKeys      []string `key:"ssh_ca_keys" help:"Public keys, in the format of authorized_keys, of certificate authorities whose SSH certificates are accepted for the users they name."`
	RevokedKeys string   `key:"ssh_revoked_keys" default:"" help:"File of revoked keys and certificates: public keys, one per line, or a KRL of ssh-keygen -k. It is read again when it changes. If it cannot be read, no key can log in."`
	Shell       bool     `key:"ssh_shell" default:"false" help:"Whether users with the permission shell on a project may open a terminal over SSH as the project's user, with corpus-git enter."`
	LDAP        LDAP     `key:"ldap"`

	Runner    string   `key:"runner" default:"auto" oneof:"auto,builtin,salt-call" help:"What runs SLS files: the built-in runner, salt-call, or (auto) the built-in runner for files that it supports and salt-call for others."`
	SaltCall  string   `key:"salt_call" default:"salt-call" help:"The salt-call program: a path, or a name to look up in PATH."`
	FileRoots []string `key:"file_roots" restart:"yes" help:"Additional directories for salt:// paths, after those of root."`

	CfgDir string `key:"cfg_dir" default:"/etc/corpus-git/cfg.d" restart:"yes" help:"Directory with configuration of projects by the machine's image: files *.yaml owned by root, which PILLAR.sample overrides (docs/cfg.md). Empty reads none."`

	Accounts string `key:"accounts" default:"auto" oneof:"auto,off" restart:"yes" help:"Whether each project gets a system user and group that own its files. auto: if the server runs as root; off: never."`

	DefaultEnv   string   `key:"default_env" default:"prod" help:"The environment of a project that does not set one: dev, staging, prod, or a name of environments."`
	Environments []string `key:"environments" help:"Additional environments, each as name=class: preprod=staging, qa=dev. A class is dev (failed trees stay in place, edits on the machine are kept), staging or prod (both roll back)."`

	KeepArchives int           `key:"keep_archives" default:"3" min:"1" help:"How many archives of a project are kept by default."`
	KeepFailed   int           `key:"keep_failed_archives" default:"1" min:"0" help:"How many archives of failed deployments are kept, each with the failed tree."`
	MaxBytes     Size          `key:"archives_max_bytes" default:"0" min:"0" help:"Disk space for all archives of a project; 0 means no limit. Failed ones are removed first, then the oldest; pinned ones and the newest successful one are kept."`
	MaxAge       time.Duration `key:"archives_max_age" default:"0s" min:"0" help:"Archives of successful deployments that are older are removed; 0s means no limit. Pinned ones and the newest two are kept."`
	FailedMaxAge time.Duration `key:"failed_archives_max_age" default:"7d" min:"0" help:"Archives of failed deployments that are older are removed; 0s means no limit."`
	DiskReserve  Size          `key:"disk_reserve" default:"512MiB" min:"0" restart:"yes" help:"Disk space that a deployment must leave free; otherwise the push is refused."`
	DiskPercent  int           `key:"disk_reserve_percent" default:"5" min:"0" restart:"yes" help:"The same as a percentage of the disk; the larger of both applies."`
	Deadline     time.Duration `key:"deadline" default:"5h" min:"1" restart:"yes" help:"The maximum duration of a deployment; after that it is cancelled and rolled back."`
	Grace        time.Duration `key:"shutdown_grace" default:"5m" min:"0" help:"How long a stopping server waits for running deployments before it cancels them."`
	Progress     time.Duration `key:"progress_interval" default:"30s" min:"1" help:"How long the output of a followed deployment may be silent before the running step and its last line of output are shown."`

	CreateOnPush       bool `key:"create_on_push" default:"false" help:"Whether an administrator's first push to a new, valid name creates the project."`
	StoreOtherBranches bool `key:"store_other_branches" default:"false" help:"Whether pushes of branches other than the deployed one are stored without deploying; otherwise they are refused."`

	Require     Require     `key:"require"`
	Submodules  Submodules  `key:"submodules"`
	Maintenance Maintenance `key:"maintenance"`
	History     History     `key:"history"`
	Converge    Converge    `key:"converge"`

	Log    Log    `key:"log"`
	Notify Notify `key:"notify"`
	Traces Traces `key:"traces"`
	Limits Limits `key:"limits"`

	// Warnings report what is odd but not an error: variables that look like ours and are not.
	Warnings []string

	origins map[string]Origin
}

// ACME says which certificates to request from an authority, instead of http_tls_cert.
type ACME struct {
	Hosts  []string `key:"hosts" restart:"yes" help:"Host names for which TLS certificates of http_listen are requested by ACME; setting them means agreeing to the authority's terms. The authority must be able to reach this machine under these names on port 443 (http_listen, or forwarded to it) or on port 80 (acme.http_listen). Empty turns ACME off."`
	Email  string   `key:"email" default:"" restart:"yes" help:"Contact e-mail address for the authority; optional."`
	CA     string   `key:"ca" default:"https://acme-v02.api.letsencrypt.org/directory" form:"https" restart:"yes" help:"Directory URL of the authority (RFC 8555)."`
	CAFile string   `key:"ca_file" default:"" restart:"yes" help:"CA certificates for the connection to the authority, in PEM; empty means those of the system."`
	HTTP   string   `key:"http_listen" default:"" form:"addr" restart:"yes" help:"Address for http-01 challenges, which redirects other requests to https, such as :80; if empty, only tls-alpn-01 on http_listen is used."`
}

// Maintenance keeps repositories fast and small, in the background, never during a deployment of their project.
type Maintenance struct {
	Enabled  bool          `key:"enabled" default:"true" help:"Whether the server maintains repositories automatically; corpus-git gc does it on request."`
	MaxPacks int           `key:"max_packs" default:"20" min:"1" help:"The maximum number of packs of a repository; when exceeded, small packs are consolidated. Each push adds one."`
	MaxLoose int           `key:"max_loose" default:"2000" min:"0" help:"The maximum number of loose objects of a repository; when exceeded, they are packed."`
	MaxRefs  int           `key:"max_loose_refs" default:"500" min:"0" help:"The maximum number of loose refs; when exceeded, refs are packed together with packs."`
	Grace    time.Duration `key:"prune_after" default:"336h" min:"0" help:"The minimum age of unreachable objects before they are removed; 0 removes none."`
	Every    time.Duration `key:"prune_interval" default:"168h" min:"1" help:"How often a repository is searched for unreachable objects, which walks all of its history."`
	Quiet    time.Duration `key:"quiet" default:"1m" min:"0" help:"How long after the end of a deployment its repositories are maintained at the earliest."`
	Rate     Size          `key:"rate" default:"32MiB" min:"1024" help:"The maximum write rate of maintenance, in bytes per second. It also waits while deployments run."`
}

// History limits what is recorded. The server enforces these limits once an hour.
type History struct {
	Deployments int           `key:"max_deployments" default:"10000" min:"0" help:"How many deployments of a project are kept; older ones are removed with their logs. The newest ten, the live one, and those with an archive are kept. 0 means no limit."`
	LogBytes    Size          `key:"max_log_bytes" default:"1GiB" min:"0" help:"Disk space for the logs of all deployments of a project; the oldest logs are removed, but their deployments are still listed. 0 means no limit."`
	UndoLogs    int           `key:"max_undo_logs" default:"100" min:"0" help:"How many undo logs of successful deployments of a project are kept; a rollback over older ones reports that they are missing. 0 means no limit."`
	AuditAge    time.Duration `key:"audit_max_age" default:"0s" min:"0" help:"Audit entries that are older are removed; 0s keeps all."`
	NotifyAge   time.Duration `key:"notifications_max_age" default:"30d" min:"0" help:"Notifications that were delivered or failed longer ago are removed; 0s keeps all."`
	NotifyMax   int           `key:"max_notifications" default:"100000" min:"0" help:"How many deliveries are kept; beyond that the oldest are removed: first delivered ones, then failed, then pending ones. 0 means no limit."`
}

// Converge says when live releases are applied again if a project's own configuration does not.
type Converge struct {
	Boot   bool          `key:"boot" default:"false" help:"Whether the live release of each project is applied again after a boot of the machine."`
	Every  time.Duration `key:"every" default:"0s" min:"0" help:"How often the live release is applied again while the server runs; 0s means never."`
	Splay  time.Duration `key:"splay" default:"10m" min:"0" help:"The time over which the runs of projects are spread; each project has a fixed delay."`
	Mode   string        `key:"mode" default:"enforce" oneof:"enforce,report" help:"Whether a run fixes differences (enforce) or only reports them (report)."`
	AtOnce int           `key:"at_once" default:"2" min:"1" help:"How many projects converge at the same time."`
}

// Policy returns the policy of projects that set none themselves.
func (c Converge) Policy() project.ConvergePolicy {
	return project.ConvergePolicy{Boot: c.Boot, Every: c.Every, Splay: c.Splay, Mode: project.ConvergeMode(c.Mode)}
}

// Submodules says how submodules of what is pushed are fetched.
type Submodules struct {
	Hosts   []string      `key:"hosts" help:"Hosts that submodules, and recipes given by a URL, may be fetched from, such as github.com or *.example.org; empty, and an entry *, allow all. Addresses of the server itself and of its link (127.0.0.1, 169.254.169.254) are fetched from only if the host has an entry of its own. Projects of this server need no entry."`
	Mirrors []string      `key:"mirrors" help:"Mirrors that are tried first: entries FROM=TO, such as https://github.com/=http://mirror.example.org:8417/git/. The entry with the longest FROM that is a prefix of the submodule's URL applies. If the mirror lacks the commit, the original URL is used."`
	Timeout time.Duration `key:"timeout" default:"10m" min:"1" help:"The timeout for fetching a submodule; after that the push is refused."`
}

// Log configures what the server logs about itself.
type Log struct {
	Level  string `key:"level" default:"info" oneof:"debug,info,warn,error" help:"The minimum level of logged messages."`
	Format string `key:"format" default:"text" oneof:"text,json" help:"The format of messages on standard error; the log file is always JSON."`
}

// Notify says who is notified of what.
type Notify struct {
	URL         project.Secret `key:"url" help:"URL to which each result is posted as JSON, like a sink of kind json. It may contain a token and is never shown."`
	Timeout     time.Duration  `key:"timeout" default:"10s" min:"1" help:"The timeout of an attempt to deliver a notification."`
	Sinks       Sinks          `key:"sinks" help:"Receivers of notifications, a list of mappings (docs/notifications.md); the section may also be that list itself. In the environment and in a flag it is YAML or JSON."`
	Attempts    int            `key:"attempts" default:"15" min:"1" help:"How often delivering a notification is attempted; after that corpus-git notify retry can retry it."`
	RetryAfter  time.Duration  `key:"retry_after" default:"5s" min:"1" help:"The delay between the first and the second attempt, approximately; it doubles after each attempt."`
	RetryMax    time.Duration  `key:"retry_max" default:"6h" min:"1" help:"The maximum delay between two attempts."`
	QueuedAfter time.Duration  `key:"queued_after" default:"10m" min:"1" help:"How long a deployment waits in the queue before queued-too-long is sent."`
}

// Traces says where traces of deployments are sent.
type Traces struct {
	Endpoint string         `key:"otlp_endpoint" default:"" form:"url" help:"Address of a collector of OpenTelemetry that takes OTLP over HTTP, such as http://127.0.0.1:4318: each deployment is sent to its /v1/traces when it has ended, as a trace with a span for each procedure and step. Empty sends none."`
	Headers  project.Secret `key:"otlp_headers" help:"Headers of each request to it, as NAME=VALUE with commas in between."`
	Timeout  time.Duration  `key:"timeout" default:"10s" min:"1" help:"How long one attempt may take. A trace that the collector does not take is dropped; it never changes a result."`
}

// LDAP is a directory of users; see docs/guide/access.md.
type LDAP struct {
	URL           string         `key:"url" default:"" help:"URL of the LDAP server: ldaps://HOST, or ldap://HOST, which is upgraded with StartTLS. Empty turns it off."`
	CAFile        string         `key:"ca_file" default:"" help:"CA certificates for the LDAP server, in PEM; empty means those of the system."`
	BindDN        string         `key:"bind_dn" default:"" help:"DN to bind as for searches; empty searches anonymously."`
	BindPassword  project.Secret `key:"bind_password" help:"Its password."`
	Base          string         `key:"base" default:"" help:"Base DN of users."`
	GroupBase     string         `key:"group_base" default:"" help:"Base DN of groups; empty means ldap.base."`
	UserFilter    string         `key:"user_filter" default:"(uid={user})" help:"Filter that finds a user; {user} is the name, escaped."`
	GroupFilter   string         `key:"group_filter" default:"(|(member={dn})(uniqueMember={dn})(memberUid={user}))" help:"Filter that finds the groups of an entry; {dn} is its DN, {user} the user's name, escaped."`
	NameAttribute string         `key:"name_attribute" default:"uid" help:"Attribute with the user's name."`
	MailAttribute string         `key:"mail_attribute" default:"mail" help:"Attribute with the user's e-mail address."`
	KeyAttribute  string         `key:"key_attribute" default:"sshPublicKey" help:"Attribute with the user's SSH keys, in the format of authorized_keys."`
	Groups        []string       `key:"groups" help:"Permissions of groups: entries RIGHT PROJECT DN, where PROJECT can be * for all. admin * makes administrators."`
	TTL           time.Duration  `key:"ttl" default:"5m" min:"1" help:"How long responses of the directory are cached; users removed there lose access after that."`
	Grace         time.Duration  `key:"grace" default:"1h" min:"1" help:"How long cached responses are used while the directory does not respond."`
	Timeout       time.Duration  `key:"timeout" default:"5s" min:"1" help:"The timeout of a request."`
}

// Limits limit what clients may use.
type Limits struct {
	MaxPackBytes   Size  `key:"max_pack_bytes" default:"4GiB" min:"1" help:"The maximum size of a pushed pack."`
	MaxObjectBytes Size  `key:"max_object_bytes" default:"2GiB" min:"1" help:"The maximum size of an object in a pack, inflated."`
	MaxTotalBytes  Size  `key:"max_total_bytes" default:"1TiB" min:"1" help:"The maximum total size of all objects in a pack, inflated, with deltas resolved."`
	MaxDeltaTotal  Size  `key:"max_delta_total" default:"4GiB" min:"1" help:"The maximum total size of objects that result from deltas, beyond 1,000 bytes per byte of the pack. This limits the processing time of a small pack."`
	MaxDeltaBytes  Size  `key:"max_delta_bytes" default:"512MiB" min:"1" help:"The maximum size of an object that is stored as a delta or is the base of one, as it is held in memory."`
	MaxObjects     int64 `key:"max_objects" default:"20000000" min:"1" help:"The maximum number of objects in a pack."`
	MaxDeltaDepth  int   `key:"max_delta_depth" default:"4095" min:"1" help:"The maximum length of a delta chain."`
	BaseMemory     Size  `key:"base_memory" default:"64MiB" min:"1" help:"Memory for delta bases while a pack is indexed; others are recomputed when needed."`
	DeltaMemory    Size  `key:"max_delta_memory" default:"0" min:"0" restart:"yes" help:"Memory for resolving deltas of large objects in all pushes together; a push waits until there is enough. 0 means a quarter of the machine's memory or of the cgroup's limit."`
	MaxRatio       int64 `key:"max_inflate_ratio" default:"0" min:"0" help:"The maximum compression ratio of objects over 1 MiB; 0 means no limit other than that of deflate, 1032."`
	MaxCommands    int   `key:"max_commands" default:"10000" min:"1" help:"The maximum number of refs in a push."`
	MaxPushOptions int   `key:"max_push_options" default:"64" min:"0" help:"The maximum number of push options."`
	MaxOptionBytes int   `key:"max_push_option_bytes" default:"1024" min:"1" help:"The maximum length of a push option."`
	MaxRefName     int   `key:"max_ref_name_bytes" default:"1024" min:"16" help:"The maximum length of a ref name in a push; at most 2048."`
	MaxShallow     int   `key:"max_shallow_roots" default:"10000" min:"1" help:"The maximum number of shallow roots of a pushing clone."`
	MaxFiles       int   `key:"max_files" default:"1048576" min:"1" restart:"yes" help:"The maximum number of files and directories in a deployed commit."`
	MaxDrain       Size  `key:"max_drain_bytes" default:"256MiB" min:"1" help:"How much of a refused push is still read, so that the client receives the error message."`
	MaxLog         Size  `key:"max_log_bytes" default:"64MiB" min:"0" help:"The approximate maximum size of the event log of a deployment. When half of it is used, only the last lines of commands' output are kept, and the log says what was omitted. 0 means no limit."`
	UnpackLimit    int   `key:"unpack_limit" default:"0" min:"0" help:"The number of objects up to which a push is unpacked into loose objects, like git's transfer.unpackLimit; 0 stores every push as a pack, which is faster and keeps deltas."`
	MaxWants       int   `key:"max_wants" default:"100000" min:"1" help:"The maximum number of wants in a fetch."`
	MaxHaves       int   `key:"max_haves" default:"1000000" min:"1" help:"The maximum number of haves in a fetch."`
	MaxRequests    int   `key:"max_fetch_requests" default:"10000" min:"1" help:"The maximum number of protocol version 2 requests per connection."`

	MaxConnections          int           `key:"max_connections" default:"1024" min:"1" help:"The maximum number of connections."`
	MaxConnectionsPerSource int           `key:"max_connections_per_source" default:"512" min:"1" help:"The maximum number of connections from one IPv4 address or IPv6 /64."`
	MaxUnauthenticated      int           `key:"max_unauthenticated" default:"256" min:"1" help:"The maximum number of connections that have not logged in. When exceeded, the oldest one of the source with the most such connections is closed."`
	MaxUnauthPerSource      int           `key:"max_unauthenticated_per_source" default:"128" min:"1" help:"The same for one source."`
	MaxSessions             int           `key:"max_sessions_per_connection" default:"10" min:"1" help:"The maximum number of sessions on one connection."`
	AuthTries               int           `key:"auth_tries" default:"6" min:"1" help:"How many keys a client may offer."`
	AuthTimeout             time.Duration `key:"auth_timeout" default:"30s" min:"1" help:"The timeout for logging in."`
	KexTimeout              time.Duration `key:"kex_timeout" default:"10s" min:"1" help:"The part of auth_timeout within which a client must have started the key exchange."`
	MaxLoginFailures        int           `key:"max_login_failures" default:"30" min:"1" help:"How many connections from one source may fail to log in within login_penalty; after that, connections from it are refused for the same time."`
	LoginPenalty            time.Duration `key:"login_penalty" default:"1m" min:"1" help:"How long failed logins count."`
	KeepaliveInterval       time.Duration `key:"keepalive_interval" default:"15s" min:"1" help:"The interval of keepalive requests."`
	KeepaliveTimeout        time.Duration `key:"keepalive_timeout" default:"1m" min:"1" help:"How long a client may take to respond to a keepalive request."`
	IdleTimeout             time.Duration `key:"idle_timeout" default:"1m" min:"1" help:"How long an authenticated connection without a session is kept open."`
	ReadTimeout             time.Duration `key:"read_timeout" default:"10m" min:"1" help:"How long a session waits for input; git sends nothing while it compresses objects."`
	WriteTimeout            time.Duration `key:"write_timeout" default:"2m" min:"1" help:"The timeout of a write to a client that does not read."`
}

// Retention returns which archives are kept if a project's own configuration does not say.
func (c *Config) Retention() project.Retention {
	return project.Retention{Keep: c.KeepArchives, KeepFailed: c.KeepFailed, MaxBytes: int64(c.MaxBytes), MaxAge: c.MaxAge, FailedMaxAge: c.FailedMaxAge}
}

// Bounds returns the limits on the records of one project.
func (h History) Bounds() project.History {
	return project.History{Deployments: h.Deployments, LogBytes: int64(h.LogBytes), UndoLogs: h.UndoLogs}
}

// Envs returns the environments that projects may have.
func (c *Config) Envs() (project.Environments, error) {
	return project.ParseEnvironments(c.Environments, c.DefaultEnv)
}
