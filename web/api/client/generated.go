// Code generated from the OpenAPI document by web/api/generate. DO NOT EDIT.

package client

import (
	"context"
	"net/url"
	"time"
)

// ActBody is a schema of the document.
type ActBody struct {
	// Units: Absent: all
	Units []string `json:"units,omitzero"`
}

// AddKeyBody is a schema of the document.
type AddKeyBody struct {
	// Admin: The new user may do everything
	Admin *bool `json:"admin,omitzero"`
	// Expires: How long it lasts, such as 12h or 90d; absent: for ever
	Expires *string `json:"expires,omitzero"`
	// Key: The public key, as in a .pub file
	Key  string `json:"key"`
	Name string `json:"name"`
	// User: Whose it is; absent: that of a new user of the key's name
	User *string `json:"user,omitzero"`
}

// AddUserBody is a schema of the document.
type AddUserBody struct {
	// Admin: May do everything, on all projects
	Admin *bool   `json:"admin,omitzero"`
	Email *string `json:"email,omitzero"`
	// Kind: Absent: person
	Kind *string `json:"kind,omitzero"`
	Name string  `json:"name"`
}

// Approval is a schema of the document.
type Approval struct {
	BreakGlass  string   `json:"break_glass,omitzero"`
	By          []string `json:"by"`
	Plan        string   `json:"plan"`
	Request     string   `json:"request"`
	RequestedBy string   `json:"requested_by"`
}

// ApproveBody is a schema of the document.
type ApproveBody struct {
	// BreakGlass: Deploy it without others: takes the permission admin, and a reason
	BreakGlass *bool `json:"break_glass,omitzero"`
	// Reason: Why, for the audit log and who is told
	Reason *string `json:"reason,omitzero"`
}

// Archive is a schema of the document.
type Archive struct {
	At          time.Time `json:"at"`
	Bytes       int64     `json:"bytes"`
	Code        string    `json:"code,omitzero"`
	Disk        int64     `json:"disk"`
	Estimated   bool      `json:"estimated"`
	FailedTree  bool      `json:"failed_tree"`
	Files       int64     `json:"files"`
	ID          string    `json:"id"`
	Incremental bool      `json:"incremental,omitzero"`
	Name        string    `json:"name"`
	Own         int64     `json:"own"`
	Packed      bool      `json:"packed"`
	Pillar      string    `json:"pillar,omitzero"`
	Pinned      bool      `json:"pinned"`
	Pusher      string    `json:"pusher,omitzero"`
	Shared      int64     `json:"shared"`
	SharedFile  string    `json:"shared_file,omitzero"`
	Tree        bool      `json:"tree"`
	Verdict     string    `json:"verdict,omitzero"`
}

// ArchiveDocument is a schema of the document.
type ArchiveDocument struct {
	Archive Archive `json:"archive"`
	Project string  `json:"project"`
	Version int64   `json:"version"`
}

// Archives is a schema of the document.
type Archives struct {
	Archives []Archive `json:"archives"`
	Keeping  *Keeping  `json:"keeping,omitzero"`
	Project  string    `json:"project"`
	Version  int64     `json:"version"`
}

// Audit is a schema of the document.
type Audit struct {
	Entries []AuditEntry `json:"entries"`
	Version int64        `json:"version"`
}

// AuditEntry is a schema of the document.
type AuditEntry struct {
	Action      string    `json:"action"`
	Actor       string    `json:"actor"`
	Deployment  string    `json:"deployment,omitzero"`
	Detail      string    `json:"detail,omitzero"`
	Fingerprint string    `json:"fingerprint,omitzero"`
	From        string    `json:"from"`
	Object      string    `json:"object,omitzero"`
	Outcome     string    `json:"outcome"`
	Project     string    `json:"project,omitzero"`
	Seq         int64     `json:"seq"`
	Time        time.Time `json:"time"`
}

// Build is a schema of the document.
type Build struct {
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Release  string `json:"release"`
	Revision string `json:"revision,omitzero"`
	Version  int64  `json:"version"`
}

// Case is a schema of the document.
type Case struct {
	Class   string `json:"class,omitzero"`
	Message string `json:"message,omitzero"`
	Name    string `json:"name"`
}

// Certificate is a schema of the document.
type Certificate struct {
	Ca        string    `json:"ca"`
	Expires   time.Time `json:"expires,omitzero"`
	KeyID     string    `json:"key_id"`
	LastUsed  time.Time `json:"last_used"`
	Principal string    `json:"principal"`
	Serial    int64     `json:"serial"`
}

// Cfg is a schema of the document.
type Cfg struct {
	Cfg     any               `json:"cfg"`
	Origins map[string]string `json:"origins"`
	Path    string            `json:"path,omitzero"`
	Project string            `json:"project"`
	Version int64             `json:"version"`
}

// Change is a schema of the document.
type Change struct {
	New string `json:"new,omitzero"`
	Old string `json:"old,omitzero"`
	Ref string `json:"ref"`
}

// CheckPeriod is a schema of the document.
type CheckPeriod struct {
	Answer []string  `json:"answer,omitzero"`
	Check  string    `json:"check"`
	Code   string    `json:"code,omitzero"`
	Good   bool      `json:"good"`
	Last   time.Time `json:"last"`
	Reason string    `json:"reason,omitzero"`
	Runs   int64     `json:"runs"`
	Since  time.Time `json:"since"`
	TookNs int64     `json:"took_ns"`
}

// CheckState is a schema of the document.
type CheckState struct {
	EveryNs int64        `json:"every_ns"`
	Kind    string       `json:"kind"`
	Name    string       `json:"name"`
	Now     *CheckPeriod `json:"now,omitzero"`
}

// Checks is a schema of the document.
type Checks struct {
	Checks  []CheckState  `json:"checks"`
	History []CheckPeriod `json:"history"`
	Project string        `json:"project"`
	Version int64         `json:"version"`
}

// Config is a schema of the document.
type Config struct {
	File    string `json:"file"`
	Group   string `json:"group"`
	ID      string `json:"id"`
	Inputs  string `json:"inputs,omitzero"`
	Options string `json:"options,omitzero"`
	Outputs string `json:"outputs,omitzero"`
	Source  string `json:"source"`
}

// Configs is a schema of the document.
type Configs struct {
	Config      *Config      `json:"config,omitzero"`
	Deployments []Deployment `json:"deployments"`
	Version     int64        `json:"version"`
}

// ConvergeBody is a schema of the document.
type ConvergeBody struct {
	// Report: Tell what would change, and change nothing
	Report *bool `json:"report,omitzero"`
}

// ConvergeRun is a schema of the document.
type ConvergeRun struct {
	Mode     string `json:"mode,omitzero"`
	Occasion string `json:"occasion,omitzero"`
}

// ConvergeState is a schema of the document.
type ConvergeState struct {
	Boot       bool      `json:"boot,omitzero"`
	Changed    int64     `json:"changed,omitzero"`
	Code       string    `json:"code,omitzero"`
	Deployment string    `json:"deployment,omitzero"`
	Drift      []string  `json:"drift,omitzero"`
	EveryNs    int64     `json:"every_ns,omitzero"`
	Failed     int64     `json:"failed"`
	Last       time.Time `json:"last,omitzero"`
	Mode       string    `json:"mode"`
	Reason     string    `json:"reason,omitzero"`
	Runs       int64     `json:"runs"`
	Since      time.Time `json:"since,omitzero"`
	Skipped    int64     `json:"skipped"`
	SplayNs    int64     `json:"splay_ns,omitzero"`
	State      string    `json:"state,omitzero"`
}

