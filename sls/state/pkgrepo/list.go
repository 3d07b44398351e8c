package pkgrepo

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/file"
)

// aptList is all that apt's sources hold, in the order of the files.
type aptList struct {
	dir     string
	entries []aptSource
	// emptied are files from which the last entry was removed.
	emptied []string
}

// readAptList reads sources.list and the files in sources.list.d.
func readAptList(c *core.Call) (*aptList, error) {
	l := &aptList{dir: aptDir(c)}
	files := []string{filepath.Join(l.dir, "sources.list")}
	more, err := os.ReadDir(filepath.Join(l.dir, "sources.list.d"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range more {
		if strings.HasSuffix(e.Name(), ".list") || strings.HasSuffix(e.Name(), ".sources") {
			files = append(files, filepath.Join(l.dir, "sources.list.d", e.Name()))
		}
	}
	for _, f := range files {
		if !core.IsFile(f) {
			continue
		}
		raw, err := vfs.ReadFollowed(f, vfs.MaxRead)
		if err != nil {
			return nil, err
		}
		l.load(f, string(raw))
	}
	return l, nil
}

// aptDir returns the folder of apt's sources and keys.
func aptDir(c *core.Call) string { return cmp.Or(c.Host.AptDir, "/etc/apt") }

func (l *aptList) load(file, text string) {
	if !strings.HasSuffix(file, ".sources") {
		for _, line := range strings.SplitAfter(text, "\n") {
			if line != "" {
				e, _ := newAptLine(line, file)
				l.entries = append(l.entries, e)
			}
		}
		return
	}
	section := ""
	for _, line := range append(strings.SplitAfter(text, "\n"), "\n") {
		if strings.TrimSpace(line) != "" {
			section += line
			continue
		}
		if section != "" {
			l.entries = append(l.entries, newAptParagraph(section, file))
		}
		section = ""
	}
}

func (l *aptList) remove(e aptSource) {
	l.entries = slices.DeleteFunc(l.entries, func(o aptSource) bool { return o == e })
	if !slices.ContainsFunc(l.entries, func(o aptSource) bool { return o.path() == e.path() }) {
		l.emptied = append(l.emptied, e.path())
	}
}

// noSources is the content of sources.list if there is no source at all, in Salt's words.
const noSources = "## See sources.list(5) for more information, especialy\n" + //nolint:misspell // Salt writes it so
	"# Remember that you can only use http, ftp or file URIs\n" +
	"# CDROMs are managed through the apt-cdrom tool.\n"

// saveAptList writes the files whose text is another than before.
func saveAptList(c *core.Call, l *aptList) error {
	var files []string
	text := map[string]string{}
	for _, e := range l.entries {
		_, paragraph := e.(*aptParagraph)
		if _, there := text[e.path()]; !there {
			files = append(files, e.path())
		} else if paragraph {
			text[e.path()] += "\n"
		}
		text[e.path()] += e.text() + "\n"
	}
	for _, f := range l.emptied {
		if _, there := text[f]; !there {
			files = append(files, f)
			text[f] = ""
		}
	}
	if len(l.entries) == 0 && core.IsDir(l.dir) {
		f := filepath.Join(l.dir, "sources.list")
		files = append(files, f)
		text[f] = noSources
	}
	for _, f := range files {
		old, err := vfs.ReadFollowed(f, vfs.MaxRead)
		switch {
		case err == nil && string(old) == text[f]:
			continue
		case err == nil:
			err = c.Rewrite(f, []byte(text[f]))
		case errors.Is(err, fs.ErrNotExist):
			mode := c.NewMode(0o666)
			if err = file.WriteNew(c, f, file.Managed{Data: []byte(text[f]), Mode: &mode}); errors.Is(err, fs.ErrNotExist) {
				return core.Errorf("[Errno 2] No such file or directory: %s", py.Repr(f))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// aptRepo is one repository as Salt shows it: one URI, suite and type of an entry.
type aptRepo struct {
	source     aptSource
	uri, suite string
	typ        string
}

// find returns the repository that a definition names: the same type, URI and suite, and a component in common.
func (l *aptList) find(want *aptLine) *aptRepo {
	var order []string
	by := map[string][]aptRepo{}
	for _, e := range l.entries {
		if !e.valid() {
			continue
		}
		for _, uri := range e.uris() {
			for _, suite := range e.suites() {
				for _, typ := range e.types() {
					if by[uri] == nil {
						order = append(order, uri)
					}
					by[uri] = append(by[uri], aptRepo{e, uri, suite, typ})
				}
			}
		}
	}
	for _, uri := range order {
		for _, r := range by[uri] {
			if r.typ == want.typ && sameURI(r.uri, want.uri) && r.suite == want.dist &&
				(len(want.components) == 0 || slices.ContainsFunc(want.components, func(c string) bool { return slices.Contains(r.source.comps(), c) })) {
				return &r
			}
		}
	}
	return nil
}

func sameURI(a, b string) bool { return strings.TrimRight(a, "/") == strings.TrimRight(b, "/") }

// shown returns the repository as Salt shows it.
func (r *aptRepo) shown() *py.Dict {
	e := r.source
	line := strings.TrimSpace(lineOf(e))
	if p, ok := e.(*aptParagraph); ok {
		l, _ := newAptLine(strings.Join(append([]string{r.typ, r.uri, r.suite}, p.comps()...), " "), "")
		l.off, l.arch, l.key = p.disabled(), p.archs(), py.Str(p.signedBy())
		if i := p.at("Trusted"); i >= 0 {
			l.trusted = trust(p.fields[i].value)
		}
		line = l.text()
	}
	return py.NewDict("file", e.path(), "comps", core.StringList(e.comps()), "disabled", e.disabled(), "enabled", !e.disabled(), "dist", r.suite,
		"suites", core.StringList(e.suites()), "type", r.typ, "types", core.StringList(e.types()), "uri", r.uri, "uris", core.StringList(e.uris()), "line", line,
		"architectures", core.StringList(e.archs()), "signedby", e.signedBy())
}

func lineOf(e aptSource) string {
	if l, ok := e.(*aptLine); ok {
		return l.line
	}
	return e.text()
}
