package fleet

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/internal/vfs"
	"corpus-git/project"
)

// Progress is the progress of a rollout, as in its file, which is kept after the rollout has ended.
type Progress struct {
	Deployment project.Deployment `json:"deployment"`
	Plan       *Plan              `json:"plan"`
	State      string             `json:"state"`
	// Waits: every node is ready, and the rollout has waited since, while it was paused or for what a stage waits for.
	Waits bool `json:"waits,omitempty"`
	// Paused: no further node is begun.
	Paused  bool            `json:"paused,omitempty"`
	Started time.Time       `json:"started"`
	Ended   time.Time       `json:"ended,omitzero"`
	Nodes   []NodeProgress  `json:"nodes"`
	Stages  []StageProgress `json:"stages"`
	// Leader is the node on which the steps of the leader run, Token is that of its election.
	Leader string `json:"leader,omitempty"`
	Token  int64  `json:"token,omitempty"`
	// KV are the keys that the nodes receive, with their values, as a JSON object: the same for all nodes of a stage.
	KV json.RawMessage `json:"kv,omitempty"`
	// Others are nodes of the project that the rollout does not include, with the outputs of their last deployment that went live.
	Others []NodeProgress `json:"others,omitempty"`

	// at is the index of each of Nodes, by name; nil before its first use.
	at map[string]int
}

// NodeProgress is what is known about a node.
type NodeProgress struct {
	Member
	Stage string `json:"stage"`
	State string `json:"state"`
	// Run counts the deployments there, if its stage sets settle.
	Run int `json:"run,omitempty"`
	// Reason says why it failed, or is missing. Touched, of a failed node, says that parts of the deployment may be on it.
	Reason  string `json:"reason,omitempty"`
	Touched bool   `json:"touched,omitempty"`
	// Strays, of a failed node that answered, says that the new release is live there.
	Strays bool `json:"strays,omitempty"`
	// Late, of a missing node, says that it belongs to a batch: it was drained or removed when the rollout had begun.
	Late bool `json:"late,omitempty"`
	// Exports are what its steps wrote, by name; secrets are not among them.
	Exports map[string]json.RawMessage `json:"exports,omitempty"`
}

// StageProgress is the progress of a stage.
type StageProgress struct {
	Name string `json:"name"`
	// Waited: what the stage waits for was available.
	Waited bool `json:"waited,omitempty"`
	// Entered, Before and Done count the batches whose steps before them have begun, those whose steps before them have run, and those that are complete.
	Entered int `json:"entered,omitempty"`
	Before  int `json:"before,omitempty"`
	Done    int `json:"done,omitempty"`
	// Of is the number of batches.
	Of int `json:"of"`
}

// The values of Progress.State.
const (
	Running     = "running"
	RollingBack = "rolling back"
	Live        = "live"
	RolledBack  = "rolled back"
	// Halted is a failure after which nodes stay as they are, because of on_failure.
	Halted = "halted"
	// Incomplete is a rollback that could not reach every node.
	Incomplete = "rollback incomplete"
)

// The values of NodeProgress.State.
const (
	Waiting    = "waiting"
	Ready      = "ready" // it has received the deployment, has archived, and waits for the order to continue
	Applying   = "applying"
	NodeLive   = "live"
	NodeBack   = "rolled back"
	NodeFailed = "failed" // it has rolled itself back, never began, or became unreachable
	Missing    = "missing"
)

// Complete reports whether nothing is left to do for the rollout.
func (p *Progress) Complete() bool { return p.State != Running && p.State != RollingBack }

// Begun reports whether every node was ready, and the rollout has deployed on one, run a step for it, or waited.
func (p *Progress) Begun() bool {
	return p.Waits || slices.ContainsFunc(p.Nodes, func(n NodeProgress) bool { return n.State != Waiting && n.State != Ready && n.State != Missing }) ||
		slices.ContainsFunc(p.Stages, func(s StageProgress) bool { return s.Entered > 0 || s.Before > 0 || s.Done > 0 })
}

// NotLive returns the nodes on which the deployment is not live, by name: those that a retry deploys.
func (p *Progress) NotLive() (names []string) {
	for _, n := range p.Nodes {
		if n.State != NodeLive {
			names = append(names, n.Name)
		}
	}
	return names
}

