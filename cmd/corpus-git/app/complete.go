package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"corpus-git/access"
	"corpus-git/cmd/corpus-git/control"
	"corpus-git/layout"
	"corpus-git/procedures/recipe"
	"corpus-git/project"
	"corpus-git/project/approval"
	"corpus-git/project/config"
	"corpus-git/project/status"
	"corpus-git/signals"
)

// completes adds shell completion for the arguments and flags of a command.
func (c *command) completes(cmd *cobra.Command) {
	words := argumentWords(cmd)
	if len(words) > 0 {
		cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			word := words[min(len(args), len(words)-1)]
			if len(args) >= len(words) && !strings.HasSuffix(word, "...") {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			if word == "FILE" {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return c.offers(strings.TrimSuffix(word, "..."), args), cobra.ShellCompDirectiveNoFileComp
		}
	}
	for flag, offers := range map[string]string{"only": "PROCEDURE", "skip": "PROCEDURE", "only-steps": "STEP", "user": "USER", "project": "PROJECT"} {
		if cmd.Flags().Lookup(flag) == nil {
			continue
		}
		_ = cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			// The text before the last comma is kept.
			before := typed[:strings.LastIndexByte(typed, ',')+1]
			var out []string
			for _, o := range c.offers(offers, args) {
				out = append(out, before+o)
			}
			return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		})
	}
}

// argumentWords returns the placeholders in a command's usage: PROJECT, DEPLOYMENT, UNIT...; NAME means the object of the command.
func argumentWords(cmd *cobra.Command) []string {
	_, usage, _ := strings.Cut(cmd.Use, " ")
	var out []string
	for _, w := range strings.Fields(usage) {
		w = strings.Trim(w, "[]")
		if w == "--" {
			break
		}
		parent := ""
		if cmd.HasParent() {
			parent = cmd.Parent().Name()
		}
		switch {
		case w == "NAME" && !slices.Contains([]string{"add", "create", "join", "attach"}, cmd.Name()): // these create it
			w = strings.ToUpper(parent)
		case w == "KEY" && parent != "key": // of a configuration, of kv, of a bundle's signer
			w = strings.ToUpper(parent) + " KEY"
		case w == "DEPLOYMENT" && (cmd.Name() == "approve" || cmd.Name() == "reject"):
			w = "WAITING"
		}
		out = append(out, w)
	}
	return out
}

// offers returns the candidates for a placeholder, as far as a running server, queried as the caller, and the live tree provide them. Having none is not an
// error: completion must not block or fail.
func (c *command) offers(word string, args []string) []string {
	cfg, err := c.stateSettings().load()
	if err != nil {
		return nil
	}
	var out []string
	switch word {
	case "PROJECT":
		var doc status.Projects
		c.ask(cfg, &doc, "project", "list")
		for _, p := range doc.Projects {
			out = append(out, string(p.Name))
		}
	case "KEY":
		var doc struct{ Keys []access.Key }
		c.ask(cfg, &doc, "key", "list")
		for _, k := range doc.Keys {
			out = append(out, k.Name)
		}
	case "USER":
		var doc struct{ Users []access.Principal }
		c.ask(cfg, &doc, "user", "list")
		for _, u := range doc.Users {
			out = append(out, u.Name)
		}
	case "TOKEN":
		var doc struct{ Tokens []access.Token }
		c.ask(cfg, &doc, "token", "list")
		for _, t := range doc.Tokens {
			out = append(out, t.Name+"\t"+t.Principal)
		}
	case "NODE":
		var doc struct{ Nodes []struct{ Name string } }
		c.ask(cfg, &doc, "node", "list")
		for _, n := range doc.Nodes {
			out = append(out, n.Name)
		}
	case "KV KEY", "PREFIX":
		var doc struct{ Keys []struct{ Key string } }
		c.ask(cfg, &doc, "kv", "list")
		for _, k := range doc.Keys {
			out = append(out, k.Key)
		}
	case "SINK":
		for _, s := range cfg.Notify.All() {
			out = append(out, s.Name+"\t"+s.Kind)
		}
	case "PROCEDURE":
		out = project.Procedures()
	case "read|deploy|configure|shell|approve|admin":
		out = strings.Split(word, "|")
	default:
		if len(args) > 0 {
			return c.offersOf(cfg, word, args[0])
		}
	}
	return out
}

// offersOf returns the candidates that belong to one project.
func (c *command) offersOf(cfg *config.Config, word, name string) (out []string) {
	switch word {
	case "DEPLOYMENT":
		var doc status.Deployments
		c.ask(cfg, &doc, "deployments", name)
		for _, d := range doc.Deployments {
			out = append(out, d.ID.Short()+"\t"+string(d.State)+", "+string(d.Trigger))
		}
	case "WAITING":
		var doc approval.Document
		c.ask(cfg, &doc, "approvals", name)
		for _, r := range doc.Approvals {
			out = append(out, r.ID.Short()+"\tby "+r.Deployment.Pusher.Key)
		}
	case "WAIT":
		var doc signals.Document
		c.ask(cfg, &doc, "waits", name)
		for _, w := range doc.Waits {
			out = append(out, w.Wait)
		}
	case "ARCHIVE":
		var doc status.Archives
		c.ask(cfg, &doc, "archives", "list", name)
		for _, a := range doc.Archives {
			out = append(out, a.ID.Short()+"\t"+a.Code.Short())
		}
	case "UNIT":
		var doc status.Units
		c.ask(cfg, &doc, "ps", name)
		for _, u := range doc.Units {
			out = append(out, u.Unit+"\t"+u.State)
		}
	case "STEP", "TASK":
		parsed, err := project.ParseName(name)
		if err != nil {
			return nil
		}
		files := os.DirFS(filepath.Join(layout.Root(cfg.Root).Project(parsed.String()).Live(), layout.SaltDir))
		if word == "TASK" {
			out, _ = recipe.TaskNames(files)
			return out
		}
		steps, err := recipe.Steps(files)
		if err != nil {
			return nil
		}
		for _, s := range steps {
			out = append(out, s.Name)
		}
	}
	return out
}

// ask reads the JSON output of a verb from the running server into doc, which stays empty if there is no response within a second.
func (c *command) ask(cfg *config.Config, doc any, argv ...string) {
	server, err := control.Dial(layout.State(cfg.StateDir).Socket())
	if err != nil {
		return
	}
	defer server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var out bytes.Buffer
	if code, err := server.Do(ctx, control.Request{Argv: append(argv, "--json")}, nil, &out, io.Discard); err == nil && code == 0 {
		_ = json.Unmarshal(out.Bytes(), doc)
	}
}
