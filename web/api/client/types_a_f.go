// Code generated from the OpenAPI document by web/api/generate. DO NOT EDIT.

package client

import "time"

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