// CreateProjectBody is a schema of the document.
type CreateProjectBody struct {
	// Env: The environment; absent: the project's own configuration decides
	Env  *string `json:"env,omitzero"`
	Name string  `json:"name"`
	// RemoteLess: No repositories: deployed by hand from the working copy
	RemoteLess *bool `json:"remote_less,omitzero"`
}

// CreateTokenBody is a schema of the document.
type CreateTokenBody struct {
	// Expires: How long it lasts, such as 12h; absent: 90d
	Expires *string `json:"expires,omitzero"`
	Name    string  `json:"name"`
	// Projects: It is for these only
	Projects []string `json:"projects,omitzero"`
	// ReadOnly: It changes nothing
	ReadOnly *bool `json:"read_only,omitzero"`
	// Rights: It may do this only: read, deploy, configure, shell, approve, admin
	Rights []string `json:"rights,omitzero"`
	// User: Whose it is; absent: your own
	User *string `json:"user,omitzero"`
}

// Day is a schema of the document.
type Day struct {
	Day    time.Time `json:"day"`
	Failed int64     `json:"failed"`
	Live   int64     `json:"live"`
}

// Decision is a schema of the document.
type Decision struct {
	Approval   Request `json:"approval"`
	Deployment string  `json:"deployment,omitzero"`
	Version    int64   `json:"version"`
}

// Delivery is a schema of the document.
type Delivery struct {
	At       time.Time `json:"at"`
	Attempts int64     `json:"attempts"`
	Error    string    `json:"error,omitzero"`
	Event    string    `json:"event"`
	ID       string    `json:"id"`
	Last     time.Time `json:"last,omitzero"`
	Next     time.Time `json:"next,omitzero"`
	Project  string    `json:"project,omitzero"`
	Sink     string    `json:"sink"`
	// State: waiting, delivered or given up
	State string `json:"state"`
}

// DeployBody is a schema of the document.
type DeployBody struct {
	// Force: In dev: overwrite files that were changed by hand
	Force *bool `json:"force,omitzero"`
	// Only: Only these procedures
	Only []string `json:"only,omitzero"`
	// OnlySteps: Only these steps of install
	OnlySteps []string `json:"only_steps,omitzero"`
	// Resume: Go on at the step at which this deployment failed and stayed in place; last is the last one
	Resume *string `json:"resume,omitzero"`
	// Set: Stands in the configuration above the pillar, for this run only; values are YAML
	Set map[string]string `json:"set,omitzero"`
	// Skip: All procedures but these
	Skip []string `json:"skip,omitzero"`
}

// Deployment is a schema of the document.
type Deployment struct {
	Action     string    `json:"action"`
	Began      time.Time `json:"began,omitzero"`
	Config     string    `json:"config"`
	Deployment string    `json:"deployment"`
	Ended      time.Time `json:"ended,omitzero"`
	Group      string    `json:"group"`
	Inputs     any       `json:"inputs,omitzero"`
	Outputs    any       `json:"outputs,omitzero"`
	Project    string    `json:"project"`
	Reason     string    `json:"reason,omitzero"`
	Server     string    `json:"server"`
	State      string    `json:"state"`
	Step       string    `json:"step"`
}

// DeploymentDocument is a schema of the document.
type DeploymentDocument struct {
	Deployment Record `json:"deployment"`
	Version    int64  `json:"version"`
}

// Deployments is a schema of the document.
type Deployments struct {
	Deployments []Record `json:"deployments"`
	Project     string   `json:"project"`
	Version     int64    `json:"version"`
}

// Diagnosis is a schema of the document.
type Diagnosis struct {
	Hint   string `json:"hint,omitzero"`
	Name   string `json:"name"`
	Status string `json:"status"`
	Text   string `json:"text"`
}

// Disk is a schema of the document.
type Disk struct {
	Archives   int64  `json:"archives"`
	Data       int64  `json:"data"`
	Free       int64  `json:"free"`
	Git        int64  `json:"git"`
	Incomplete string `json:"incomplete,omitzero"`
	Live       int64  `json:"live"`
}

// Doctor is a schema of the document.
type Doctor struct {
	Checks  []Diagnosis `json:"checks"`
	Version int64       `json:"version"`
}

// Document is a schema of the document.
type Document struct {
	Approvals []Request `json:"approvals"`
	Version   int64     `json:"version"`
}

// ErrorDetail is a schema of the document.
type ErrorDetail struct {
	// Location: Where the error occurred, e.g. 'body.items[3].tags' or 'path.thing-id'
	Location string `json:"location,omitzero"`
	// Message: Error message text
	Message string `json:"message,omitzero"`
	// Value: The value at the given location
	Value any `json:"value,omitzero"`
}

// ErrorModel is a schema of the document.
type ErrorModel struct {
	// Detail: A human-readable explanation specific to this occurrence of the problem.
	Detail string `json:"detail,omitzero"`
	// Errors: Optional list of individual error details
	Errors []ErrorDetail `json:"errors,omitzero"`
	// Instance: A URI reference that identifies the specific occurrence of the problem.
	Instance string `json:"instance,omitzero"`
	// Status: HTTP status code
	Status int64 `json:"status,omitzero"`
	// Title: A short, human-readable summary of the problem type. This value should not change between occurrences of the error.
	Title string `json:"title,omitzero"`
	// Type: A URI reference to human-readable documentation for the error.
	Type string `json:"type,omitzero"`
}

// Estimate is a schema of the document.
type Estimate struct {
	MedianNs int64 `json:"median_ns"`
	P90Ns    int64 `json:"p90_ns"`
	Runs     int64 `json:"runs"`
}

// Event is a schema of the document.
type Event struct {
	Changed    int64     `json:"changed,omitzero"`
	DurationNs int64     `json:"duration_ns,omitzero"`
	Function   string    `json:"function,omitzero"`
	Kind       string    `json:"kind"`
	Lines      []string  `json:"lines,omitzero"`
	N          int64     `json:"n,omitzero"`
	Of         int64     `json:"of,omitzero"`
	Procedure  string    `json:"procedure,omitzero"`
	Seq        int64     `json:"seq"`
	State      string    `json:"state,omitzero"`
	Status     string    `json:"status,omitzero"`
	Step       string    `json:"step,omitzero"`
	Stream     string    `json:"stream,omitzero"`
	Text       string    `json:"text,omitzero"`
	Time       time.Time `json:"time"`
	Version    int64     `json:"version"`
}

// Facts is a schema of the document.
type Facts struct {
	AllowEmpty   bool              `json:"allow_empty,omitzero"`
	AllowMissing bool              `json:"allow_missing,omitzero"`
	Approval     *Approval         `json:"approval,omitzero"`
	At           time.Time         `json:"at"`
	Branches     map[string]string `json:"branches,omitzero"`
	Bundle       string            `json:"bundle,omitzero"`
	Change       *Change           `json:"change,omitzero"`
	Code         string            `json:"code,omitzero"`
	Converge     *ConvergeRun      `json:"converge,omitzero"`
	Environment  string            `json:"environment,omitzero"`
	Exports      any               `json:"exports,omitzero"`
	Forced       bool              `json:"forced,omitzero"`
	Hold         bool              `json:"hold,omitzero"`
	ID           string            `json:"id"`
	Job          string            `json:"job,omitzero"`
	Leader       int64             `json:"leader,omitzero"`
	LiveCode     string            `json:"live_code,omitzero"`
	LivePillar   string            `json:"live_pillar,omitzero"`
	Nodes        []string          `json:"nodes,omitzero"`
	Overwrite    bool              `json:"overwrite,omitzero"`
	Pillar       string            `json:"pillar,omitzero"`
	Project      string            `json:"project"`
	Promoted     *Promotion        `json:"promoted,omitzero"`
	Pusher       Pusher            `json:"pusher"`
	Repo         string            `json:"repo,omitzero"`
	Restore      string            `json:"restore,omitzero"`
	Resume       string            `json:"resume,omitzero"`
	Select       *Selection        `json:"select,omitzero"`
	Set          []Setting         `json:"set,omitzero"`
	Signatures   []Signature       `json:"signatures,omitzero"`
	Tag          string            `json:"tag,omitzero"`
	Task         string            `json:"task,omitzero"`
	Trigger      string            `json:"trigger"`
}

