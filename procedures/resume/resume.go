// Package resume lets a deployment continue at the step at which an earlier one failed, or at which it waited itself when the server ended: it
// has what is recorded there, and the comparison.
//
// It owns one file for each project, below the state folder, readable by its owner alone, which holds digests and no secret. The file
// exists from the end of a deployment that failed in a step and was not rolled back until the next deployment. It runs nothing. A crash
// leaves either the file, whose digests then differ, or none.
package resume

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/vfs"
	"corpus-git/project"
)

// Point is where a failed deployment stopped, and what must not have changed since.
type Point struct {
	ID project.ID `json:"id"`
	// Steps are the steps that succeeded, in order; Failed is the one that failed.
	Steps  []string `json:"steps"`
	Failed string   `json:"failed"`
	// Outputs are what the steps wrote.
	Outputs []project.Output `json:"outputs,omitempty"`

	Code   project.Commit    `json:"code,omitempty"`
	Pillar project.Commit    `json:"pillar,omitempty"`
	Set    []project.Setting `json:"set,omitempty"`
	Select project.Selection `json:"select,omitzero"`
	// Recipe, Cfg and Tree are digests: of the private copy of .salt, of the configuration, and of the names, kinds, modes, owners, sizes and
	// times of the live tree.
	Recipe string `json:"recipe"`
	Cfg    string `json:"cfg"`
	Tree   string `json:"tree"`
	// Keys is the digest of cfg.kv as the steps saw it, "" if it was empty.
	Keys string `json:"keys,omitempty"`
	// Lost names what steps passed to later ones but is not stored: then no deployment can continue.
	Lost string `json:"lost,omitempty"`
}

// maxPoint limits the size of the file.
const maxPoint = 16 << 20

// Save writes a point durably.
func Save(file string, p Point) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return vfs.WriteFileAtomic(vfs.OS{}, file, text, 0o600)
}

// Load reads a point; nil if there is none.
func Load(file string) (*Point, error) {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxPoint))
	if err != nil {
		return nil, err
	}
	p := &Point{}
	return p, json.Unmarshal(text, p)
}

// Drop removes the point.
func Drop(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Compare returns fault.Refused, naming all differences, if now differs from was.
func Compare(was, now Point) error {
	differs := Differences(was, now)
	if len(differs) == 0 {
		return nil
	}
	hint := "deploy without resume: all steps run again"
	if was.Code != now.Code || was.Pillar != now.Pillar { // deploy is for the commits on the branches, which a failed push did not move
		hint = "a push of the commit that failed resumes it:  git push -o resume … ; without resume all steps run again"
	}
	return fault.New(fault.Refused, "", "cannot resume %s: %s", was.ID.Short(), strings.Join(differs, "; ")).WithHint("%s", hint)
}

// Differences names everything in which now differs from was.
func Differences(was, now Point) (differs []string) {
	if was.Code != now.Code {
		differs = append(differs, fmt.Sprintf("the code is %s, it was %s", orNone(now.Code), orNone(was.Code)))
	}
	if was.Pillar != now.Pillar {
		differs = append(differs, fmt.Sprintf("the pillar is %s, it was %s", orNone(now.Pillar), orNone(was.Pillar)))
	}
	same := func(a, b any) bool {
		x, err1 := json.Marshal(a)
		y, err2 := json.Marshal(b)
		return err1 == nil && err2 == nil && string(x) == string(y)
	}
	secret := slices.ContainsFunc(slices.Concat(was.Set, now.Set), func(s project.Setting) bool { return s.Secret })
	settings := len(was.Set)+len(now.Set) > 0 && !same(was.Set, now.Set)
	switch {
	case secret:
		differs = append(differs, "a secret was set on the command line, and is not recorded")
	case settings:
		differs = append(differs, "other settings on the command line")
	}
	if !same(was.Select, now.Select) {
		differs = append(differs, "other steps or procedures are selected")
	}
	if was.Recipe != now.Recipe && was.Code == now.Code {
		differs = append(differs, "the recipe has changed")
	}
	if was.Cfg != now.Cfg && was.Code == now.Code && was.Pillar == now.Pillar && !secret && !settings {
		differs = append(differs, "the configuration has changed (the pillar of the machine, or its facts)")
	}
	if was.Keys != now.Keys {
		differs = append(differs, "keys of its steps have changed (corpus-git kv list)")
	}
	if was.Tree != now.Tree {
		differs = append(differs, "files of the live tree have changed")
	}
	if was.Lost != "" {
		differs = append(differs, was.Lost)
	}
	return differs
}

func orNone(c project.Commit) string {
	if c == "" {
		return "none"
	}
	return c.Short()
}

// changing returns the keys of cfg whose value differs in each deployment, describes its result, or depends on where the server listens.
func changing() []string {
	return []string{"push_salt_url", "push_pillar_url", "signals", "deployment_id", "chrono", "current_archive_dir", "outputs", "rollback", "deploy_summary", "deploy_ret", keysKey}
}

// keysKey is the key of cfg under which steps see keys, which Point.Keys compares.
const keysKey = "kv"

// Keys returns the digest of the keys in a configuration, "" if there are none.
func Keys(cfg *py.Dict) (string, error) {
	v, _ := cfg.GetStr(keysKey)
	keys, ok := v.(*py.Dict)
	if !ok || keys.Len() == 0 {
		return "", nil
	}
	return Cfg(keys)
}

// Cfg returns the digest of a configuration.
func Cfg(cfg *py.Dict) (string, error) {
	cfg = cfg.Copy()
	for _, key := range changing() {
		cfg.Delete(key)
	}
	text, err := py.ToJSON(cfg, py.JSONOptions{Unicode: true})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:]), nil
}

// Files returns the digest of all files of a folder with their contents; "" if there are none.
func Files(tree fs.FS) (string, error) {
	if tree == nil {
		return "", nil
	}
	h := sha256.New()
	part := func(text string) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(text)))
		h.Write(n[:])
		_, _ = io.WriteString(h, text)
	}
	err := fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		part(p)
		part(fi.Mode().String())
		switch {
		case fi.Mode()&fs.ModeSymlink != 0:
			to, err := fs.ReadLink(tree, p)
			if err != nil {
				return err
			}
			part(to)
		case fi.Mode().IsRegular():
			f, err := tree.Open(p)
			if err != nil {
				return err
			}
			of := sha256.New()
			_, err = io.Copy(of, f)
			if err = errors.Join(err, f.Close()); err != nil {
				return err
			}
			part(string(of.Sum(nil)))
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// Tree returns the digest of the lstat of the files of a working copy, except .git. It reads no contents, since a write changes the time.
func Tree(dir string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if d.Name() == ".git" && filepath.Dir(p) == dir {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if p == dir { // git and checkouts write into it
			return nil
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		size := st.Size
		if d.IsDir() {
			size = 0
		}
		fmt.Fprintf(h, "%q %o %d %d %d %d.%d %d\n", p, st.Mode, st.Uid, st.Gid, size, st.Mtim.Sec, st.Mtim.Nsec, st.Rdev)
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}
