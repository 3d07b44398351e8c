package app

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"corpus-git/project"
	"corpus-git/project/config"
)

// docsCommand writes generated documentation: man pages, completions, the reference of commands and settings.
func docsCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "docs", Short: "Write man pages, completions and the reference", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true
			for _, d := range []string{"man", "completions", "commands"} {
				if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
					return err
				}
			}
			if err := doc.GenManTree(root, &doc.GenManHeader{Title: "CORPUS-GIT", Section: "1", Source: "corpus-git " + Build().Release, Manual: "corpus-git"}, filepath.Join(dir, "man")); err != nil {
				return err
			}
			if err := doc.GenMarkdownTree(root, filepath.Join(dir, "commands")); err != nil {
				return err
			}
			comp := filepath.Join(dir, "completions")
			if err := root.GenBashCompletionFileV2(filepath.Join(comp, "corpus-git.bash"), true); err != nil {
				return err
			}
			if err := root.GenZshCompletionFile(filepath.Join(comp, "_corpus-git")); err != nil {
				return err
			}
			if err := root.GenFishCompletionFile(filepath.Join(comp, "corpus-git.fish"), true); err != nil {
				return err
			}
			keys, err := project.Reference(cmd.Context())
			if err != nil {
				return err
			}
			for name, page := range map[string]string{"configuration.md": config.Markdown(), "cfg-keys.md": keys} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(page), 0o644); err != nil { //nolint:gosec // documentation, for all
					return err
				}
			}
			return nil
		},
	}
	c.Flags().StringVar(&dir, "dir", "docs/generated", "where to")
	return c
}
