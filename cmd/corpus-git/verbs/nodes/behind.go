package nodes

import (
	"context"
	"fmt"
	"strings"

	"corpus-git/fleet"
	"corpus-git/project"
	"corpus-git/project/status"
)

// Lagging finds the nodes of a project, of all for "", that have another release than the live one.
type Lagging interface {
	Behind(ctx context.Context, of project.Name) (map[project.Name][]fleet.Behind, error)
}

// Behind adds to reports the nodes on which another release is live.
func Behind(ctx context.Context, f Lagging, reports []status.Report) error {
	if f == nil {
		return nil
	}
	var of project.Name
	if len(reports) == 1 {
		of = reports[0].Project.Name
	}
	all, err := f.Behind(ctx, of)
	if err != nil {
		return err
	}
	for i, r := range reports {
		for _, b := range all[r.Project.Name] {
			reports[i].Behind = append(reports[i].Behind, status.NodeBehind{Node: b.Node, Release: b.Release})
		}
	}
	return nil
}

// most limits how many nodes a line names.
const most = 5

// BehindText says, for people, which nodes have another release, and what to run.
func BehindText(name project.Name, list []status.NodeBehind) string {
	var out []string
	for i, b := range list {
		if i == most {
			out = append(out, fmt.Sprintf("and %d more", len(list)-most))
			break
		}
		if b.Release == "" {
			out = append(out, b.Node)
		} else {
			out = append(out, b.Node+" ("+b.Release.Short()+")")
		}
	}
	return "not the live release: " + strings.Join(out, ", ") + ":  corpus-git deploy " + string(name)
}
