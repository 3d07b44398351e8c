package receive

import (
	"path"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/printable"
	"corpus-git/layout"
	"corpus-git/project"
)

// ParsePath parses the path of a remote: <name>/project.git and <name>/pillar.git, <name> alone for the former, each with or without .git
// and a leading slash, and the paths of the original, <root>/projects/<name>/git/project.git. It does not check whether the project exists.
func ParsePath(root layout.Root, s string) (project.Name, project.Repo, error) {
	bad := func() error {
		return fault.New(fault.Usage, "", "%s is not a repository path", quotedPath(s)).
			WithHint("a repository path is  NAME/project.git  or  NAME/pillar.git")
	}
	if len(s) > 4096 || strings.ContainsAny(s, "\x00\n\r\\") {
		return "", "", bad()
	}
	if strings.HasPrefix(s, "//") {
		s = "/" + strings.TrimLeft(s, "/") // ssh://host//NAME
	}
	rest := s
	if prefix := strings.TrimSuffix(root.Projects(), "/") + "/"; strings.HasPrefix(s, prefix) {
		rest = strings.TrimPrefix(s, prefix)
		name, repo, ok := strings.Cut(rest, "/git/")
		if !ok || name == "" {
			return "", "", bad()
		}
		rest = name + "/" + repo
	}
	rest = strings.TrimSuffix(strings.TrimPrefix(rest, "/"), "/")
	if rest == "" || path.Clean(rest) != rest {
		return "", "", bad()
	}
	name, repo, two := strings.Cut(rest, "/")
	which := project.Code
	if two {
		switch strings.TrimSuffix(repo, ".git") {
		case "project":
		case "pillar":
			which = project.PillarRepo
		default:
			return "", "", bad()
		}
	} else {
		name = strings.TrimSuffix(name, ".git")
	}
	n, err := project.ParseName(name)
	if err != nil {
		return "", "", bad()
	}
	return n, which, nil
}

// quotedPath quotes and shortens a path from outside.
func quotedPath(s string) string { return "'" + printable.Clip(s, 100) + "'" }
