// Package recipes is the verb about recipes.
//
// It owns its words, flags and output. What it needs of who types it, and of the server, is in Session; it keeps nothing.
package recipes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/verbs/nodes"
	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/procedures/extends"
	"corpus-git/project"
)

// Recipes reads what is live.
type Recipes interface {
	// Recipe reports where each file is from, which files the configuration writes and, with values, what each layer says of the configuration where a recipe says something.
	Recipe(ctx context.Context, name project.Name, values bool) ([]extends.RecipeOf, []extends.Origin, []extends.Written, []project.Explained, error)
}

// Session is one run of the verb.
type Session struct {
	nodes.Session
	Recipes Recipes
}

// Document is what recipe show --json prints.
type Document struct {
	Version int          `json:"version"`
	Project project.Name `json:"project"`
	// Recipes are those that it is made of, the strongest first.
	Recipes []extends.RecipeOf `json:"recipes"`
	Files   []extends.Origin   `json:"files"`
	// Written are the files that deployments write from the configuration.
	Written []extends.Written   `json:"written,omitempty"`
	Values  []project.Explained `json:"values,omitempty"`
}

// Command returns the verb recipe.
func Command(s Session) *cobra.Command {
	return s.Group("recipe", "Show the recipe of the live release", show(s))
}

func show(s Session) *cobra.Command {
	var values bool
	c := &cobra.Command{
		Use: "show PROJECT", Short: "Show which recipe each file comes from", Args: s.Exactly("PROJECT"),
		RunE: func(_ *cobra.Command, args []string) error {
			right := project.Read
			if values {
				right = project.Configure
			}
			name, err := s.Project("recipe show", args[0], right)
			if err != nil {
				return err
			}
			doc := Document{Version: 1, Project: name}
			if doc.Recipes, doc.Files, doc.Written, doc.Values, err = s.Recipes.Recipe(s.Context, name, values); err != nil {
				return err
			}
			if s.JSON() {
				return s.Document(doc)
			}
			return list(s, doc)
		},
	}
	c.Flags().BoolVar(&values, "values", false, "also show the values of all PILLAR.sample files, with other layers")
	return s.JSONFlag(c)
}

func list(s Session, doc Document) error {
	p := s.Printer()
	width := 0
	for _, r := range doc.Recipes {
		p.Line("%s at %s", r.Name, r.Commit.Short())
	}
	for _, f := range doc.Files {
		width = max(width, min(len(printable.Line(f.Path)), 50))
	}
	if len(doc.Files) > 0 {
		p.Line("")
	}
	for _, f := range doc.Files {
		text := strings.Join(f.From, ", ")
		if len(f.Hides) > 0 {
			text += "  instead of " + strings.Join(f.Hides, ", ")
		}
		p.Line("%-*s  %s", width, printable.Line(f.Path), text)
	}
	if len(doc.Written) > 0 {
		p.Line("")
	}
	for _, w := range doc.Written {
		p.Line("writes %s (%s)  %s", printable.Line(w.Path), w.Kind, strings.Join(w.From, ", "))
	}
	if len(doc.Values) > 0 {
		p.Line("")
	}
	for _, line := range Explained(doc.Values) {
		p.Line("%s", printable.Text(line))
	}
	return p.Err()
}

// Explained formats values for people: the effective one, and below it what each layer sets and where, the strongest first.
func Explained(list []project.Explained) (out []string) {
	for _, v := range list {
		out = append(out, v.Key+": "+v.Value)
		width := 0
		for _, l := range v.Layers {
			width = max(width, min(len(l.Value), 60))
		}
		for _, l := range slices.Backward(v.Layers) {
			at := string(l.Layer)
			if l.File != "" {
				at = fault.Pos{File: l.File, Line: l.Line}.String()
			}
			out = append(out, fmt.Sprintf("  %-*s  # %s", width, l.Value, at))
		}
	}
	return out
}