// GcBody is a schema of the document.
type GcBody struct {
	// All: Consolidate everything and search now
	All    *bool `json:"all,omitzero"`
	DryRun *bool `json:"dry_run,omitzero"`
	// Project: Absent: all
	Project *string `json:"project,omitzero"`
}

// Grant is a schema of the document.
type Grant struct {
	Added     time.Time `json:"added"`
	AddedBy   string    `json:"added_by"`
	Key       string    `json:"key"`
	Principal string    `json:"principal"`
	Project   string    `json:"project"`
	Right     string    `json:"right"`
}

// Grants is a schema of the document.
type Grants struct {
	Grants  []Grant `json:"grants"`
	Project string  `json:"project"`
	Version int64   `json:"version"`
}

// HostKey is a schema of the document.
type HostKey struct {
	Fingerprint string `json:"fingerprint"`
	KnownHosts  string `json:"known_hosts"`
	Type        string `json:"type"`
}

// HostKeys is a schema of the document.
type HostKeys struct {
	HostKeys []HostKey `json:"host_keys"`
	SSH      string    `json:"ssh"`
	Version  int64     `json:"version"`
}

// Job is a schema of the document.
type Job struct {
	About    string    `json:"about,omitzero"`
	Added    time.Time `json:"added"`
	AddedBy  string    `json:"added_by,omitzero"`
	Name     string    `json:"name"`
	Project  string    `json:"project"`
	Revision int64     `json:"revision"`
	Text     string    `json:"text,omitzero"`
}

// JobDocument is a schema of the document.
type JobDocument struct {
	Job     Job   `json:"job"`
	Version int64 `json:"version"`
}

// Jobs is a schema of the document.
type Jobs struct {
	Jobs    []Job `json:"jobs"`
	Version int64 `json:"version"`
}

// Keeping is a schema of the document.
type Keeping struct {
	ArchivesMaxAgeNs       int64 `json:"archives_max_age_ns"`
	ArchivesMaxBytes       int64 `json:"archives_max_bytes"`
	FailedArchivesMaxAgeNs int64 `json:"failed_archives_max_age_ns"`
	KeepArchives           int64 `json:"keep_archives"`
	KeepFailedArchives     int64 `json:"keep_failed_archives"`
	Spare                  int64 `json:"spare"`
}

// Key is a schema of the document.
type Key struct {
	Added       time.Time `json:"added"`
	AddedBy     string    `json:"added_by"`
	Admin       bool      `json:"admin"`
	Comment     string    `json:"comment,omitzero"`
	Expires     time.Time `json:"expires,omitzero"`
	Fingerprint string    `json:"fingerprint"`
	LastUsed    time.Time `json:"last_used,omitzero"`
	Name        string    `json:"name"`
	Principal   string    `json:"principal"`
	Type        string    `json:"type"`
}

// Keys is a schema of the document.
type Keys struct {
	Keys    []Key `json:"keys"`
	Version int64 `json:"version"`
}

// Maintained is a schema of the document.
type Maintained struct {
	After        Stored                `json:"after"`
	Before       Stored                `json:"before"`
	Consolidated int64                 `json:"consolidated"`
	Error        string                `json:"error,omitzero"`
	LeftOver     int64                 `json:"left_over"`
	Packed       int64                 `json:"packed"`
	Project      string                `json:"project"`
	Pruned       int64                 `json:"pruned"`
	Refs         int64                 `json:"refs"`
	Repo         string                `json:"repo"`
	Submodules   *MaintainedSubmodules `json:"submodules,omitzero"`
	TookNs       int64                 `json:"took_ns"`
	Young        int64                 `json:"young"`
}

// MaintainedSubmodules is a schema of the document.
type MaintainedSubmodules struct {
	After        Stored `json:"after"`
	Before       Stored `json:"before"`
	Consolidated int64  `json:"consolidated"`
	Expired      int64  `json:"expired"`
	LeftOver     int64  `json:"left_over"`
	Packed       int64  `json:"packed"`
	Pruned       int64  `json:"pruned"`
	Repositories int64  `json:"repositories"`
	Young        int64  `json:"young"`
}

// Maintenance is a schema of the document.
type Maintenance struct {
	DryRun       bool         `json:"dry_run"`
	Repositories []Maintained `json:"repositories"`
	Version      int64        `json:"version"`
}

// Node is a schema of the document.
type Node struct {
	Added      time.Time         `json:"added"`
	AddedBy    string            `json:"added_by,omitzero"`
	Addresses  []string          `json:"addresses,omitzero"`
	Agent      bool              `json:"agent,omitzero"`
	Connected  bool              `json:"connected,omitzero"`
	Drained    bool              `json:"drained,omitzero"`
	Facts      map[string]string `json:"facts,omitzero"`
	HostKeys   []string          `json:"host_keys,omitzero"`
	Name       string            `json:"name"`
	Projects   []NodeProject     `json:"projects,omitzero"`
	Release    string            `json:"release,omitzero"`
	Root       string            `json:"root,omitzero"`
	Seen       time.Time         `json:"seen,omitzero"`
	Slots      int64             `json:"slots,omitzero"`
	SSH        string            `json:"ssh,omitzero"`
	SSHOptions []string          `json:"ssh_options,omitzero"`
}

// NodeBehind is a schema of the document.
type NodeBehind struct {
	Node    string `json:"node"`
	Release string `json:"release,omitzero"`
}

// NodeProject is a schema of the document.
type NodeProject struct {
	Behind     bool     `json:"behind,omitzero"`
	Deployment string   `json:"deployment,omitzero"`
	Project    string   `json:"project"`
	Release    string   `json:"release,omitzero"`
	Roles      []string `json:"roles,omitzero"`
	State      string   `json:"state,omitzero"`
}

// NodeReadiness is a schema of the document.
type NodeReadiness struct {
	Behind    bool     `json:"behind,omitzero"`
	CorpusGit string   `json:"corpus_git,omitzero"`
	Hint      string   `json:"hint,omitzero"`
	LeftOut   bool     `json:"left_out,omitzero"`
	Live      string   `json:"live,omitzero"`
	Name      string   `json:"name"`
	Notes     []string `json:"notes,omitzero"`
	Ready     bool     `json:"ready"`
	Reason    string   `json:"reason,omitzero"`
}

// Nodes is a schema of the document.
type Nodes struct {
	Nodes   []Node `json:"nodes"`
	Version int64  `json:"version"`
}

// NotificationTest is a schema of the document.
type NotificationTest struct {
	Delivery Delivery `json:"delivery"`
	Version  int64    `json:"version"`
}

// Notifications is a schema of the document.
type Notifications struct {
	Deliveries []Delivery `json:"deliveries"`
	Sinks      []Sink     `json:"sinks"`
	Version    int64      `json:"version"`
}

// Output is a schema of the document.
type Output struct {
	Name   string `json:"name"`
	Secret bool   `json:"secret,omitzero"`
	Step   string `json:"step"`
	Value  any    `json:"value,omitzero"`
}

