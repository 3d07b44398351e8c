// Package machinecfg reads the machine's own settings for a project's configuration: the files of its image (cfg_dir), and local.yaml
// next to the project's trees. Neither is ever pushed.
//
// It checks who may have written such a file, and its format. It renders no templates (the files are plain YAML), writes nothing and stores
// nothing: a crash leaves nothing behind.
package machinecfg

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
	"corpus-git/project"
)

// maxFile limits one file, in bytes, and maxFiles the number of files of cfg_dir that are read.
const (
	maxFile  = 1 << 20
	maxFiles = 1000
)

// Image returns what the files *.yaml of a folder set for a project, in the byte order of their names: the sections makina-projects.PATTERN
// whose pattern (path.Match) matches the project's name. A missing folder has no files.
func Image(dir string, name project.Name) ([]project.MachineFile, error) {
	if dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "read cfg_dir", "%w", err)
	}
	var out []project.MachineFile
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".yaml" {
			continue
		}
		if len(out) == maxFiles {
			return nil, fault.New(fault.Internal, "read cfg_dir", "%s has more than %d files", dir, maxFiles)
		}
		file := filepath.Join(dir, e.Name())
		doc, err := read(file)
		if err != nil {
			return nil, err
		}
		sections, err := sectionsOf(file, doc, name)
		if err != nil {
			return nil, err
		}
		for _, s := range sections {
			out = append(out, project.MachineFile{File: file, Values: s})
		}
	}
	return out, nil
}

// sectionsOf returns the sections of a file that apply to a project, in their order.
func sectionsOf(file string, doc *py.Dict, name project.Name) (out []*py.Dict, err error) {
	doc.Range(func(k, v any) bool {
		key, _ := k.(string)
		pattern, ok := strings.CutPrefix(key, layout.ProjectsNamespace+".")
		if !ok {
			err = broken(file, "the key %s is not of the form  %s.PROJECT", py.Repr(k), layout.ProjectsNamespace).
				WithHint("%s.*  is for all projects", layout.ProjectsNamespace)
			return false
		}
		match, merr := path.Match(pattern, string(name))
		section, isDict := v.(*py.Dict)
		switch {
		case merr != nil:
			err = broken(file, "%s: incomplete pattern", key)
		case !isDict && v != nil:
			err = broken(file, "%s must be a mapping, not %s", key, py.TypeName(v))
		case match && isDict:
			out = append(out, section)
		}
		return err == nil
	})
	return out, err
}

// Local returns what a project's local.yaml sets; nil if there is none.
func Local(file string) (*project.MachineFile, error) {
	doc, err := read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, k := range []string{"env_defaults", "os_defaults"} {
		if doc.Has(k) {
			return nil, broken(file, "%s is not allowed here: the file belongs to one machine", k).WithHint("set the values directly")
		}
	}
	return &project.MachineFile{File: file, Values: doc}, nil
}

// read reads a file that only root or the server's user can have written.
func read(file string) (*py.Dict, error) {
	f, err := vfs.OpenRegular(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, broken(file, "%w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, fault.New(fault.Internal, "read", "%w", err)
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); !ok || sys.Uid != 0 && int(sys.Uid) != os.Geteuid() || st.Mode().Perm()&0o022 != 0 {
		return nil, broken(file, "it is writable for users other than root (%s)", st.Mode()).WithHint("chown root %[1]s && chmod go-w %[1]s", file)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fault.New(fault.Internal, "read", "%w", err)
	}
	if len(text) > maxFile {
		return nil, broken(file, "it is larger than %d bytes", maxFile)
	}
	doc, err := saltyaml.Parse(file, text, saltyaml.Options{Private: true, MaxBytes: maxFile})
	if err != nil {
		return nil, err
	}
	switch v := doc.Value.(type) {
	case nil:
		return py.NewDict(), nil
	case *py.Dict:
		return v, nil
	default:
		return nil, broken(file, "must be a mapping, not %s", py.TypeName(v))
	}
}

// broken returns the error for a file of the machine, which its administrator must fix.
func broken(file, format string, args ...any) *fault.Error {
	return fault.New(fault.Internal, "configuration", "%s: %w", file, fmt.Errorf(format, args...))
}
