package state

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"corpus-git/internal/py"
)

// stripURI is a definition without the slashes at the end of its URI.
func stripURI(repo string) string {
	words := strings.Fields(repo)
	for i, w := range words {
		if strings.HasPrefix(w, "http://") || strings.HasPrefix(w, "https://") || strings.HasPrefix(w, "ftp://") {
			words[i] = strings.TrimRight(w, "/")
		}
	}
	return strings.Join(words, " ")
}

func pkgrepoAbsent(c *Call) Return {
	name := stripURI(c.repoLine())
	want, fail := newAptLine(name, "")
	if fail != "" {
		return Failf("%s", fail)
	}
	list, err := c.readAptList()
	if err != nil {
		return Failf("Failed to configure repo '%s': %s", c.Name, err)
	}
	have, shown := list.find(c.withAuth(want)), c.repoName()
	switch {
	case have == nil || !sameItems(want.arch, have.source.archs()):
		return OKf("Package repo %s is absent", shown)
	case c.Test:
		return Would(nil, "Package repo '%s' will be removed. This may cause pkg states to behave differently than stated if this action is "+
			"repeated without test=True, due to the differences in the configured repositories.", shown)
	}
	if err := c.repoRemove(list, want); err != nil {
		return Failf("%s", err)
	}
	ret := Return{Result: True, Changes: py.NewDict("repo", shown), Comment: "Removed repo " + shown}
	if !c.has("keyid") && !c.has("keyid_ppa") {
		return ret
	}
	removed, err := c.aptKeyGone(shown)
	if err != nil {
		ret.Result = False
		ret.Comment += ", but failed to remove key: " + err.Error()
		return ret
	}
	ret.Set("keyid", removed)
	ret.Comment += ", and keyid " + py.Str(removed)
	return ret
}

// repoRemove takes a repository out of the sources: its suite out of a paragraph, its components out of an entry that
// has more, else the whole entry, and the file below sources.list.d that then holds none.
func (c *Call) repoRemove(list *aptList, want *aptLine) error {
	touched, ppa := map[string]bool{}, strings.HasPrefix(c.repoName(), "ppa:") // which come with an entry for sources
	for _, e := range slices.Clone(list.entries) {
		if !e.valid() || !slices.Contains(e.types(), want.typ) && !(ppa && want.typ == "deb" && slices.Equal(e.types(), []string{"deb-src"})) || !slices.Equal(e.archs(), want.arch) ||
			!slices.ContainsFunc(e.uris(), func(u string) bool { return sameURI(u, want.uri) }) || !slices.Contains(e.suites(), want.dist) {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(e.comps()), func(s string) bool { return slices.Contains(want.components, s) })
		switch {
		case sameItems(e.comps(), want.components):
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
		return saltSays("Repo %s doesn't exist in the sources.list(s)", stripURI(c.repoLine()))
	}
	if err := c.saveAptList(list); err != nil {
		return err
	}
	for file := range touched {
		left := slices.ContainsFunc(list.entries, func(e aptSource) bool { return e.path() == file && e.valid() })
		if !left && strings.Contains(file, "sources.list.d/") {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	return c.aptUpdate()
}

// aptKeyGone removes the key that keyid names. That of a PPA is only known to Launchpad.
func (c *Call) aptKeyGone(name string) (any, error) {
	ppa := c.boolean("keyid_ppa", false)
	switch {
	case !c.boolean("aptkey", true) && !isDir(filepath.Join(c.aptDir(), "keyrings")):
		return false, nil
	case ppa && strings.HasPrefix(name, "ppa:"):
		return nil, saltSays("only Salt itself asks Launchpad for the key of %s: name it with keyid", name)
	case ppa:
		return nil, saltSays("keyid_ppa requires that a PPA be passed")
	case !c.has("keyid"):
		return nil, saltSays("keyid or keyid_ppa and PPA name must be passed")
	}
	return c.aptKeyRemove(c.str("keyid", ""))
}