// Principal is a schema of the document.
type Principal struct {
	Added    time.Time `json:"added"`
	AddedBy  string    `json:"added_by"`
	Admin    bool      `json:"admin"`
	Disabled bool      `json:"disabled"`
	Email    string    `json:"email,omitzero"`
	Implied  bool      `json:"implied"`
	Kind     string    `json:"kind"`
	Name     string    `json:"name"`
}

// Problem is a schema of the document.
type Problem struct {
	Detail   string        `json:"detail,omitzero"`
	Errors   []ErrorDetail `json:"errors,omitzero"`
	Exit     int64         `json:"exit,omitzero"`
	Hint     string        `json:"hint,omitzero"`
	Instance string        `json:"instance,omitzero"`
	Kind     string        `json:"kind,omitzero"`
	Status   int64         `json:"status"`
	Title    string        `json:"title,omitzero"`
	Type     string        `json:"type,omitzero"`
}

// Project is a schema of the document.
type Project struct {
	Branch        string         `json:"branch,omitzero"`
	Code          string         `json:"code,omitzero"`
	Converge      *ConvergeState `json:"converge,omitzero"`
	Created       time.Time      `json:"created"`
	Env           string         `json:"env,omitzero"`
	FailingChecks []string       `json:"failing_checks,omitzero"`
	Last          *Record        `json:"last,omitzero"`
	Linked        bool           `json:"linked"`
	LiveSince     time.Time      `json:"live_since,omitzero"`
	Missing       bool           `json:"missing,omitzero"`
	Name          string         `json:"name"`
	Pillar        string         `json:"pillar,omitzero"`
	Problem       string         `json:"problem,omitzero"`
	RemoteLess    bool           `json:"remote_less"`
	Remotes       *Remotes       `json:"remotes,omitzero"`
	Running       *Record        `json:"running,omitzero"`
	Skeleton      string         `json:"skeleton,omitzero"`
	Waiting       int64          `json:"waiting"`
}

// ProjectDocument is a schema of the document.
type ProjectDocument struct {
	Project Project `json:"project"`
	Version int64   `json:"version"`
}

// Projects is a schema of the document.
type Projects struct {
	Projects []Project `json:"projects"`
	Version  int64     `json:"version"`
}

// PromoteBody is a schema of the document.
type PromoteBody struct {
	// Environment: The environment of the same project in which it goes live
	Environment *string `json:"environment,omitzero"`
	// Force: Even where what is live there is not part of it
	Force *bool `json:"force,omitzero"`
	// Pillar: The commit of the pillar, too
	Pillar *bool `json:"pillar,omitzero"`
	// Plan: Show what it would change, and change nothing
	Plan *bool `json:"plan,omitzero"`
	// Set: Stands in the configuration above the pillar, for this run only; values are YAML
	Set map[string]string `json:"set,omitzero"`
	// To: The project in which it goes live; absent with environment
	To *string `json:"to,omitzero"`
}

// Promotion is a schema of the document.
type Promotion struct {
	Deployment  string   `json:"deployment"`
	Environment string   `json:"environment,omitzero"`
	From        string   `json:"from"`
	Set         []string `json:"set,omitzero"`
	WithPillar  bool     `json:"with_pillar,omitzero"`
}

// PruneBody is a schema of the document.
type PruneBody struct {
	DryRun *bool `json:"dry_run,omitzero"`
	// Keep: Keep so many archives of good deployments; absent: as configured
	Keep *int64 `json:"keep,omitzero"`
}

// Pruned is a schema of the document.
type Pruned struct {
	DryRun  bool      `json:"dry_run"`
	Freed   int64     `json:"freed"`
	Kept    int64     `json:"kept"`
	Project string    `json:"project"`
	Removed []Archive `json:"removed"`
	Version int64     `json:"version"`
}

// Pusher is a schema of the document.
type Pusher struct {
	Fingerprint string `json:"fingerprint,omitzero"`
	From        string `json:"from,omitzero"`
	Key         string `json:"key"`
}

// Queue is a schema of the document.
type Queue struct {
	Running *Record  `json:"running,omitzero"`
	Waiting []Record `json:"waiting,omitzero"`
}

// Readiness is a schema of the document.
type Readiness struct {
	Drained      []string         `json:"drained,omitzero"`
	Hint         string           `json:"hint,omitzero"`
	NotAsked     []string         `json:"not_asked"`
	NotRequested []string         `json:"not_requested,omitzero"`
	Refused      string           `json:"refused,omitzero"`
	Stages       []StageReadiness `json:"stages"`
}

// Record is a schema of the document.
type Record struct {
	AllowEmpty   bool              `json:"allow_empty,omitzero"`
	AllowMissing bool              `json:"allow_missing,omitzero"`
	Approval     *Approval         `json:"approval,omitzero"`
	At           time.Time         `json:"at"`
	Branches     map[string]string `json:"branches,omitzero"`
	Bundle       string            `json:"bundle,omitzero"`
	Change       *Change           `json:"change,omitzero"`
	Code         string            `json:"code,omitzero"`
	Converge     *ConvergeRun      `json:"converge,omitzero"`
	Environment  string            `json:"environment,omitzero"`
	Estimate     *Estimate         `json:"estimate,omitzero"`
	Exports      any               `json:"exports,omitzero"`
	Forced       bool              `json:"forced,omitzero"`
	Hold         bool              `json:"hold,omitzero"`
	ID           string            `json:"id"`
	Job          string            `json:"job,omitzero"`
	Leader       int64             `json:"leader,omitzero"`
	LiveCode     string            `json:"live_code,omitzero"`
	LivePillar   string            `json:"live_pillar,omitzero"`
	Nodes        []string          `json:"nodes,omitzero"`
	NowProcedure string            `json:"now_procedure,omitzero"`
	NowStep      string            `json:"now_step,omitzero"`
	NowWaits     string            `json:"now_waits,omitzero"`
	Overwrite    bool              `json:"overwrite,omitzero"`
	Pillar       string            `json:"pillar,omitzero"`
	Project      string            `json:"project"`
	Promoted     *Promotion        `json:"promoted,omitzero"`
	Pusher       Pusher            `json:"pusher"`
	Repo         string            `json:"repo,omitzero"`
	Restore      string            `json:"restore,omitzero"`
	Result       *Result           `json:"result,omitzero"`
	Resume       string            `json:"resume,omitzero"`
	Select       *Selection        `json:"select,omitzero"`
	Set          []Setting         `json:"set,omitzero"`
	Signatures   []Signature       `json:"signatures,omitzero"`
	Since        time.Time         `json:"since,omitzero"`
	State        string            `json:"state"`
	Tag          string            `json:"tag,omitzero"`
	Task         string            `json:"task,omitzero"`
	Trigger      string            `json:"trigger"`
}

// RejectBody is a schema of the document.
type RejectBody struct {
	// Reason: Why, for who asked
	Reason *string `json:"reason,omitzero"`
}

// Remotes is a schema of the document.
type Remotes struct {
	Pillar  string `json:"pillar"`
	Project string `json:"project"`
}

// Report is a schema of the document.
type Report struct {
	Archives    []Archive    `json:"archives"`
	Behind      []NodeBehind `json:"behind,omitzero"`
	Deployments []Record     `json:"deployments"`
	Disk        Disk         `json:"disk"`
	Project     Project      `json:"project"`
	Queue       Queue        `json:"queue"`
	Server      *Server      `json:"server,omitzero"`
}

// Reports is a schema of the document.
type Reports struct {
	Reports []Report `json:"reports"`
	Version int64    `json:"version"`
}

