// Code generated from the OpenAPI document by web/api/generate. DO NOT EDIT.

package client

import "time"

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
