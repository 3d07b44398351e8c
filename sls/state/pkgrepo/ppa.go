package pkgrepo

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// A personal package archive (PPA) is a repository of Launchpad's that its owner and name stand for: only Ubuntu and what
// comes of it know them, as in Salt.

// launchpadOS reports whether this machine knows such archives.
func launchpadOS(c *core.Call) bool {
	return c.Grains != nil && slices.Contains([]string{"Ubuntu", "Mint", "neon"}, core.DictText(c.Grains, "os"))
}

// repoName returns the definition that the state is about: its name, or ppa: and what the argument says. pkgrepo.absent looks at
// the argument only where such archives are known.
func repoName(c *core.Call) string {
	ppa, ok := c.Value("ppa")
	absent := strings.HasSuffix(c.Function, ".absent")
	switch {
	case !ok || absent && !launchpadOS(c):
		return c.Name
	case absent:
		return "ppa:" + strings.TrimPrefix(py.Str(ppa), "ppa:")
	}
	return "ppa:" + py.Str(ppa)
}

// repoLine is that definition as a line of apt's sources, where it is known.
func repoLine(c *core.Call) string {
	name := repoName(c)
	rest, ok := strings.CutPrefix(name, "ppa:")
	owner, ppa, both := strings.Cut(rest, "/")
	if !ok || !both || !launchpadOS(c) {
		return name
	}
	code := core.DictText(c.Grains, "oscodename")
	if auth := c.Str("ppa_auth", ""); auth != "" {
		return fmt.Sprintf("deb https://%s@private-ppa.launchpad.net/%s/%s/ubuntu %s main", auth, owner, ppa, code)
	}
	return fmt.Sprintf("deb http://ppa.launchpad.net/%s/%s/ubuntu %s main", owner, ppa, code)
}

// withAuth returns the definition by which a repository is looked for: with ppa_auth its address has that in it.
func withAuth(c *core.Call, want *aptLine) *aptLine {
	auth := c.Str("ppa_auth", "")
	if auth == "" {
		return want
	}
	for _, proto := range []string{"http://", "https://"} {
		if rest, ok := strings.CutPrefix(want.uri, proto); ok && !strings.HasPrefix(rest, auth) {
			l := *want
			l.uri = proto + auth + "@" + rest
			return &l
		}
	}
	return want
}

// addPPA lets Ubuntu's own tool add an archive, with its key.
func addPPA(c *core.Call, name string) error {
	switch {
	case !launchpadOS(c):
		return core.Errorf("cannot parse \"ppa:\" style repo definitions: %s", name)
	case c.Has("ppa_auth"):
		return core.Errorf("private PPAs are only added by Salt itself, which asks Launchpad for them: %s", name)
	case !c.Installed("apt-add-repository"):
		return core.Errorf("apt-add-repository, of the package software-properties-common, is not installed: it adds %s", name)
	}
	if _, err := c.Tool("apt-add-repository", "-y", name); err != nil {
		return core.Errorf("Unable to add PPA '%s': %s", strings.TrimPrefix(name, "ppa:"), strings.Join(c.Problems(err), ""))
	}
	return repoRefresh(c)
}

// consolidate brings all entries into sources.list: those for the same place and suite become one with the components of all,
// comments go, and so do the files below sources.list.d that held them. Paragraphs (deb822) can't be written there, and stay.
func consolidate(c *core.Call, l *aptList) error {
	base := filepath.Join(l.dir, "sources.list")
	byPlace := map[string]*aptLine{}
	var kept, stay []aptSource
	gone := map[string]bool{}
	for _, e := range l.entries {
		line, ok := e.(*aptLine)
		if !ok {
			stay = append(stay, e)
			continue
		}
		if !line.valid() {
			continue
		}
		if line.file != base {
			gone[line.file] = true
		}
		key := py.Repr(py.NewList(core.StringList(line.arch), line.off, line.typ, line.uri, line.dist))
		if one := byPlace[key]; one != nil {
			for _, comp := range line.components {
				if !slices.Contains(one.components, comp) {
					one.components = append(slices.Clone(one.components), comp)
				}
			}
			continue
		}
		line.file = base
		byPlace[key] = line
		kept = append(kept, line)
	}
	l.entries = append(kept, stay...)
	if err := saveAptList(c, l); err != nil {
		return err
	}
	for f := range gone {
		if err := c.Remove(f); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}
