package project

import (
	"cmp"
	"encoding/json"
	"time"

	"corpus-git/project/demands"
	"corpus-git/project/junit"
	"corpus-git/project/planned"
)

// Trigger says what asked for a deployment.
type Trigger string

const (
	// TriggerPush is a push of the deployed branch, or of the pillar.
	TriggerPush Trigger = "push"
	// TriggerRedeploy is refs/deploy/*, or the deploy command.
	TriggerRedeploy Trigger = "redeploy"
	// TriggerRollback is refs/rollback/<id>, or the rollback command.
	TriggerRollback Trigger = "rollback"
	// TriggerTask is one task run by hand.
	TriggerTask Trigger = "task"
	// TriggerCheck runs the checks of what is live.
	TriggerCheck Trigger = "check"
	// TriggerUndeploy stops what is running and undoes what deployments changed outside the trees.
	TriggerUndeploy Trigger = "undeploy"
	// TriggerBundle deploys a bundle from another machine: both commits are given, and both branches move.
	TriggerBundle Trigger = "bundle"
	// TriggerPromote deploys what is live in another project, or in the same project in another environment: Deployment.Promoted says which.
	TriggerPromote Trigger = "promote"
	// TriggerConverge applies the live release again, or reports what that would change.
	TriggerConverge Trigger = "converge"
	// TriggerPlan shows what a deployment would do and touches nothing.
	TriggerPlan Trigger = "plan"
)

// Deploys reports whether the trigger makes something go live.
func (t Trigger) Deploys() bool {
	switch t {
	case TriggerPush, TriggerRedeploy, TriggerRollback, TriggerBundle, TriggerPromote:
		return true
	}
	return false
}

// Pusher is who asked: the identity is the key that authenticated, never one that was only offered.
type Pusher struct {
	// Key is the name of the principal whose key, certificate, token or session it is, or the local user's name for the command line.
	Key string `json:"key"`
	// Fingerprint is the SHA256 fingerprint of the key, "" for the command line.
	Fingerprint string `json:"fingerprint,omitempty"`
	// From is the remote address, or "local".
	From string `json:"from,omitempty"`
}

// Selection narrows what a deployment runs. The zero value runs everything.
type Selection struct {
	Only      []string `json:"only,omitempty"`       // procedures
	OnlySteps []string `json:"only_steps,omitempty"` // steps of the install procedure
	Skip      []string `json:"skip,omitempty"`       // procedures
}

// Deployment holds the immutable facts of one run of the pipeline.
type Deployment struct {
	ID      ID        `json:"id"`
	Project Name      `json:"project"`
	Trigger Trigger   `json:"trigger"`
	Pusher  Pusher    `json:"pusher"`
	At      time.Time `json:"at"`
	// Code and Pillar are the commits that this deployment pins and makes live.
	Code   Commit `json:"code,omitempty"`
	Pillar Commit `json:"pillar,omitempty"`
	// Branches are the branches that TriggerBundle and TriggerPromote move in a repository from which nothing was deployed yet: refs/heads/main.
	Branches map[Repo]string `json:"branches,omitempty"`
	// Bundle says, for TriggerBundle, which machine made the bundle, and who made it there.
	Bundle string `json:"bundle,omitempty"`
	// Promoted says, for TriggerPromote and for a plan of one, where its commits were live. Code is then given, and Pillar if it is promoted.
	Promoted *Promotion `json:"promoted,omitempty"`
	// LiveCode and LivePillar are what was live when it started, and what a rollback restores.
	LiveCode   Commit `json:"live_code,omitempty"`
	LivePillar Commit `json:"live_pillar,omitempty"`
	// Repo and Change describe the ref update that a push proposed; Change is empty for other triggers.
	Repo   Repo   `json:"repo,omitempty"`
	Change Change `json:"change,omitzero"`
	Forced bool   `json:"forced,omitempty"`
	// Signatures are the signatures that were verified before it began, and Tag is the annotated tag that was pushed instead of its commit.
	Signatures []demands.Signature `json:"signatures,omitempty"`
	Tag        Commit              `json:"tag,omitempty"`
	// Approval is set if others had to approve it, and did.
	Approval *demands.Approval `json:"approval,omitempty"`
	// Environment is that of its configuration, if that was prepared.
	Environment string    `json:"environment,omitempty"`
	Select      Selection `json:"select,omitzero"`
	// Set is what was set on the command line, and overrides the pillar.
	Set []Setting `json:"set,omitempty"`
	// Overwrite makes a deployment in dev overwrite what was changed by hand on the machine, as a push that replaces history does.
	Overwrite bool `json:"overwrite,omitempty"`
	// AllowEmpty allows a push to remove the folder .salt, or the last step in it.
	AllowEmpty bool `json:"allow_empty,omitempty"`
	// Resume is the failed deployment that this one resumes: the steps that succeeded there are not run again.
	Resume ID `json:"resume,omitempty"`
	// AllowMissing skips nodes that are not ready; Nodes, if it names any, skips all others.
	AllowMissing bool     `json:"allow_missing,omitempty"`
	Nodes        []string `json:"nodes,omitempty"`
	// Exports are the values that the nodes of earlier stages wrote: a JSON object by role, node and name.
	Exports json.RawMessage `json:"exports,omitempty"`
	// Leader is the token of the node's election as the leader of the project, 0 if it is not the leader: greater than those of all earlier leaders.
	Leader int64 `json:"leader,omitempty"`
	// Hold makes the deployment wait after its archive until it is released.
	Hold bool `json:"hold,omitempty"`
	// Job is the stored job whose stages a redeployment follows: NAME@REVISION.
	Job string `json:"job,omitempty"`
	// Task is the task's name for TriggerTask.
	Task string `json:"task,omitempty"`
	// Converge is what TriggerConverge does.
	Converge ConvergeRun `json:"converge,omitzero"`
	// Restore is what a rollback restores: a deployment, for what it made live, or an archive's folder. Once it runs: the deployment that made the archive.
	Restore ID `json:"restore,omitempty"`
}

