package status

import (
	"time"

	"corpus-git/internal/audit"
	"corpus-git/internal/event"
	"corpus-git/project"
	"corpus-git/project/configs"
)

// Version is the version of every document's schema.
const Version = 1

// Project is the current state of one project.
type Project struct {
	Name project.Name `json:"name"`
	// Env is what the project was created with, "" if its configuration decides.
	Env        string `json:"env,omitempty"`
	RemoteLess bool   `json:"remote_less"`
	Linked     bool   `json:"linked"`
	Missing    bool   `json:"missing,omitempty"`
	// Problem is why it is not known what is live, or that a branch is at another commit: something is wrong with a repository. "" if
	// nothing is.
	Problem string    `json:"problem,omitempty"`
	Created time.Time `json:"created"`
	// Skeleton is what its first commits were made from, "" if they were pushed.
	Skeleton string `json:"skeleton,omitempty"`
	// Branch is the branch that deploys, Code and Pillar the commits that are live; "" before the first deployment.
	Branch string         `json:"branch,omitempty"`
	Code   project.Commit `json:"code,omitempty"`
	Pillar project.Commit `json:"pillar,omitempty"`
	// LiveSince is when the newest live deployment went live.
	LiveSince time.Time `json:"live_since,omitzero"`
	// Running is the deployment that is running now, Waiting the number of deployments in the queue, Last the newest that ended.
	Running *project.Record `json:"running,omitempty"`
	Waiting int             `json:"waiting"`
	Last    *project.Record `json:"last,omitempty"`
	// FailingChecks are the periodic checks whose last run failed.
	FailingChecks []string `json:"failing_checks,omitempty"`
	// Converge is what was found when the live release was applied again, or compared; nil if that never happened and is not configured.
	Converge *project.ConvergeState `json:"converge,omitempty"`
	Remotes  *Remotes               `json:"remotes,omitempty"`
}

// Remotes are the addresses to push to.
type Remotes struct {
	Project string `json:"project"`
	Pillar  string `json:"pillar"`
}

// Server says how to reach a project's server.
type Server struct {
	// SSH is host:port, or only the host if the port is 22.
	SSH string `json:"ssh"`
	// HTTP is the URL of the project's page, "" if http_listen is off.
	HTTP string `json:"http,omitempty"`
	// SSHConfig is a block for ~/.ssh/config (ssh_config(5)), with the fingerprints of the host keys in comments.
	SSHConfig string `json:"ssh_config"`
	// HostKeys are the server's, strongest first; none before the first start.
	HostKeys []HostKey `json:"host_keys,omitempty"`
}

// HostKey is a host key of the server.
type HostKey struct {
	Type        string `json:"type"`
	Fingerprint string `json:"fingerprint"`
	// KnownHosts is the line for known_hosts (sshd(8)).
	KnownHosts string `json:"known_hosts"`
}

// HostKeyRotation is what host-key list --json prints.
type HostKeyRotation struct {
	Version int          `json:"version"`
	Keys    []RotatedKey `json:"keys"`
	// Since is when the next keys were made; absent if there are none.
	Since time.Time `json:"since,omitzero"`
	// Agents counts the nodes that dial in, Unaware are those that do not know the next key.
	Agents  int      `json:"agents"`
	Unaware []string `json:"unaware"`
}

// RotatedKey is a host key of the server; State is present, next or retired.
type RotatedKey struct {
	Type        string `json:"type"`
	Fingerprint string `json:"fingerprint"`
	State       string `json:"state"`
}

// HostKeys is what host-key --json prints.
type HostKeys struct {
	Version  int       `json:"version"`
	SSH      string    `json:"ssh"`
	HostKeys []HostKey `json:"host_keys"`
}

// Archive is one archive of a project.
type Archive struct {
	// ID is the deployment that the archive was made before; Name is the folder's name.
	ID   project.ID     `json:"id"`
	Name string         `json:"name"`
	At   time.Time      `json:"at"`
	Code project.Commit `json:"code,omitempty"`
	// Pillar is the pillar's commit of the archived tree.
	Pillar project.Commit `json:"pillar,omitempty"`
	// Verdict is how the deployment ended that the archive was made for.
	Verdict project.State `json:"verdict,omitempty"`
	Pusher  string        `json:"pusher,omitempty"`
	Pinned  bool          `json:"pinned"`
	// Tree reports that it holds a tree to roll back to, Failed that it holds the tree of a failed deployment.
	Tree   bool  `json:"tree"`
	Failed bool  `json:"failed_tree"`
	Files  int64 `json:"files"`
	// Packed: the tree is a file, project.tar.zst, not a folder.
	Packed bool `json:"packed"`
	// Bytes is the sum of the sizes of the tree it holds, Disk what it takes, or took, as a folder on disk.
	Bytes int64 `json:"bytes"`
	Disk  int64 `json:"disk"`
	// Own is the space on disk that only the archive takes, and that removing it would free; Shared is the space that it shares with
	// another archive or the live tree. Estimated: Own is partly estimated until it is measured.
	Own       int64 `json:"own"`
	Shared    int64 `json:"shared"`
	Estimated bool  `json:"estimated"`
	// SharedFile names what is shared: archives with the same name share the same bytes, which are freed with the last of them.
	SharedFile string `json:"shared_file,omitempty"`
	// Incremental: the tree is in two files, project.base.tar.zst, which other archives share, and project.changed.tar.zst.
	Incremental bool `json:"incremental,omitempty"`
}

