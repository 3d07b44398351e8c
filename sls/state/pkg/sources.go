package pkg

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/fetch"
)

// pkgSource is a package that comes from a file.
type pkgSource struct {
	// key is its name in the argument, name its name in dpkg.
	key, name, from string
}

// pkgSources reads the argument sources: a list of mappings, each of one name to one place.
func pkgSources(c *core.Call) (out []pkgSource, ok bool) {
	v, _ := c.Value("sources")
	l, isList := v.(*py.List)
	if !isList {
		return nil, false
	}
	for _, it := range l.Items() {
		d, isDict := it.(*py.Dict)
		if !isDict || d.Len() != 1 {
			return nil, false
		}
		e := d.Items()[0]
		s := pkgSource{key: py.Str(e.Key), name: py.Str(e.Key), from: py.Str(e.Value)}
		if c.Bool("normalize", true) {
			s.name = plainName(c, s.name)
		}
		out = append(out, s)
	}
	return out, len(out) > 0
}

// errNoSource is a file that does not exist.
var errNoSource = errors.New("file not found")

// localPkg returns the path of a package file on this machine: its own, or that of a copy in dir, under its original name.
func localPkg(c *core.Call, from, dir string) (string, error) {
	switch fetch.Scheme(from) {
	case "":
		return from, nil
	case "file":
		return strings.TrimPrefix(from, "file://"), nil
	case "salt":
		if _, err := c.Roots.Find(from); err != nil {
			return "", errNoSource
		}
	}
	data, _, err := fetch.File(c, from)
	if err != nil {
		return "", err
	}
	name, _, _ := strings.Cut(path.Base(from), "?")
	to := filepath.Join(dir, name)
	return to, os.WriteFile(to, data, 0o644)
}

// debInfo reads name and version out of a package file. Source: dpkg-deb(1), --info.
func debInfo(c *core.Call, file string) (name, version string, err error) {
	if !core.Exists(file) {
		return "", "", core.Errorf("%s does not exist on minion", file)
	}
	out, err := c.Query("dpkg", "-I", file)
	var failed *core.ToolError
	if errors.As(err, &failed) {
		return "", "", core.Errorf("Unable to get info for %s: %s", file, failed.Stderr)
	}
	if err != nil {
		return "", "", err
	}
	found := map[string]string{}
	for _, l := range strings.Split(out, "\n") {
		key, v, ok := strings.Cut(strings.TrimSpace(l), ":")
		if f := strings.Fields(v); ok && len(f) > 0 {
			found[strings.TrimRight(key, " ")] = f[len(f)-1]
		}
	}
	var missing []string
	for _, k := range [][2]string{{"Package", "name"}, {"Version", "version"}, {"Architecture", "arch"}} {
		if found[k[0]] == "" {
			missing = append(missing, k[1])
		}
	}
	if len(missing) > 0 {
		return "", "", core.Errorf("Unable to get %s for %s", strings.Join(missing, ", "), file)
	}
	return found["Package"], found["Version"], nil
}

// sourceVersion returns the version that a source of an installed package holds. The error is the whole comment of the state.
func sourceVersion(c *core.Call, s pkgSource, dir string) (string, error) {
	file, err := localPkg(c, s.from, dir)
	if err != nil {
		return "", core.Errorf("Unable to cache %s: %w", s.from, err)
	}
	_, version, err := debInfo(c, file)
	return version, err
}

// sourcePaths returns the files to install, in order, and the names that dpkg will know them by.
func sourcePaths(c *core.Call, list []pkgSource, dir string) (paths []string, err error) {
	for _, s := range list {
		file, err := localPkg(c, s.from, dir)
		switch {
		case errors.Is(err, errNoSource):
			return nil, core.Errorf("Unable to cache source %s for package %s", s.from, s.name)
		case err != nil:
			return nil, err
		case !filepath.IsAbs(file):
			return nil, &core.InvocationError{Msg: "Path " + file + " for package " + s.name + " is either not absolute or an invalid protocol"}
		}
		paths = append(paths, file)
	}
	for _, p := range paths {
		if _, _, err := debInfo(c, p); err != nil {
			return nil, err
		}
	}
	return paths, nil
}