// Request is a schema of the document.
type Request struct {
	At         time.Time `json:"at"`
	By         string    `json:"by,omitzero"`
	Deployment Facts     `json:"deployment"`
	Ended      time.Time `json:"ended,omitzero"`
	Expires    time.Time `json:"expires"`
	ID         string    `json:"id"`
	Need       int64     `json:"need"`
	Plan       string    `json:"plan"`
	Project    string    `json:"project"`
	Reason     string    `json:"reason,omitzero"`
	Result     string    `json:"result,omitzero"`
	State      string    `json:"state"`
	Votes      []Vote    `json:"votes,omitzero"`
}

// Result is a schema of the document.
type Result struct {
	Changed   int64      `json:"changed,omitzero"`
	Code      string     `json:"code,omitzero"`
	Drift     []string   `json:"drift,omitzero"`
	Ended     time.Time  `json:"ended,omitzero"`
	Hint      string     `json:"hint,omitzero"`
	Kind      string     `json:"kind,omitzero"`
	Nodes     *Readiness `json:"nodes,omitzero"`
	Outputs   []Output   `json:"outputs,omitzero"`
	Pillar    string     `json:"pillar,omitzero"`
	Procedure string     `json:"procedure,omitzero"`
	Reason    string     `json:"reason,omitzero"`
	Started   time.Time  `json:"started,omitzero"`
	State     string     `json:"state"`
	StateID   string     `json:"state_id,omitzero"`
	Step      string     `json:"step,omitzero"`
	Tests     []Summary  `json:"tests,omitzero"`
	Timings   []Timing   `json:"timings,omitzero"`
	Unhealthy string     `json:"unhealthy,omitzero"`
}

// RollbackBody is a schema of the document.
type RollbackBody struct {
	// Deployment: Make live again what this one brought; absent: what was live before the commits of now
	Deployment *string `json:"deployment,omitzero"`
}

// Selection is a schema of the document.
type Selection struct {
	Only      []string `json:"only,omitzero"`
	OnlySteps []string `json:"only_steps,omitzero"`
	Skip      []string `json:"skip,omitzero"`
}

// Server is a schema of the document.
type Server struct {
	HostKeys  []HostKey `json:"host_keys,omitzero"`
	HTTP      string    `json:"http,omitzero"`
	SSH       string    `json:"ssh"`
	SSHConfig string    `json:"ssh_config"`
}

// SetBody is a schema of the document.
type SetBody struct {
	// Text: The document, in YAML
	Text string `json:"text"`
}

// SetUserBody is a schema of the document.
type SetUserBody struct {
	Admin *bool   `json:"admin,omitzero"`
	Email *string `json:"email,omitzero"`
	Kind  *string `json:"kind,omitzero"`
}

// Setting is a schema of the document.
type Setting struct {
	Key    string `json:"key"`
	Secret bool   `json:"secret,omitzero"`
	Value  string `json:"value,omitzero"`
}

// Settings is a schema of the document.
type Settings struct {
	// Set: Stands in the configuration above the pillar, for this run only; values are YAML
	Set map[string]string `json:"set,omitzero"`
}

// Signal is a schema of the document.
type Signal struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	ID     string    `json:"id"`
	Name   string    `json:"name"`
	Reason string    `json:"reason,omitzero"`
	Status string    `json:"status"`
}

// SignalAnswer is a schema of the document.
type SignalAnswer struct {
	Count    int64    `json:"count"`
	Counted  bool     `json:"counted"`
	Missing  []string `json:"missing"`
	Received int64    `json:"received"`
	State    string   `json:"state"`
	Version  int64    `json:"version"`
	Wait     string   `json:"wait"`
}

// SignalBody is a schema of the document.
type SignalBody struct {
	// Data: For the steps that follow: any JSON
	Data any `json:"data,omitzero"`
	// Deployment: Absent: the newest that has such a wait
	Deployment *string `json:"deployment,omitzero"`
	// ID: Who signals, as the wait calls it; absent: the next number
	ID     *string `json:"id,omitzero"`
	Reason *string `json:"reason,omitzero"`
	// Status: Absent: SUCCESS
	Status *string `json:"status,omitzero"`
}

// Signature is a schema of the document.
type Signature struct {
	Certificate string `json:"certificate,omitzero"`
	Key         string `json:"key"`
	Kind        string `json:"kind"`
	Object      string `json:"object,omitzero"`
	Of          string `json:"of"`
	Signer      string `json:"signer"`
}

// Sink is a schema of the document.
type Sink struct {
	Environments []string `json:"environments,omitzero"`
	Events       []string `json:"events,omitzero"`
	Kind         string   `json:"kind"`
	Name         string   `json:"name"`
	Projects     []string `json:"projects,omitzero"`
	Verdicts     []string `json:"verdicts,omitzero"`
}

// SkeletonBody is a schema of the document.
type SkeletonBody struct {
	Skeleton string `json:"skeleton"`
}

// Spread is a schema of the document.
type Spread struct {
	MedianNs int64  `json:"median_ns"`
	Name     string `json:"name,omitzero"`
	P95Ns    int64  `json:"p95_ns"`
	Runs     int64  `json:"runs"`
}

// StageReadiness is a schema of the document.
type StageReadiness struct {
	Name  string          `json:"name"`
	Nodes []NodeReadiness `json:"nodes"`
}

// StatisticsDocument is a schema of the document.
type StatisticsDocument struct {
	Days        []Day     `json:"days"`
	Deployments int64     `json:"deployments"`
	Failed      int64     `json:"failed"`
	Live        int64     `json:"live"`
	Project     string    `json:"project"`
	Refused     int64     `json:"refused"`
	Restore     Spread    `json:"restore"`
	Restored    int64     `json:"restored"`
	Since       time.Time `json:"since,omitzero"`
	Steps       []Spread  `json:"steps"`
	Tests       []TestRun `json:"tests"`
	Took        Spread    `json:"took"`
	Version     int64     `json:"version"`
}

// Stored is a schema of the document.
type Stored struct {
	Bytes      int64 `json:"bytes"`
	Loose      int64 `json:"loose"`
	LooseBytes int64 `json:"loose_bytes"`
	Objects    int64 `json:"objects"`
	Packs      int64 `json:"packs"`
}

// Summary is a schema of the document.
type Summary struct {
	DurationNs int64    `json:"duration_ns"`
	Errors     int64    `json:"errors"`
	Failed     int64    `json:"failed"`
	Failures   []Case   `json:"failures,omitzero"`
	Files      int64    `json:"files"`
	Problems   []string `json:"problems,omitzero"`
	Skipped    int64    `json:"skipped"`
	Step       string   `json:"step"`
	Tests      int64    `json:"tests"`
}

// TestRun is a schema of the document.
type TestRun struct {
	At         time.Time `json:"at"`
	Deployment string    `json:"deployment"`
	DurationNs int64     `json:"duration_ns"`
	Errors     int64     `json:"errors"`
	Failed     int64     `json:"failed"`
	Skipped    int64     `json:"skipped"`
	State      string    `json:"state"`
	Tests      int64     `json:"tests"`
}

// Text is a schema of the document.
type Text struct {
	Text    string `json:"text"`
	Version int64  `json:"version"`
}

// Timing is a schema of the document.
type Timing struct {
	DurationNs int64  `json:"duration_ns"`
	Name       string `json:"name"`
}

// Token is a schema of the document.
type Token struct {
	Added     time.Time `json:"added"`
	AddedBy   string    `json:"added_by"`
	Expires   time.Time `json:"expires"`
	ID        string    `json:"id"`
	LastUsed  time.Time `json:"last_used,omitzero"`
	Name      string    `json:"name"`
	Principal string    `json:"principal"`
	Projects  []string  `json:"projects,omitzero"`
	ReadOnly  bool      `json:"read_only"`
	Rights    []string  `json:"rights,omitzero"`
}