// Keeping says which archives of a project are kept, by its configuration or the server's.
type Keeping struct {
	Good         int           `json:"keep_archives"`
	Failed       int           `json:"keep_failed_archives"`
	MaxBytes     int64         `json:"archives_max_bytes"`
	MaxAge       time.Duration `json:"archives_max_age_ns"`
	FailedMaxAge time.Duration `json:"failed_archives_max_age_ns"`
	// Spare is the size of the tree from which the next archive is made.
	Spare int64 `json:"spare"`
}

// Pruned is printed by  archives prune --json.
type Pruned struct {
	Version int          `json:"version"`
	Project project.Name `json:"project"`
	// DryRun: nothing was removed; this is what would be.
	DryRun  bool      `json:"dry_run"`
	Removed []Archive `json:"removed"`
	Kept    int       `json:"kept"`
	// Freed is the number of bytes freed, as far as it is known.
	Freed int64 `json:"freed"`
}

// Disk is the disk space that a project uses, in allocated bytes.
type Disk struct {
	Live     int64 `json:"live"`
	Data     int64 `json:"data"`
	Git      int64 `json:"git"`
	Archives int64 `json:"archives"`
	// Free is the space on the file system that is available to an ordinary user.
	Free int64 `json:"free"`
	// Incomplete is why not everything could be measured, "" if it was.
	Incomplete string `json:"incomplete,omitempty"`
}

// Projects is printed by  project list --json.
type Projects struct {
	Version  int       `json:"version"`
	Projects []Project `json:"projects"`
}

// ProjectDocument is printed by  project show --json  and  project create --json.
type ProjectDocument struct {
	Version int     `json:"version"`
	Project Project `json:"project"`
}

// Deployments is printed by  deployments --json, newest first.
type Deployments struct {
	Version     int              `json:"version"`
	Project     project.Name     `json:"project"`
	Deployments []project.Record `json:"deployments"`
}

// Configs is printed by  configs --json, newest first.
type Configs struct {
	Version int `json:"version"`
	// Config is the requested one.
	Config      *configs.Config      `json:"config,omitempty"`
	Deployments []configs.Deployment `json:"deployments"`
}

// DeploymentDocument is printed by deploy, rollback, task and plan with --json.
type DeploymentDocument struct {
	Version    int            `json:"version"`
	Deployment project.Record `json:"deployment"`
}

// Event is one line of  logs --json.
type Event struct {
	Version int `json:"version"`
	event.Event
}

// Archives is printed by  archives list --json, newest first.
type Archives struct {
	Version  int          `json:"version"`
	Project  project.Name `json:"project"`
	Archives []Archive    `json:"archives"`
	// Keeping is absent in the document that the web pages serve.
	Keeping *Keeping `json:"keeping,omitempty"`
}

// ArchiveDocument is printed by  archives show --json.
type ArchiveDocument struct {
	Version int          `json:"version"`
	Project project.Name `json:"project"`
	Archive Archive      `json:"archive"`
}

// Report is one project in full.
type Report struct {
	Project     Project          `json:"project"`
	Queue       project.Queue    `json:"queue"`
	Deployments []project.Record `json:"deployments"`
	Archives    []Archive        `json:"archives"`
	Disk        Disk             `json:"disk"`
	// Behind are the nodes on which another release is live, or none: those of the last rollout, while none is running.
	Behind []NodeBehind `json:"behind,omitempty"`
	// Server is nil for a project that could not be reported.
	Server *Server `json:"server,omitempty"`
}

// NodeBehind is a node with another release than the live one, or with another pillar; Release is absent if it is not known.
type NodeBehind struct {
	Node    string         `json:"node"`
	Release project.Commit `json:"release,omitempty"`
}

// Units is printed by  ps, start, stop and restart --json.
type Units struct {
	Version int                 `json:"version"`
	Project project.Name        `json:"project"`
	Units   []project.UnitState `json:"units"`
}

// Checks is printed by  check --history --json.
type Checks struct {
	Version int          `json:"version"`
	Project project.Name `json:"project"`
	// Checks are the periodic checks of what is live; none if no server is running.
	Checks []project.CheckState `json:"checks"`
	// History has the newest periods first.
	History []project.CheckPeriod `json:"history"`
}

// LogLine is one line of  logs --app --json.
type LogLine struct {
	Version int `json:"version"`
	// Source is a file or a program, absent for the journal, whose lines name the unit.
	Source string `json:"source,omitempty"`
	Text   string `json:"text"`
}

// Reports is printed by  report --json.
type Reports struct {
	Version int      `json:"version"`
	Reports []Report `json:"reports"`
}

// Audit is printed by  audit --json, newest first.
type Audit struct {
	Version int           `json:"version"`
	Entries []audit.Entry `json:"entries"`
}

