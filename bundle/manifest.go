package bundle

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
)

// Release is what a deployment pins. Its fields alone determine what is deployed.
type Release struct {
	Project project.Name `json:"project"`
	// Code and Pillar are the two commits; Pillar is "" if the project has none.
	Code   project.Commit `json:"code"`
	Pillar project.Commit `json:"pillar,omitempty"`
	// CodeBranch and PillarBranch are the branches that deploy: refs/heads/master or refs/heads/main.
	CodeBranch   string `json:"code_branch"`
	PillarBranch string `json:"pillar_branch,omitempty"`
	// Environment is the project's environment on the machine that made the bundle, "" if its configuration sets it.
	Environment string `json:"environment,omitempty"`
	// Set is what was set on the command line, with precedence over the pillar.
	Set []project.Setting `json:"set,omitempty"`
	// Recipes are those that the code's recipe extends, directly and through others. They are left out for a machine that takes none (Tips.Recipes).
	Recipes []Recipe `json:"recipes,omitempty"`
}

// Recipe is one entry of the files extends.yaml of a release, with the commit that the machine that made the bundle resolved it to.
type Recipe struct {
	// Project is a project of that machine, URL a repository elsewhere: one of them is set.
	Project project.Name `json:"project,omitempty"`
	URL     string       `json:"url,omitempty"`
	// Ref is the branch, the tag or the commit that the entry names, "" for what was live in the project.
	Ref    string         `json:"ref,omitempty"`
	Commit project.Commit `json:"commit"`
	// Part is the commit with the part of the files that the recipe needs, which alone is in bundles.
	Part project.Commit `json:"part"`
}

// String returns the entry, for people.
func (r Recipe) String() string {
	out := cmp.Or(string(r.Project), r.URL)
	if r.Ref != "" {
		out += "@" + r.Ref
	}
	return printable.Text(out)
}

// Lacking returns those of the recipes whose parts are not among have.
func Lacking(list []Recipe, have []project.Commit) []Recipe {
	return slices.DeleteFunc(slices.Clone(list), func(r Recipe) bool { return slices.Contains(have, r.Part) })
}

// Parted lists the parts of recipes, each once, in order.
func Parted(list []Recipe) (out []project.Commit) {
	for _, r := range list {
		out = append(out, r.Part)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// maxRecipes limits the recipes of a release, maxName the length of a URL or a ref.
const (
	maxRecipes = 4096
	maxName    = 4096
)

// checkRecipes refuses recipes that cannot be.
func checkRecipes(list []Recipe) error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Refused, "", "the bundle's manifest: "+format, args...)
	}
	if len(list) > maxRecipes {
		return bad("it names more than %d recipes", maxRecipes)
	}
	seen := map[Recipe]bool{}
	for _, r := range list {
		if _, err := project.ParseName(string(r.Project)); r.Project != "" && err != nil || (r.Project == "") == (r.URL == "") || len(r.URL) > maxName || len(r.Ref) > maxName {
			return bad("%q is not a recipe", r.String())
		}
		for _, x := range []project.Commit{r.Commit, r.Part} {
			if c, ok := project.ParseCommit(string(x)); !ok || c != x || c == "" {
				return bad("%q is not a commit of the recipe %s", string(x), r)
			}
		}
		entry := Recipe{Project: r.Project, URL: r.URL, Ref: r.Ref}
		if seen[entry] {
			return bad("the recipe %s is named twice", r)
		}
		seen[entry] = true
	}
	return nil
}