// TokenDocument is a schema of the document.
type TokenDocument struct {
	Secret  string `json:"secret"`
	Token   Token  `json:"token"`
	Version int64  `json:"version"`
}

// Tokens is a schema of the document.
type Tokens struct {
	Tokens  []Token `json:"tokens"`
	Version int64   `json:"version"`
}

// UnitState is a schema of the document.
type UnitState struct {
	Detail   string    `json:"detail,omitzero"`
	Entry    string    `json:"entry"`
	Kind     string    `json:"kind"`
	Log      []string  `json:"log,omitzero"`
	PID      int64     `json:"pid,omitzero"`
	Restarts int64     `json:"restarts,omitzero"`
	Since    time.Time `json:"since,omitzero"`
	State    string    `json:"state"`
	Unit     string    `json:"unit"`
}

// Units is a schema of the document.
type Units struct {
	Project string      `json:"project"`
	Units   []UnitState `json:"units"`
	Version int64       `json:"version"`
}

// UserDocument is a schema of the document.
type UserDocument struct {
	Certificates []Certificate `json:"certificates"`
	Grants       []Grant       `json:"grants"`
	Keys         []Key         `json:"keys"`
	Tokens       []Token       `json:"tokens"`
	User         Principal     `json:"user"`
	Version      int64         `json:"version"`
}

// Users is a schema of the document.
type Users struct {
	Users   []Principal `json:"users"`
	Version int64       `json:"version"`
}

// Vote is a schema of the document.
type Vote struct {
	At         time.Time `json:"at"`
	BreakGlass bool      `json:"break_glass,omitzero"`
	By         Pusher    `json:"by"`
	Reason     string    `json:"reason,omitzero"`
}

// Wait is a schema of the document.
type Wait struct {
	Count      int64     `json:"count"`
	Deployment string    `json:"deployment"`
	Ended      time.Time `json:"ended,omitzero"`
	Missing    []string  `json:"missing"`
	Project    string    `json:"project"`
	Reason     string    `json:"reason,omitzero"`
	Received   []Signal  `json:"received"`
	Since      time.Time `json:"since"`
	State      string    `json:"state"`
	Step       string    `json:"step,omitzero"`
	Until      time.Time `json:"until,omitzero"`
	Wait       string    `json:"wait"`
}

// Waits is a schema of the document.
type Waits struct {
	Version int64  `json:"version"`
	Waits   []Wait `json:"waits"`
}

// Audit: The audit log, newest first (GET /audit).
func (c *Client) Audit(ctx context.Context, options ...Option) (out Audit, err error) {
	err = c.do(ctx, "GET", "/audit", nil, &out, options)
	return out, err
}

// ListAllConfigs: List what was applied of all projects, newest first (GET /configs).
func (c *Client) ListAllConfigs(ctx context.Context, options ...Option) (out Configs, err error) {
	err = c.do(ctx, "GET", "/configs", nil, &out, options)
	return out, err
}

// Doctor: Check the server and its data for problems (GET /doctor).
func (c *Client) Doctor(ctx context.Context, options ...Option) (out Doctor, err error) {
	err = c.do(ctx, "GET", "/doctor", nil, &out, options)
	return out, err
}

// Gc: Consolidate packs and remove unreachable objects (POST /gc).
func (c *Client) Gc(ctx context.Context, body *GcBody, options ...Option) (out Maintenance, err error) {
	err = c.do(ctx, "POST", "/gc", body, &out, options)
	return out, err
}

// HostKeys: The server's SSH host keys (GET /host-keys).
func (c *Client) HostKeys(ctx context.Context, options ...Option) (out HostKeys, err error) {
	err = c.do(ctx, "GET", "/host-keys", nil, &out, options)
	return out, err
}

// ListKeys: List the SSH keys (GET /keys).
func (c *Client) ListKeys(ctx context.Context, options ...Option) (out Keys, err error) {
	err = c.do(ctx, "GET", "/keys", nil, &out, options)
	return out, err
}

// AddKey: Add an SSH key (POST /keys).
func (c *Client) AddKey(ctx context.Context, body *AddKeyBody, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/keys", body, &out, options)
	return out, err
}

// RemoveKey: Remove an SSH key (DELETE /keys/{key}).
func (c *Client) RemoveKey(ctx context.Context, key string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "DELETE", "/keys/"+url.PathEscape(key), nil, &out, options)
	return out, err
}

// ListNodes: List the nodes, with what they reported and their projects (GET /nodes).
func (c *Client) ListNodes(ctx context.Context, options ...Option) (out Nodes, err error) {
	err = c.do(ctx, "GET", "/nodes", nil, &out, options)
	return out, err
}

// GetNode: Show a node (GET /nodes/{node}).
func (c *Client) GetNode(ctx context.Context, node string, options ...Option) (out Nodes, err error) {
	err = c.do(ctx, "GET", "/nodes/"+url.PathEscape(node), nil, &out, options)
	return out, err
}

// ListNotifications: List the sinks and the newest deliveries (GET /notifications).
func (c *Client) ListNotifications(ctx context.Context, options ...Option) (out Notifications, err error) {
	err = c.do(ctx, "GET", "/notifications", nil, &out, options)
	return out, err
}

// RetryNotifications: Deliver now what waits or was given up (POST /notifications/retry).
func (c *Client) RetryNotifications(ctx context.Context, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/notifications/retry", nil, &out, options)
	return out, err
}

// TestSink: Send a test notification to a sink (POST /notifications/sinks/{sink}/test).
func (c *Client) TestSink(ctx context.Context, sink string, options ...Option) (out NotificationTest, err error) {
	err = c.do(ctx, "POST", "/notifications/sinks/"+url.PathEscape(sink)+"/test", nil, &out, options)
	return out, err
}

// RetryNotification: Deliver one notification now, to the sinks that did not get it (POST /notifications/{id}/retry).
func (c *Client) RetryNotification(ctx context.Context, id string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/notifications/"+url.PathEscape(id)+"/retry", nil, &out, options)
	return out, err
}

// ListProjects: List the projects (GET /projects).
func (c *Client) ListProjects(ctx context.Context, options ...Option) (out Projects, err error) {
	err = c.do(ctx, "GET", "/projects", nil, &out, options)
	return out, err
}

// CreateProject: Create a project (POST /projects).
func (c *Client) CreateProject(ctx context.Context, body *CreateProjectBody, options ...Option) (out ProjectDocument, err error) {
	err = c.do(ctx, "POST", "/projects", body, &out, options)
	return out, err
}

// DestroyProject: Undeploy a project and delete it (DELETE /projects/{name}).
func (c *Client) DestroyProject(ctx context.Context, name string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "DELETE", "/projects/"+url.PathEscape(name), nil, &out, options)
	return out, err
}

// GetProject: Show a project (GET /projects/{name}).
func (c *Client) GetProject(ctx context.Context, name string, options ...Option) (out ProjectDocument, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name), nil, &out, options)
	return out, err
}

// ListApprovals: List deployments that wait for approval, newest first (GET /projects/{name}/approvals).
func (c *Client) ListApprovals(ctx context.Context, name string, options ...Option) (out Document, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/approvals", nil, &out, options)
	return out, err
}

// Approve: Approve a waiting deployment (POST /projects/{name}/approvals/{id}/approve).
func (c *Client) Approve(ctx context.Context, name string, id string, body *ApproveBody, options ...Option) (out Decision, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/approvals/"+url.PathEscape(id)+"/approve", body, &out, options)
	return out, err
}

