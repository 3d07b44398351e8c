// Code generated from the OpenAPI document by web/api/generate. DO NOT EDIT.

package client

import "time"

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