// Digest identifies the content: SHA-256 of the release's JSON, in hexadecimal.
func (r Release) Digest() (string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// KeysDigest identifies keys with their values: SHA-256 of the JSON object, in hexadecimal; "" for no keys.
func KeysDigest(keys json.RawMessage) string {
	if len(keys) == 0 {
		return ""
	}
	sum := sha256.Sum256(keys)
	return hex.EncodeToString(sum[:])
}

// Pack describes one of the packs of a bundle.
type Pack struct {
	Repo    project.Repo `json:"repo"`
	Objects int          `json:"objects"`
	Bytes   int64        `json:"bytes"`
	SHA256  string       `json:"sha256"`
	// Commits are the commits that a pack of submodules, or of the parts of recipes, brings, each with its tree and without history.
	Commits []project.Commit `json:"commits,omitempty"`
}

// Packs of what a release has besides its two commits: the submodules of the code, those of the pillar, the recipes. A program that does not know them refuses a bundle that has one.
const (
	CodeSubmodules   project.Repo = "submodules"
	PillarSubmodules project.Repo = "pillar-submodules"
	Recipes          project.Repo = "recipes"
)

// maxSubmodules limits the commits of one pack of submodules: a release has no more.
const maxSubmodules = 1000

// check refuses a pack that cannot be.
func (p Pack) check() error {
	bad := fault.New(fault.Refused, "", "the bundle's manifest: a pack of %q of %d bytes", string(p.Repo), p.Bytes)
	switch p.Repo {
	case project.Code, project.PillarRepo:
		if len(p.Commits) > 0 {
			return bad
		}
	case CodeSubmodules, PillarSubmodules:
		if len(p.Commits) == 0 || len(p.Commits) > maxSubmodules {
			return bad
		}
	case Recipes:
		if len(p.Commits) == 0 || len(p.Commits) > maxRecipes {
			return bad
		}
	default:
		return bad
	}
	if p.Bytes <= 0 || len(p.SHA256) != 2*sha256.Size {
		return bad
	}
	for _, x := range p.Commits {
		if c, ok := project.ParseCommit(string(x)); !ok || c != x || c == "" {
			return fault.New(fault.Refused, "", "the bundle's manifest: %q is not a commit of the pack %s", string(x), p.Repo)
		}
	}
	return nil
}

// Node is a machine as the maker of a bundle knows it.
type Node struct {
	Name  string   `json:"name,omitempty"`
	Roles []string `json:"roles,omitempty"`
}

// Manifest describes what is in a bundle, and what it was made for.
type Manifest struct {
	Release Release `json:"release"`
	Digest  string  `json:"digest"`
	// Deployment is the ID of its deployment, on each machine: a bundle is deployed once.
	Deployment project.ID `json:"deployment"`
	// Node is the machine's name and roles among its maker's nodes; zero if it is not one.
	Node Node `json:"node,omitzero"`
	// Lease is the revision of its maker's lease on its nodes: a machine refuses a lease older than one that it has already seen. 0 means none.
	Lease int64 `json:"lease,omitempty"`
	// Exports are what the nodes of earlier stages wrote: project.Deployment.Exports.
	Exports json.RawMessage `json:"exports,omitempty"`
	// Leader is the token of the machine's election as the leader of the project, 0 if it does not lead.
	Leader int64 `json:"leader,omitempty"`
	// KV are the keys of its maker that the project sees, with their values, as a JSON object, and KVDigest the KeysDigest of it, "" if there are none. KV is left out for a machine that has them (Tips.KV).
	KV       json.RawMessage `json:"kv,omitempty"`
	KVDigest string          `json:"kv_digest,omitempty"`
	// Task runs a task of the live release, in place of a deployment; the bundle then has no packs.
	Task string `json:"task,omitempty"`
	// Restore restores what was live before this deployment, if it was the last that went live; the bundle then has no packs.
	Restore project.ID `json:"restore,omitempty"`
	// Also are later deployments of the same order: what went live last may be one of them, if Restore takes all of them back.
	Also []project.ID `json:"also,omitempty"`
	// Undeploy undeploys the project; the bundle then has no packs. Restore is then Deployment itself, which an earlier release of corpus-git does not find.
	Undeploy bool `json:"undeploy,omitempty"`
	// Select selects what is run.
	Select project.Selection `json:"select,omitzero"`
	By     project.Pusher    `json:"by"`
	At     time.Time         `json:"at"`
	// From is the machine that made it, Program the version of corpus-git there.
	From    string `json:"from,omitempty"`
	Program string `json:"program,omitempty"`
	Packs   []Pack `json:"packs,omitempty"`
}

// check refuses a manifest that cannot be deployed, whoever signed it.
func (m *Manifest) check() error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Refused, "", "the bundle's manifest: "+format, args...)
	}
	r := m.Release
	if _, err := project.ParseName(string(r.Project)); err != nil {
		return bad("%w", err)
	}
	if _, err := project.ParseIDPrefix(string(m.Deployment)); err != nil || len(m.Deployment) != 36 {
		return bad("%q is not the ID of a deployment", string(m.Deployment))
	}
	for _, x := range []struct {
		repo   project.Repo
		commit project.Commit
		branch string
	}{{project.Code, r.Code, r.CodeBranch}, {project.PillarRepo, r.Pillar, r.PillarBranch}} {
		if x.commit == "" && x.repo == project.PillarRepo {
			continue
		}
		if c, ok := project.ParseCommit(string(x.commit)); !ok || c != x.commit || c == "" {
			return bad("%q is not a commit of %s.git", string(x.commit), x.repo)
		}
		if name, ok := strings.CutPrefix(x.branch, "refs/heads/"); !ok || name != "master" && name != "main" {
			return bad("%q is not a branch that deploys", x.branch)
		}
	}
	if strings.ContainsAny(m.Task, "/\x00") || strings.HasPrefix(m.Task, ".") {
		return bad("%q is not a valid task name", m.Task)
	}
	if m.Restore != "" {
		if _, err := project.ParseIDPrefix(string(m.Restore)); err != nil || len(m.Restore) != 36 {
			return bad("%q is not the ID of a deployment", string(m.Restore))
		}
	}
	if err := checkRecipes(r.Recipes); err != nil {
		return err
	}
	digest, err := r.Digest()
	if err != nil {
		return err
	}
	if digest != m.Digest {
		return bad("the digest of its release is %s, not %s", digest, m.Digest)
	}
	seen := map[project.Repo]bool{}
	for _, p := range m.Packs {
		if err := p.check(); err != nil {
			return err
		}
		if seen[p.Repo] || r.Pillar == "" && (p.Repo == project.PillarRepo || p.Repo == PillarSubmodules) {
			return bad("a pack of %q too many", string(p.Repo))
		}
		for _, c := range p.Commits {
			if p.Repo == Recipes && !slices.ContainsFunc(r.Recipes, func(x Recipe) bool { return x.Part == c }) {
				return bad("the pack of recipes brings %s, which is of none that it names", c.Short())
			}
		}
		seen[p.Repo] = true
	}
	return nil
}

// Objects counts what the packs hold.
func (m *Manifest) Objects() (n int) {
	for _, p := range m.Packs {
		n += p.Objects
	}
	return n
}