// Reject: Reject a deployment that waits for approval (POST /projects/{name}/approvals/{id}/reject).
func (c *Client) Reject(ctx context.Context, name string, id string, body *RejectBody, options ...Option) (out Decision, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/approvals/"+url.PathEscape(id)+"/reject", body, &out, options)
	return out, err
}

// ListArchives: List the archives, newest first (GET /projects/{name}/archives).
func (c *Client) ListArchives(ctx context.Context, name string, options ...Option) (out Archives, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/archives", nil, &out, options)
	return out, err
}

// PruneArchives: Remove archives beyond the retention limits (POST /projects/{name}/archives/prune).
func (c *Client) PruneArchives(ctx context.Context, name string, body *PruneBody, options ...Option) (out Pruned, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/archives/prune", body, &out, options)
	return out, err
}

// GetArchive: Show an archive (GET /projects/{name}/archives/{archive}).
func (c *Client) GetArchive(ctx context.Context, name string, archive string, options ...Option) (out ArchiveDocument, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/archives/"+url.PathEscape(archive), nil, &out, options)
	return out, err
}

// UnpinArchive: Unpin an archive (DELETE /projects/{name}/archives/{archive}/pin).
func (c *Client) UnpinArchive(ctx context.Context, name string, archive string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "DELETE", "/projects/"+url.PathEscape(name)+"/archives/"+url.PathEscape(archive)+"/pin", nil, &out, options)
	return out, err
}

// PinArchive: Keep an archive until it is unpinned (PUT /projects/{name}/archives/{archive}/pin).
func (c *Client) PinArchive(ctx context.Context, name string, archive string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "PUT", "/projects/"+url.PathEscape(name)+"/archives/"+url.PathEscape(archive)+"/pin", nil, &out, options)
	return out, err
}

// RestoreArchive: Restore an archive (POST /projects/{name}/archives/{archive}/restore).
func (c *Client) RestoreArchive(ctx context.Context, name string, archive string, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/archives/"+url.PathEscape(archive)+"/restore", nil, &out, options)
	return out, err
}

// AuditProject: The audit log of a project, newest first (GET /projects/{name}/audit).
func (c *Client) AuditProject(ctx context.Context, name string, options ...Option) (out Audit, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/audit", nil, &out, options)
	return out, err
}

// Cancel: Cancel the deployment that runs (POST /projects/{name}/cancel).
func (c *Client) Cancel(ctx context.Context, name string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/cancel", nil, &out, options)
	return out, err
}

// GetCfg: The configuration of what is live; values of the pillar are hidden (GET /projects/{name}/cfg).
func (c *Client) GetCfg(ctx context.Context, name string, options ...Option) (out Cfg, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/cfg", nil, &out, options)
	return out, err
}

// Check: Run the checks of the live release (POST /projects/{name}/check).
func (c *Client) Check(ctx context.Context, name string, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/check", nil, &out, options)
	return out, err
}

// ListChecks: The checks that run periodically, and their history (GET /projects/{name}/checks).
func (c *Client) ListChecks(ctx context.Context, name string, options ...Option) (out Checks, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/checks", nil, &out, options)
	return out, err
}

// ListConfigs: List what was applied of a project, newest first (GET /projects/{name}/configs).
func (c *Client) ListConfigs(ctx context.Context, name string, options ...Option) (out Configs, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/configs", nil, &out, options)
	return out, err
}

// GetConfig: Show a config, and where it was applied (GET /projects/{name}/configs/{config}).
func (c *Client) GetConfig(ctx context.Context, name string, config string, options ...Option) (out Configs, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/configs/"+url.PathEscape(config), nil, &out, options)
	return out, err
}

// Converge: Apply the live release again (POST /projects/{name}/converge).
func (c *Client) Converge(ctx context.Context, name string, body *ConvergeBody, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/converge", body, &out, options)
	return out, err
}

// Deploy: Redeploy the live commit (POST /projects/{name}/deploy).
func (c *Client) Deploy(ctx context.Context, name string, body *DeployBody, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/deploy", body, &out, options)
	return out, err
}

// ListDeployments: List the deployments, newest first (GET /projects/{name}/deployments).
func (c *Client) ListDeployments(ctx context.Context, name string, options ...Option) (out Deployments, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/deployments", nil, &out, options)
	return out, err
}

// GetDeployment: Show a deployment (GET /projects/{name}/deployments/{id}).
func (c *Client) GetDeployment(ctx context.Context, name string, id string, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/deployments/"+url.PathEscape(id), nil, &out, options)
	return out, err
}

// CancelDeployment: Cancel a deployment that runs or waits (POST /projects/{name}/deployments/{id}/cancel).
func (c *Client) CancelDeployment(ctx context.Context, name string, id string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/deployments/"+url.PathEscape(id)+"/cancel", nil, &out, options)
	return out, err
}

// ListGrants: List the rights on a project (GET /projects/{name}/grants).
func (c *Client) ListGrants(ctx context.Context, name string, options ...Option) (out Grants, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/grants", nil, &out, options)
	return out, err
}

// Revoke: Take a right from a user (DELETE /projects/{name}/grants/{user}/{right}).
func (c *Client) Revoke(ctx context.Context, name string, user string, right string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "DELETE", "/projects/"+url.PathEscape(name)+"/grants/"+url.PathEscape(user)+"/"+url.PathEscape(right), nil, &out, options)
	return out, err
}

// Grant: Give a user a right (PUT /projects/{name}/grants/{user}/{right}).
func (c *Client) Grant(ctx context.Context, name string, user string, right string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "PUT", "/projects/"+url.PathEscape(name)+"/grants/"+url.PathEscape(user)+"/"+url.PathEscape(right), nil, &out, options)
	return out, err
}

// ListJobs: List the jobs of a project (GET /projects/{name}/jobs).
func (c *Client) ListJobs(ctx context.Context, name string, options ...Option) (out Jobs, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/jobs", nil, &out, options)
	return out, err
}

// RemoveJob: Remove a job (DELETE /projects/{name}/jobs/{job}).
func (c *Client) RemoveJob(ctx context.Context, name string, job string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "DELETE", "/projects/"+url.PathEscape(name)+"/jobs/"+url.PathEscape(job), nil, &out, options)
	return out, err
}

// GetJob: Show a job (GET /projects/{name}/jobs/{job}).
func (c *Client) GetJob(ctx context.Context, name string, job string, options ...Option) (out JobDocument, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/jobs/"+url.PathEscape(job), nil, &out, options)
	return out, err
}

// SetJob: Store a job, as a new revision unless it is unchanged (PUT /projects/{name}/jobs/{job}).
func (c *Client) SetJob(ctx context.Context, name string, job string, body *SetBody, options ...Option) (out JobDocument, err error) {
	err = c.do(ctx, "PUT", "/projects/"+url.PathEscape(name)+"/jobs/"+url.PathEscape(job), body, &out, options)
	return out, err
}

// RunJob: Deploy the live commits in the stages of a job (POST /projects/{name}/jobs/{job}/run).
func (c *Client) RunJob(ctx context.Context, name string, job string, body *Settings, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/jobs/"+url.PathEscape(job)+"/run", body, &out, options)
	return out, err
}

// UnlinkProject: Take a project out of Salt's trees (DELETE /projects/{name}/link).
func (c *Client) UnlinkProject(ctx context.Context, name string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "DELETE", "/projects/"+url.PathEscape(name)+"/link", nil, &out, options)
	return out, err
}