// Retry returns the deployment for the nodes on which the rollout's is not live, and on those that were drained; an error if it is running, if nothing is left to
// do, or if the leader's steps would run nowhere. drained reports which nodes are drained now, or removed.
func (p *Progress) Retry(drained func(name string) bool) (project.Deployment, error) {
	was := p.Deployment
	nodes := p.NotLive()
	live := "every node"
	for _, name := range p.Plan.Skipped {
		if drained(name) {
			live = "every node that is not drained"
		} else {
			nodes = append(nodes, name)
		}
	}
	switch {
	case !p.Complete():
		return was, fault.New(fault.Refused, "rollout retry", "the rollout %s has not ended", was.ID.Short()).WithHint("corpus-git rollout show %s", was.Project)
	case len(nodes) == 0:
		return was, fault.New(fault.Refused, "rollout retry", "%s is live on %s", was.Code.Short(), live)
	}
	if err := p.leaderReplaced(nodes, drained); err != nil {
		return was, err
	}
	for _, s := range was.Set {
		if s.Secret && s.Value == "" {
			return was, fault.New(fault.Refused, "rollout retry", "the value of %s was secret, and was not kept", s.Key).WithHint("deploy again, with the value")
		}
	}
	d := project.Deployment{Project: was.Project, Trigger: was.Trigger, Repo: was.Repo, Select: was.Select, Set: was.Set, Overwrite: was.Overwrite, Forced: was.Forced, AllowEmpty: was.AllowEmpty, Restore: was.Restore, Job: was.Job, Nodes: nodes}
	if p.State == Live {
		d.Trigger, d.Repo, d.Restore = project.TriggerRedeploy, "", ""
	} else {
		d.Change = was.Change
	}
	return d, nil
}

// exports returns the outputs of the nodes of earlier stages, by role, node and name; nil if there are none.
func (p *Progress) exports(before string) (json.RawMessage, error) {
	out := map[string]map[string]map[string]json.RawMessage{}
	add := func(n NodeProgress) {
		if n.State != NodeLive || len(n.Exports) == 0 {
			return
		}
		for _, role := range n.Roles {
			if out[role] == nil {
				out[role] = map[string]map[string]json.RawMessage{}
			}
			out[role][n.Name] = n.Exports
		}
	}
	for _, s := range p.Plan.Stages {
		if s.Name == before {
			break
		}
		for _, m := range s.Nodes {
			add(*p.node(m.Name))
		}
	}
	for _, n := range p.Others {
		add(n)
	}
	if len(out) == 0 {
		return nil, nil
	}
	return json.Marshal(out)
}

// others returns the outputs of nodes from the rollouts before this one, the newest first.
func others(names []string, before []*Progress) (out []NodeProgress) {
	for _, name := range names {
		for _, old := range before {
			all := slices.Concat(old.Nodes, old.Others)
			i := slices.IndexFunc(all, func(n NodeProgress) bool { return n.Name == name && n.State == NodeLive })
			if i < 0 {
				continue
			}
			if len(all[i].Exports) > 0 {
				out = append(out, all[i])
			}
			break
		}
	}
	return out
}

// Count counts the nodes in each state.
func (p *Progress) Count() map[string]int {
	out := map[string]int{}
	for _, n := range p.Nodes {
		out[n.State]++
	}
	return out
}

// maxProgress limits the size of a rollout's file, in bytes.
const maxProgress = 64 << 20

// ReadProgress reads the file of a rollout; ok is false if there is none.
func ReadProgress(path string) (p *Progress, ok bool, err error) {
	fi, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err == nil && fi.Size() > maxProgress {
		err = fmt.Errorf("it is longer than %d bytes", maxProgress)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", path, err)
	}
	return p, true, nil
}

// write makes the file durable.
func (p *Progress) write(f vfs.FS, path string) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return writeProgress(f, path, text)
}

func writeProgress(f vfs.FS, path string, text []byte) error {
	if err := f.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return vfs.WriteFileAtomic(f, path, append(text, '\n'), 0o600)
}

// History returns the rollouts whose files are in a folder, those of one project or, for "", of all, the newest first. A file that cannot be read is
// skipped.
func History(dir string, name project.Name) ([]*Progress, error) {
	return history(dir, name, func(string) bool { return true })
}

// history is History of the files with some IDs.
func history(dir string, name project.Name, some func(id string) bool) ([]*Progress, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []*Progress
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") || strings.HasPrefix(e.Name(), ".") || !some(strings.TrimSuffix(e.Name(), ".json")) {
			continue
		}
		p, ok, err := ReadProgress(filepath.Join(dir, e.Name()))
		if err != nil || !ok || p.Plan == nil || name != "" && p.Deployment.Project != name {
			continue
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *Progress) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(b.Deployment.ID, a.Deployment.ID))
	})
	return out, nil
}

// kept is the number of ended rollouts that are kept in a project's history.
const kept = 20

// Conclude records how a rollout ended, if it has a file that has not ended, and removes the oldest of the project's. It is durable on return.
func Conclude(f vfs.FS, path, state string, now time.Time) error {
	p, ok, err := ReadProgress(path)
	if err != nil || !ok || p.Complete() {
		return err
	}
	p.State, p.Ended, p.Paused = state, now, false
	if err := p.write(f, path); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	all, err := History(dir, p.Deployment.Project)
	if err != nil {
		return err
	}
	n := 0
	for _, old := range all {
		if n++; n <= kept || !old.Complete() {
			continue
		}
		if err := f.Remove(filepath.Join(dir, string(old.Deployment.ID)+".json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
