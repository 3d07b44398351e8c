package salt

import (
	_ "embed" // saltHook
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
	"corpus-git/sls"
)

// The states of makina-states for Salt itself, which projects use without its tree, and corpus.output.
var (
	//go:embed saltmodules/mc_proxy.py
	saltHook []byte
	//go:embed saltmodules/mc_apache.py
	saltApache []byte
	//go:embed saltmodules/mc_git.py
	saltGit []byte
	//go:embed saltmodules/corpus.py
	saltOutput []byte
)

// Configure writes Salt's configuration into its own directory: the minion's options with ms_project, the roots,
// and the pillar as one file. All of it is readable by this user only. It may be called again, and then writes what has
// changed, which only a Salt process that starts afterwards sees.
func (s *Call) Configure(in *sls.Input) error {
	for _, d := range []string{"", "conf", "cache", "pki", "log", "run", "pillar", "roots"} {
		if err := os.MkdirAll(filepath.Join(s.Dir, d), 0o700); err != nil {
			return err
		}
	}
	roots, err := s.roots(in)
	if err != nil {
		return err
	}
	states := filepath.Join(s.Dir, "modules", "states")
	if err := os.MkdirAll(states, 0o700); err != nil {
		return err
	}
	for name, text := range map[string][]byte{"mc_proxy.py": saltHook, "mc_apache.py": saltApache, "mc_git.py": saltGit, "corpus.py": saltOutput} {
		if err := os.WriteFile(filepath.Join(states, name), text, 0o600); err != nil {
			return err
		}
	}
	if err := s.writeFunctions(in); err != nil {
		return err
	}
	id := "corpus"
	if v, ok := in.Grains.GetStr("id"); ok {
		id = py.Str(v)
	}
	conf := py.NewDict(
		"id", id, "file_client", "local", "use_superseded", py.NewList("module.run"),
		"root_dir", s.Dir, "cachedir", filepath.Join(s.Dir, "cache"),
		"extension_modules", filepath.Join(s.Dir, "cache", "extmods"), "pki_dir", filepath.Join(s.Dir, "pki"),
		"sock_dir", filepath.Join(s.Dir, "run"), "conf_file", filepath.Join(s.Dir, "conf", "minion"),
		"log_file", filepath.Join(s.Dir, "log", "minion"), "log_level", "warning", "log_level_logfile", "quiet",
		"user", in.Host.Whoami(), "module_dirs", py.NewList(filepath.Join(s.Dir, "modules")),
		"file_roots", py.NewDict("base", roots),
		"pillar_roots", py.NewDict("base", py.NewList(filepath.Join(s.Dir, "pillar"))),
		"state_output", "full", "enable_fqdns_grains", false, "grains_cache", false,
	)
	for _, e := range in.Opts.Items() {
		if !conf.Has(e.Key) {
			_ = conf.Set(e.Key, e.Value)
		}
	}
	if in.Cfg != nil {
		conf.SetStr("ms_project", in.Cfg)
	}
	if err := s.write("conf/minion", "", conf); err != nil {
		return err
	}
	top := py.NewDict("base", py.NewDict("*", py.NewList("corpus")))
	if err := s.write("pillar/top.sls", "#!yaml\n", top); err != nil {
		return err
	}
	pillar := in.Pillar
	if pillar == nil {
		pillar = py.NewDict()
	}
	return s.write("pillar/corpus.sls", "#!yaml\n", pillar)
}

// roots returns the file roots, all of them on disk. A mount becomes a link in a separate directory, before all others.
func (s *Call) roots(in *sls.Input) (*py.List, error) {
	out := py.NewList()
	links := filepath.Join(s.Dir, "roots")
	mounted := false
	for _, r := range in.Roots {
		if r.Dir == "" {
			return nil, errors.New("the file root of salt://" + r.Mount + " does not lie on disk")
		}
		if r.Mount == "" {
			continue
		}
		at := filepath.Join(links, filepath.FromSlash(r.Mount))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return nil, err
		}
		if old, err := os.Readlink(at); err == nil && old == r.Dir {
			mounted = true
			continue
		} else if err == nil {
			if err := os.Remove(at); err != nil {
				return nil, err
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err := os.Symlink(r.Dir, at); err != nil {
			return nil, err
		}
		mounted = true
	}
	if mounted {
		out.Append(links)
	}
	for _, r := range in.Roots {
		if r.Mount == "" {
			out.Append(r.Dir)
		}
	}
	if out.Len() == 0 {
		return nil, errors.New("there are no file roots")
	}
	return out, nil
}

func (s *Call) write(name, head string, v any) error {
	text, err := saltyaml.Dump(v, saltyaml.DumpOptions{Flow: saltyaml.BlockStyle, KeepOrder: true, Strict: true})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.Dir, name), []byte(head+text), 0o600)
}