// Check is one thing that doctor checked.
type Check struct {
	Name string `json:"name"`
	// Status is ok, warning, failed or skipped.
	Status string `json:"status"`
	Text   string `json:"text"`
	Hint   string `json:"hint,omitempty"`
}

// Doctor is printed by  doctor --json.
type Doctor struct {
	Version int     `json:"version"`
	Checks  []Check `json:"checks"`
}

// Build is printed by  version --json.
type Build struct {
	Version  int    `json:"version"`
	Release  string `json:"release"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Problem is printed on standard output instead of a document when a command with --json fails.
type Problem struct {
	Version int    `json:"version"`
	Error   string `json:"error"`
	Kind    string `json:"kind"`
	Hint    string `json:"hint,omitempty"`
	Exit    int    `json:"exit"`
}

// Maintained is what maintenance did, or would do, to one repository.
type Maintained struct {
	Project project.Name `json:"project"`
	Repo    project.Repo `json:"repo"`
	// Before and After count what is stored in it.
	Before Stored `json:"before"`
	After  Stored `json:"after"`
	// Consolidated is the number of packs that were combined into one, Packed that of loose objects and Refs that of refs that were packed.
	Consolidated int `json:"consolidated"`
	Packed       int `json:"packed"`
	Refs         int `json:"refs"`
	// Pruned is the number of objects removed because nothing refers to them, Young that of objects kept because they are too new, Left
	// that of files left behind by a process that died.
	Pruned int           `json:"pruned"`
	Young  int           `json:"young"`
	Left   int           `json:"left_over"`
	Took   time.Duration `json:"took_ns"`
	// Submodules is what was done to the repositories of the repository's submodules, nil if there are none.
	Submodules *MaintainedSubmodules `json:"submodules,omitempty"`
	// Error is why nothing, or only a part, was done.
	Error string `json:"error,omitempty"`
}

// MaintainedSubmodules is what maintenance did to the repositories of a repository's submodules, or would do: sums over all of them.
type MaintainedSubmodules struct {
	Repositories int    `json:"repositories"`
	Before       Stored `json:"before"`
	After        Stored `json:"after"`
	// Expired counts the commits of submodules that are no longer needed; the other fields are as in Maintained.
	Expired      int `json:"expired"`
	Consolidated int `json:"consolidated"`
	Packed       int `json:"packed"`
	Pruned       int `json:"pruned"`
	Young        int `json:"young"`
	Left         int `json:"left_over"`
}

// Stored counts what a repository stores: packs with their objects and bytes, loose objects and their bytes.
type Stored struct {
	Packs      int   `json:"packs"`
	Objects    int   `json:"objects"`
	Bytes      int64 `json:"bytes"`
	Loose      int   `json:"loose"`
	LooseBytes int64 `json:"loose_bytes"`
}

// Maintenance is the document of gc.
type Maintenance struct {
	Version      int          `json:"version"`
	DryRun       bool         `json:"dry_run"`
	Repositories []Maintained `json:"repositories"`
}

// Lint is what  corpus-git lint  found in a working tree.
type Lint struct {
	Version  int           `json:"version"`
	Project  project.Name  `json:"project"`
	Steps    []string      `json:"steps,omitempty"`
	Checks   []string      `json:"checks,omitempty"`
	Problems []LintProblem `json:"problems"`
	Warnings []LintWarning `json:"warnings"`
	// Notes are what a push reports in addition: what was not checked, attributes that are not honoured.
	Notes []string `json:"notes"`
}

// Import is what  corpus-git import  found in a project.
type Import struct {
	Version  int           `json:"version"`
	Project  project.Name  `json:"project"`
	Files    []ImportFile  `json:"files"`
	Changes  []ImportLine  `json:"changes"`
	Problems []LintProblem `json:"problems"` // of the project as a whole
	Warnings []LintWarning `json:"warnings"`
	Builtin  int           `json:"builtin"`
	Deferred int           `json:"deferred"`
	Salt     int           `json:"salt"`
	Refused  int           `json:"refused"`
}

// ImportFile is a step or a task, and its runner: builtin, deferred (decided when it runs), salt, script, or refused.
type ImportFile struct {
	File string `json:"file"`
	Task bool   `json:"task,omitempty"`
	Runs string `json:"runs"`
	// States is the number of its states, if known.
	States int `json:"states,omitempty"`
	// Why says what the built-in runner does not support, or what is wrong, and At is where.
	Why  string `json:"why,omitempty"`
	At   string `json:"at,omitempty"`
	Hint string `json:"hint,omitempty"`
}

// ImportLine is a line that should be changed.
type ImportLine struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// LintProblem is an error, and its position.
type LintProblem struct {
	File  string `json:"file,omitempty"`
	Line  int    `json:"line,omitempty"`
	Col   int    `json:"col,omitempty"`
	Error string `json:"error"`
	Kind  string `json:"kind"`
	Hint  string `json:"hint,omitempty"`
}

// LintWarning is a remark about a file.
type LintWarning struct {
	File string `json:"file"`
	Text string `json:"text"`
}