// LinkProject: Link a project into Salt's trees (PUT /projects/{name}/link).
func (c *Client) LinkProject(ctx context.Context, name string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "PUT", "/projects/"+url.PathEscape(name)+"/link", nil, &out, options)
	return out, err
}

// Plan: Show what a deployment would change, and change nothing (POST /projects/{name}/plan).
func (c *Client) Plan(ctx context.Context, name string, body *Settings, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/plan", body, &out, options)
	return out, err
}

// Promote: Bring what is live in the project live in another one, or in another environment (POST /projects/{name}/promote).
func (c *Client) Promote(ctx context.Context, name string, body *PromoteBody, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/promote", body, &out, options)
	return out, err
}

// ReportProject: Status in full: queue, newest deployments, archives, disk (GET /projects/{name}/report).
func (c *Client) ReportProject(ctx context.Context, name string, options ...Option) (out Reports, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/report", nil, &out, options)
	return out, err
}

// Rollback: Roll back to an earlier deployment (POST /projects/{name}/rollback).
func (c *Client) Rollback(ctx context.Context, name string, body *RollbackBody, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/rollback", body, &out, options)
	return out, err
}

// CancelRollout: Cancel a rollout, and roll back nodes according to on_failure (POST /projects/{name}/rollout/cancel).
func (c *Client) CancelRollout(ctx context.Context, name string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/rollout/cancel", nil, &out, options)
	return out, err
}

// PauseRollout: Start no further node (POST /projects/{name}/rollout/pause).
func (c *Client) PauseRollout(ctx context.Context, name string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/rollout/pause", nil, &out, options)
	return out, err
}

// ResumeRollout: Resume a paused rollout (POST /projects/{name}/rollout/resume).
func (c *Client) ResumeRollout(ctx context.Context, name string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/rollout/resume", nil, &out, options)
	return out, err
}

// RetryRollout: Deploy the newest rollout to the nodes where it is not live (POST /projects/{name}/rollout/retry).
func (c *Client) RetryRollout(ctx context.Context, name string, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/rollout/retry", nil, &out, options)
	return out, err
}

// BeginProject: Begin a project with a skeleton (POST /projects/{name}/skeleton).
func (c *Client) BeginProject(ctx context.Context, name string, body *SkeletonBody, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/skeleton", body, &out, options)
	return out, err
}

// GetStatistics: How often deployments succeed, and how long they and their steps take (GET /projects/{name}/statistics).
func (c *Client) GetStatistics(ctx context.Context, name string, options ...Option) (out StatisticsDocument, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/statistics", nil, &out, options)
	return out, err
}

// RunTask: Run a task (POST /projects/{name}/tasks/{task}).
func (c *Client) RunTask(ctx context.Context, name string, task string, body *Settings, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/tasks/"+url.PathEscape(task), body, &out, options)
	return out, err
}

// Undeploy: Stop a project and undo what its deployments changed outside of its tree (POST /projects/{name}/undeploy).
func (c *Client) Undeploy(ctx context.Context, name string, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/undeploy", nil, &out, options)
	return out, err
}

// ListUnits: List what a project runs (GET /projects/{name}/units).
func (c *Client) ListUnits(ctx context.Context, name string, options ...Option) (out Units, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/units", nil, &out, options)
	return out, err
}

// RestartUnits: Units: restart (POST /projects/{name}/units/restart).
func (c *Client) RestartUnits(ctx context.Context, name string, body *ActBody, options ...Option) (out Units, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/units/restart", body, &out, options)
	return out, err
}

// StartUnits: Units: start (POST /projects/{name}/units/start).
func (c *Client) StartUnits(ctx context.Context, name string, body *ActBody, options ...Option) (out Units, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/units/start", body, &out, options)
	return out, err
}

// StopUnits: Units: stop (POST /projects/{name}/units/stop).
func (c *Client) StopUnits(ctx context.Context, name string, body *ActBody, options ...Option) (out Units, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/units/stop", body, &out, options)
	return out, err
}

// ListWaits: List what deployments wait for, newest first (GET /projects/{name}/waits).
func (c *Client) ListWaits(ctx context.Context, name string, options ...Option) (out Waits, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/waits", nil, &out, options)
	return out, err
}

// Signal: Send a signal to a waiting deployment (POST /projects/{name}/waits/{wait}/signals).
func (c *Client) Signal(ctx context.Context, name string, wait string, body *SignalBody, options ...Option) (out SignalAnswer, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/waits/"+url.PathEscape(wait)+"/signals", body, &out, options)
	return out, err
}

// Report: Status in full of all projects (GET /report).
func (c *Client) Report(ctx context.Context, options ...Option) (out Reports, err error) {
	err = c.do(ctx, "GET", "/report", nil, &out, options)
	return out, err
}

// ListTokens: List the API tokens (GET /tokens).
func (c *Client) ListTokens(ctx context.Context, options ...Option) (out Tokens, err error) {
	err = c.do(ctx, "GET", "/tokens", nil, &out, options)
	return out, err
}

// CreateToken: Make an API token; the secret is in this answer and nowhere else (POST /tokens).
func (c *Client) CreateToken(ctx context.Context, body *CreateTokenBody, options ...Option) (out TokenDocument, err error) {
	err = c.do(ctx, "POST", "/tokens", body, &out, options)
	return out, err
}

// RevokeToken: End an API token (DELETE /tokens/{token}).
func (c *Client) RevokeToken(ctx context.Context, token string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "DELETE", "/tokens/"+url.PathEscape(token), nil, &out, options)
	return out, err
}

// WhoAmI: Whose request this is (GET /user).
func (c *Client) WhoAmI(ctx context.Context, options ...Option) (out UserDocument, err error) {
	err = c.do(ctx, "GET", "/user", nil, &out, options)
	return out, err
}

// ListUsers: List the users (GET /users).
func (c *Client) ListUsers(ctx context.Context, options ...Option) (out Users, err error) {
	err = c.do(ctx, "GET", "/users", nil, &out, options)
	return out, err
}

// AddUser: Add a user (POST /users).
func (c *Client) AddUser(ctx context.Context, body *AddUserBody, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/users", body, &out, options)
	return out, err
}

// RemoveUser: Remove a user with its keys, tokens and rights (DELETE /users/{user}).
func (c *Client) RemoveUser(ctx context.Context, user string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "DELETE", "/users/"+url.PathEscape(user), nil, &out, options)
	return out, err
}

// GetUser: Show a user: keys, tokens and rights (GET /users/{user}).
func (c *Client) GetUser(ctx context.Context, user string, options ...Option) (out UserDocument, err error) {
	err = c.do(ctx, "GET", "/users/"+url.PathEscape(user), nil, &out, options)
	return out, err
}

// SetUser: Change a user (PATCH /users/{user}).
func (c *Client) SetUser(ctx context.Context, user string, body *SetUserBody, options ...Option) (out Text, err error) {
	err = c.do(ctx, "PATCH", "/users/"+url.PathEscape(user), body, &out, options)
	return out, err
}

// DisableUser: Keep a user from logging in (POST /users/{user}/disable).
func (c *Client) DisableUser(ctx context.Context, user string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/users/"+url.PathEscape(user)+"/disable", nil, &out, options)
	return out, err
}

// EnableUser: Enable a disabled user (POST /users/{user}/enable).
func (c *Client) EnableUser(ctx context.Context, user string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/users/"+url.PathEscape(user)+"/enable", nil, &out, options)
	return out, err
}

// Version: The server's version (GET /version).
func (c *Client) Version(ctx context.Context, options ...Option) (out Build, err error) {
	err = c.do(ctx, "GET", "/version", nil, &out, options)
	return out, err
}
