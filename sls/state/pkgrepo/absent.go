package pkgrepo

import (
	"path/filepath"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
)

// trimURI returns a definition without the slashes at the end of its URI.
func trimURI(repo string) string {
	words := strings.Fields(repo)
	for i, w := range words {
		if strings.HasPrefix(w, "http://") || strings.HasPrefix(w, "https://") || strings.HasPrefix(w, "ftp://") {
			words[i] = strings.TrimRight(w, "/")
		}
	}
	return strings.Join(words, " ")
}

func pkgrepoAbsent(c *core.Call) core.Return {
	name := trimURI(repoLine(c))
	want, fail := newAptLine(name, "")
	if fail != "" {
		return core.Failf("%s", fail)
	}
	list, err := readAptList(c)
	if err != nil {
		return core.Failf("Failed to configure repo '%s': %s", c.Name, err)
	}
	have, shown := list.find(withAuth(c, want)), repoName(c)
	switch {
	case have == nil || !core.SameItems(want.arch, have.source.archs()):
		return core.OKf("Package repo %s is absent", shown)
	case c.Test:
		return core.Would(nil, "Package repo '%s' will be removed. This may cause pkg states to behave differently than stated if this action is "+
			"repeated without test=True, due to the differences in the configured repositories.", shown)
	}
	if err := repoRemove(c, list, want); err != nil {
		return core.Failf("%s", err)
	}
	ret := core.Return{Result: core.True, Changes: py.NewDict("repo", shown), Comment: "Removed repo " + shown}
	if !c.Has("keyid") && !c.Has("keyid_ppa") {
		return ret
	}
	removed, err := removeRepoKey(c, shown)
	if err != nil {
		ret.Result = core.False
		ret.Comment += ", but failed to remove key: " + err.Error()
		return ret
	}
	ret.Set("keyid", removed)
	ret.Comment += ", and keyid " + py.Str(removed)
	return ret
}

// repoRemove removes a repository from the sources: its suite from a paragraph, its components from an entry that has
// more, otherwise the whole entry, and the file below sources.list.d if that is then empty.
func repoRemove(c *core.Call, list *aptList, want *aptLine) error {
	touched, ppa := map[string]bool{}, strings.HasPrefix(repoName(c), "ppa:") // which come with an entry for sources
	for _, e := range slices.Clone(list.entries) {
		if !e.valid() || !slices.Contains(e.types(), want.typ) && !(ppa && want.typ == "deb" && slices.Equal(e.types(), []string{"deb-src"})) || !slices.Equal(e.archs(), want.arch) ||
			!slices.ContainsFunc(e.uris(), func(u string) bool { return sameURI(u, want.uri) }) || !slices.Contains(e.suites(), want.dist) {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(e.comps()), func(s string) bool { return slices.Contains(want.components, s) })
		switch {
		case core.SameItems(e.comps(), want.components):
			suites := slices.DeleteFunc(slices.Clone(e.suites()), func(s string) bool { return s == want.dist })
			if e.set("suites", suites); len(suites) == 0 {
				list.remove(e)
			}
		case len(rest) < len(e.comps()):
			if e.set("comps", rest); len(rest) == 0 {
				list.remove(e)
			}
		default:
			continue
		}
		touched[e.path()] = true
	}
	if len(touched) == 0 {
		return core.Errorf("Repo %s doesn't exist in the sources.list(s)", trimURI(repoLine(c)))
	}
	if err := saveAptList(c, list); err != nil {
		return err
	}
	for file := range touched {
		left := slices.ContainsFunc(list.entries, func(e aptSource) bool { return e.path() == file && e.valid() })
		if !left && strings.Contains(file, "sources.list.d/") {
			if err := c.Remove(file); err != nil {
				return err
			}
		}
	}
	return aptUpdate(c)
}

// removeRepoKey removes the key that keyid names. That of a PPA is only known to Launchpad.
func removeRepoKey(c *core.Call, name string) (any, error) {
	ppa := c.Bool("keyid_ppa", false)
	switch {
	case !c.Bool("aptkey", true) && !core.IsDir(filepath.Join(aptDir(c), "keyrings")):
		return false, nil
	case ppa && strings.HasPrefix(name, "ppa:"):
		return nil, core.Errorf("only Salt itself asks Launchpad for the key of %s: name it with keyid", name)
	case ppa:
		return nil, core.Errorf("keyid_ppa requires that a PPA be passed")
	case !c.Has("keyid"):
		return nil, core.Errorf("keyid or keyid_ppa and PPA name must be passed")
	}
	return aptKeyRemove(c, c.Str("keyid", ""))
}
