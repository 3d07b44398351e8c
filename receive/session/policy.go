package session

import (
	"strings"

	"corpus-git/git/refs"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/project"
)

// HiddenPrefix is the namespace of our own refs: never shown to a client, never accepted from one.
const HiddenPrefix = "refs/corpus/"

// Role is the action that a command requests.
type Role uint8

const (
	// Refuse does nothing; Item.Err says why.
	Refuse Role = iota
	// Store sets a ref to the client's value.
	Store
	// Delete removes a ref.
	Delete
	// Deploy is a push of the deployed branch, or of one that becomes it.
	Deploy
	// Redeploy is refs/deploy/*.
	Redeploy
	// Plan is refs/plan/*.
	Plan
	// Rollback is refs/rollback/*.
	Rollback
)

// Deploys reports whether a role runs the pipeline.
func (r Role) Deploys() bool { return r >= Deploy }

// Item is one command and its result.
type Item struct {
	project.Change
	Role Role
	// Err is why it was not done; nil means "ok" in the report.
	Err error
	// tag is the tag that the client pushed instead of the commit in New.
	tag project.Commit
	// branch is the branch of a first deployment that waits for approval, if this is a Redeploy of its commit.
	branch string
	// reason replaces Err's text in the report, "" keeps Err's own.
	reason string
}

func (i *Item) refuse(err error) { i.Role, i.Err = Refuse, err }

// Policy is what a repository allows.
type Policy struct {
	// StoreOtherBranches accepts branches that do not deploy; otherwise they are refused.
	StoreOtherBranches bool
	// Deployed is the deployed ref, ""> before the first push.
	Deployed string
	// Waiting returns the branch of a first deployment of a commit that waits for approval, "" if there is none; nil means none.
	Waiting func(commit project.Commit) string
	// Repo reports which of the project's repositories it is, Project which project.
	Repo    project.Repo
	Project project.Name
	// Remote is the remote's name in suggested commands: git does not send the user's own name for it.
	Remote string
}

// The branches that may deploy. The one that is pushed first becomes the deployed branch; master, if both are in the first push.
const (
	master = "refs/heads/master"
	main   = "refs/heads/main"
)

// Classify assigns a role to each command, by names only: old values and objects are checked later. The second result is the deploying
// item, nil if there is none.
func (p Policy) Classify(cmds []project.Change) (items []*Item, deploying *Item) {
	becomes := p.Deployed
	if becomes == "" {
		for _, c := range cmds {
			if c.New != "" && (c.Ref == master || c.Ref == main && becomes == "") {
				becomes = c.Ref
			}
		}
	}
	var all []*Item
	for _, c := range cmds {
		i := &Item{Change: c}
		p.classify(i, becomes)
		items = append(items, i)
		if i.Role.Deploys() {
			all = append(all, i)
		}
	}
	if len(all) > 1 {
		var names []string
		for _, i := range all {
			names = append(names, i.Ref)
		}
		err := fault.New(fault.Refused, "", "a push can deploy only once, but this one asks for %d deployments: %s", len(all), printable.Line(strings.Join(names, ", "))).
			WithHint("push them one after the other")
		for _, i := range all {
			i.refuse(err)
		}
		return items, nil
	}
	if len(all) == 1 {
		deploying = all[0]
	}
	return items, deploying
}

func refused(format string, args ...any) *fault.Error {
	return fault.New(fault.Refused, "", format, args...)
}

func (p Policy) classify(i *Item, becomes string) {
	if strings.HasPrefix(i.Ref, HiddenPrefix) || i.Ref == strings.TrimSuffix(HiddenPrefix, "/") {
		i.refuse(refused("%s is reserved for the server", printable.Line(i.Ref)))
		return
	}
	if err := refs.CheckName(i.Ref); err != nil {
		i.refuse(refused("%w", err))
		return
	}
	kind, rest, _ := strings.Cut(strings.TrimPrefix(i.Ref, "refs/"), "/")
	switch kind {
	case "deploy", "plan", "rollback":
		p.virtual(i, kind, rest)
	case "heads":
		p.branch(i, becomes)
	case "tags", "notes":
		i.Role = Store
		if i.New == "" {
			i.Role = Delete
		}
	default:
		switch {
		case i.New == "":
			i.Role = Delete
		case p.StoreOtherBranches:
			i.Role = Store
		default:
			i.refuse(refused("%s: only branches, tags and notes can be stored", printable.Line(i.Ref)))
		}
	}
}

func (p Policy) virtual(i *Item, kind, rest string) {
	if i.New == "" {
		i.refuse(refused("%s is never stored: there is nothing to delete", printable.Line(i.Ref)))
		return
	}
	if i.Old != "" {
		i.refuse(refused("%s is never stored, so it cannot be at %s", printable.Line(i.Ref), i.Old.Short()))
		return
	}
	switch kind {
	case "deploy":
		if p.Deployed == "" && p.Waiting != nil {
			i.branch = p.Waiting(i.New)
		}
		if p.Deployed == "" && i.branch == "" {
			i.refuse(refused("nothing has been deployed yet").WithHint("push the branch itself first:  git push %s HEAD:%s", p.Remote, short(master)))
			return
		}
		i.Role = Redeploy
	case "plan":
		i.Role = Plan
	case "rollback":
		i.Role = Rollback
		if rest == "last" {
			return
		}
		if _, err := project.ParseIDPrefix(rest); err != nil {
			i.refuse(refused("%q is not the ID of a deployment", rest).
				WithHint("git push %s HEAD:refs/rollback/ID , with the full ID or its first 4 or more digits as deployments prints it; or  refs/rollback/last", p.Remote))
		}
	}
}

func (p Policy) branch(i *Item, becomes string) {
	switch {
	case i.New == "" && i.Ref == p.Deployed:
		i.refuse(refused("%s is the deployed branch and cannot be deleted", short(i.Ref)).
			WithHint("to delete the project:  corpus-git project destroy %s", p.Project))
	case i.New == "":
		i.Role = Delete
	case i.Ref == becomes:
		i.Role = Deploy
	case p.StoreOtherBranches:
		i.Role = Store
	case becomes == "":
		i.refuse(refused("%s is not the deployed branch: the first push of master or main decides which of the two is", short(i.Ref)).
			WithHint("to deploy it, type  git push %s %s", p.Remote, printable.Word(branchName(i.Ref)+":master")))
	default:
		i.refuse(refused("%s is not the deployed branch (%s is), and other branches are not stored", short(i.Ref), short(becomes)).
			WithHint("to deploy it, type  git push %s %s", p.Remote, printable.Word(branchName(i.Ref)+":"+branchName(becomes))))
	}
}

// short returns a branch without refs/heads/, safe to print.
func short(ref string) string { return printable.Line(branchName(ref)) }

func branchName(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") }