// Promotion says where the commits of a deployment were live before.
type Promotion struct {
	// From is that project, which is the deployment's own if only the environment changes. Deployment made them live there.
	From       Name `json:"from"`
	Deployment ID   `json:"deployment"`
	// Environment is the new environment of the project, "" to keep the current one.
	Environment string `json:"environment,omitempty"`
	// WithPillar: the pillar's commit is promoted, too. Otherwise the project keeps its own pillar.
	WithPillar bool `json:"with_pillar,omitempty"`
	// Set are the keys that were set on the command line there, which are not set here.
	Set []string `json:"set,omitempty"`
}

// ResumeLast requests to resume the last deployment, whichever that is.
const ResumeLast ID = "last"

// State is the state of a deployment. The zero value is not a state.
type State string

const (
	// Waiting for the project's turn.
	Waiting State = "waiting"
	// Running its procedures.
	Running State = "running"
	// Live is success: the tree runs, the branch moved.
	Live State = "live"
	// RolledBack is a failure after which the old tree was restored.
	RolledBack State = "rolled back"
	// Failed is a failure whose tree stays in place: in dev, or when the rollback failed too.
	Failed State = "failed"
	// Refused means that it ended before anything ran.
	Refused State = "refused"
	// Done is the success of something that is not a deployment: a task, a plan.
	Done State = "done"
)

// Terminal reports whether the state is final.
func (s State) Terminal() bool { return s != "" && s != Waiting && s != Running }

// Good reports whether the state is a success.
func (s State) Good() bool { return s == Live || s == Done }

// Good reports whether the deployment succeeded and what it left passes its checks.
func (r Result) Good() bool { return r.State.Good() && r.Unhealthy == "" }

// End sets the end: as long after the start as it took, whatever the clock was set to meanwhile. Without a start they are the same.
func (r *Result) End(now time.Time) {
	r.Started = cmp.Or(r.Started, now)
	r.Ended = r.Started.Add(max(0, now.Sub(r.Started)))
}

// Incomplete is what Event returns for a rollback after which something is not as it was before.
const Incomplete = "rollback-incomplete"

// Event returns the result in one word, as hooks, webhooks and metrics show it: the state, or Incomplete.
func (r Result) Event() string {
	if r.Unhealthy != "" {
		return Incomplete
	}
	return string(r.State)
}

// Timing is how long one procedure or step took.
type Timing struct {
	Name     string        `json:"name"`
	Duration time.Duration `json:"duration_ns"`
}

// RollbackFailed is part of the Reason of a Result whose rollback failed, too.
const RollbackFailed = "the rollback failed too"

// Result is how a deployment ended. Its texts are already redacted.
type Result struct {
	State State `json:"state"`
	// Procedure, Step and StateID name where it failed.
	Procedure string `json:"procedure,omitempty"`
	Step      string `json:"step,omitempty"`
	StateID   string `json:"state_id,omitempty"`
	// Kind is a fault.Kind's name, Reason one line, Hint what to do next.
	Kind   string `json:"kind,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Unhealthy says what failed after a rollback although the tree is as State says: an undo, a step, a service, a check.
	Unhealthy string `json:"unhealthy,omitempty"`
	Hint      string `json:"hint,omitempty"`
	// Code and Pillar are what is live now.
	Code    Commit    `json:"code,omitempty"`
	Pillar  Commit    `json:"pillar,omitempty"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	Timings []Timing  `json:"timings,omitempty"`
	// Changed is the number of things that TriggerConverge changed, or would change, and Drift the first of them, one line each.
	Changed int      `json:"changed,omitempty"`
	Drift   []string `json:"drift,omitempty"`
	// Nodes is what TriggerPlan found out about the nodes, absent if there are none.
	Nodes *planned.Readiness `json:"nodes,omitempty"`
	// Outputs are what the steps wrote, in their order.
	Outputs []Output `json:"outputs,omitempty"`
	// Tests summarise the test reports that the steps left, in the order of the steps.
	Tests []junit.Summary `json:"tests,omitempty"`
}

// Output is a value that a step wrote for later steps and for readers of the record.
type Output struct {
	Step string `json:"step"`
	Name string `json:"name"`
	// Value is JSON; it is absent if Secret is true.
	Value  json.RawMessage `json:"value,omitempty"`
	Secret bool            `json:"secret,omitempty"`
}

// Text returns the value for people: a string as it is, everything else as JSON.
func (o Output) Text() string {
	var text string
	switch {
	case o.Secret:
		return shownSecret
	case json.Unmarshal(o.Value, &text) == nil:
		return text
	}
	return string(o.Value)
}
