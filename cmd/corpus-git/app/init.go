package app

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"corpus-git/cmd/corpus-git/verbs"
	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/layout"
	"corpus-git/project/status"
	"corpus-git/skeletons"
)

// ownSkeletons returns the directory of the operator's skeletons.
func (c *command) ownSkeletons() (string, error) {
	cfg, err := c.stateSettings().load()
	if err != nil {
		return "", err
	}
	return layout.State(cfg.StateDir).Skeletons(), nil
}

func (c *command) skeletonsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "skeletons", Short: "List the skeletons for new projects",
		Long: "Lists the built-in skeletons, and the directories in <state_dir>/skeletons.\nStart a project with one:  corpus-git init --skeleton NAME DIR",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			own, err := c.ownSkeletons()
			if err != nil {
				return err
			}
			all, err := skeletons.List(own)
			if err != nil {
				return err
			}
			if asJSON {
				return verbs.WriteDocument(c.Stdout, struct {
					Version   int                  `json:"version"`
					Skeletons []skeletons.Skeleton `json:"skeletons"`
				}{status.Version, all})
			}
			for _, s := range all {
				from := ""
				if s.Own {
					from = "  (" + s.Dir + ")"
				}
				fmt.Fprintf(c.Stdout, "%-13s %s%s\n", s.Name, s.Title, from)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON document")
	return cmd
}

func (c *command) initCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "init [DIR]", Short: "Create the files of a new project from a skeleton",
		Long: "Writes a skeleton to DIR (default: the current directory): an application that can be pushed as it is, and the .salt\n" +
			"that deploys it. Existing files are not replaced. --skeleton is a name from  corpus-git skeletons , a directory (./mine), or the\n" +
			"URL of a git repository.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			own, err := c.ownSkeletons()
			if err != nil {
				return err
			}
			s, done, err := c.skeleton(own, name)
			if err != nil {
				return err
			}
			defer done()
			n, err := s.Write(dir)
			if err != nil {
				return err
			}
			abs, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.Stdout, "wrote %s of %s to %s\n", humanize.Plural(n, "file"), printable.Line(s.Name), printable.Line(abs))
			fmt.Fprintf(c.Stdout, "check it:  corpus-git lint %s\n", printable.Word(dir))
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "skeleton", "shell", "the skeleton: a name, the path of a folder, or the URL of a git repository")
	return cmd
}

// isURL reports whether git would fetch a skeleton of this name from elsewhere: a URL, or host:path as in git-clone(1).
func isURL(name string) bool {
	if strings.Contains(name, "://") {
		return true
	}
	before, _, ok := strings.Cut(name, ":")
	return ok && !strings.Contains(before, "/")
}

// skeleton finds a skeleton; one of a git repository is cloned to a temporary folder, which done removes.
func (c *command) skeleton(own, name string) (s skeletons.Skeleton, done func(), err error) {
	if !isURL(name) {
		s, err = skeletons.Find(own, name)
		return s, func() {}, err
	}
	dir, done, err := c.clone(name)
	if err != nil {
		return s, nil, err
	}
	s, err = skeletons.Find(own, dir)
	return s, done, err
}

// clone clones a URL to a temporary directory, which done removes.
func (c *command) clone(url string) (dir string, done func(), err error) {
	tmp, err := os.MkdirTemp("", "corpus-git-clone-")
	if err != nil {
		return "", nil, err
	}
	done = func() { _ = os.RemoveAll(tmp) }
	base := strings.TrimSuffix(path.Base(strings.ReplaceAll(strings.TrimRight(url, "/"), ":", "/")), ".git")
	if base == "" || base == "." || base == ".." {
		base = "project"
	}
	dir = filepath.Join(tmp, base)
	cmd := exec.Command("git", "clone", "--quiet", "--depth=1", "--", url, dir) //nolint:gosec // what the person typed, after --
	cmd.Env, cmd.Stderr = c.Environment.Env, printable.TextWriter{W: c.Stderr}
	if err := cmd.Run(); err != nil {
		done()
		return "", nil, fault.New(fault.Failed, "git clone", "%s: %w", printable.Text(url), err)
	}
	return dir, done, nil
}
