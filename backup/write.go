package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"corpus-git/internal/fault"
	"corpus-git/internal/humanize"
	"corpus-git/internal/printable"
	"corpus-git/internal/vfs"
	"corpus-git/layout"
)

// Server is what a backup needs from the owner of the state.
type Server interface {
	// Hold waits until no deployment of a project is running, and blocks new ones until release is called.
	Hold(ctx context.Context, name string) (Held, error)
	// Owns reports whether a deployment, by its ID, is one of the project that has ended.
	Owns(ctx context.Context, name, id string) bool
	// Database copies the database to the file path, removes from the copy what is newer than the held projects, by name, and returns the
	// names of the projects in it.
	Database(ctx context.Context, path string, held map[string]Held) ([]string, error)
}

// Held is a project without a running deployment.
type Held struct {
	// Code and Pillar are the commits of its branches, "" for none.
	Code, Pillar string
	// Last is the ID of its newest deployment that has ended, "" for none.
	Last    string
	Release func()
}

// Options say what to include in a backup in addition to what a server needs.
type Options struct {
	Archives, Data bool
	Program        string // release of corpus-git
	Host           string
	Now            func() time.Time
	// Note is called with a line about what was done for each project.
	Note func(string)
}

// maxAttempts is how often the copy is repeated for projects that were created meanwhile.
const maxAttempts = 5

// Write writes a backup of a server to w. Deployments of a project wait only while that project is read. Nothing in w is durable on return.
// After an error the caller must discard what was written.
func Write(ctx context.Context, w io.Writer, s Server, root layout.Root, state layout.State, o Options) (Contents, error) {
	const op = "back up"
	out, err := newWriter(w, o)
	if err != nil {
		return Contents{}, fault.New(fault.Internal, op, "%w", err)
	}
	defer out.close()
	out.contents.Head = Head{Version: Version, Program: o.Program, Made: o.Now().UTC().Truncate(time.Second), Host: o.Host, Root: root.Path(), Archives: o.Archives, Data: o.Data}
	out.contents.Projects = []Project{}
	err = out.all(ctx, s, root, state)
	if err == nil {
		err = out.finish()
	}
	if vfs.IsFull(err) || fault.KindOf(err) != fault.Internal {
		return Contents{}, err
	}
	if err != nil {
		return Contents{}, fault.New(fault.Internal, op, "%w", err)
	}
	return out.contents, nil
}

// writer is one backup that is being written.
type writer struct {
	o        Options
	fs       vfs.FS
	buffered *bufio.Writer
	zstd     *zstd.Encoder
	tar      *tar.Writer
	digest   digest
	contents Contents
	names    accountNames
}

func newWriter(w io.Writer, o Options) (*writer, error) {
	enc, err := zstd.NewWriter(w, zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, err
	}
	buffered := bufio.NewWriterSize(enc, 256<<10)
	return &writer{o: o, fs: vfs.OS{}, buffered: buffered, zstd: enc, tar: tar.NewWriter(buffered), digest: newDigest(), names: accountNames{users: map[int]string{}, groups: map[int]string{}}}, nil
}

// close frees the compressor; finish has written the end.
func (w *writer) close() { _ = w.zstd.Close() }

func (w *writer) all(ctx context.Context, s Server, root layout.Root, state layout.State) error {
	if err := w.document(headName, w.contents.Head); err != nil {
		return err
	}
	tmp := vfs.TempName(state.Database())
	defer func() { _ = w.fs.Remove(tmp) }()
	held := map[string]Held{}
	for attempt := 0; ; attempt++ {
		// The database is copied last, and again after each further project: it must have exactly the projects that are included.
		names, err := s.Database(ctx, tmp, held)
		if err != nil {
			return err
		}
		fresh := slices.DeleteFunc(slices.Clone(names), func(n string) bool { _, done := held[n]; return done })
		if len(fresh) == 0 {
			w.forget(names)
			break
		}
		if attempt == maxAttempts {
			return fault.New(fault.Busy, "back up", "projects are created faster than they are read").WithHint("try again")
		}
		for i, name := range fresh {
			w.note("reading %s (%d of %d)", name, i+1, len(fresh))
			h, err := w.project(ctx, s, root, state, name)
			if err != nil {
				return fmt.Errorf("project %s: %w", name, err)
			}
			held[name] = h
		}
	}
	w.note("reading the state of the server")
	for _, dir := range []string{root.Salt(), root.Pillar()} {
		if err := w.dir(ctx, root.Path(), []string{filepath.Base(dir)}, rootDir, nil); err != nil {
			return err
		}
	}
	if err := w.dir(ctx, state.Path(), nil, stateDir, func(p string) bool { return stateSkipped(state, p) }); err != nil {
		return err
	}
	return w.database(ctx, tmp)
}

// forget removes from the contents what was destroyed after it was read.
func (w *writer) forget(names []string) {
	w.contents.Projects = slices.DeleteFunc(w.contents.Projects, func(p Project) bool {
		gone := !slices.Contains(names, p.Name)
		if gone {
			w.remark("project %s was destroyed while the backup was made", p.Name)
		}
		return gone
	})
}

func (w *writer) database(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: databaseName, Mode: 0o600, Size: st.Size(), ModTime: w.contents.Made, Format: tar.FormatPAX}
	w.fillOwn(h)
	return w.entry(ctx, h, f)
}

// fillOwn sets this process's user as the owner of a file that has none.
func (w *writer) fillOwn(h *tar.Header) {
	h.Uid, h.Gid = os.Geteuid(), os.Getegid()
	w.names.fill(h)
}

// project writes one project, with its part of the state, as it is between two deployments.
func (w *writer) project(ctx context.Context, s Server, root layout.Root, state layout.State, name string) (Held, error) {
	held, err := s.Hold(ctx, name)
	if err != nil {
		return Held{}, err
	}
	defer held.Release()
	at := root.Project(name)
	entries, bytes := w.contents.Entries, w.contents.Bytes
	prefix := projectsDir + "/" + name
	left := map[string]bool{filepath.Base(at.Git()): true}
	for dir, in := range map[string]bool{at.Archives(): w.o.Archives, at.Data(): w.o.Data} {
		if !in {
			left[filepath.Base(dir)] = true
		}
	}
	// Refs before objects: a concurrent push of another branch adds objects first.
	git := filepath.Base(at.Git())
	if there, err := vfs.Exists(w.fs, at.Dir()); err != nil {
		return held, err
	} else if !there {
		w.remark("project %s has no folder", name)
	} else if err := w.top(ctx, root.Projects(), name, projectsDir); err != nil {
		return held, err
	}
	for _, objects := range []bool{false, true} {
		err := w.dir(ctx, at.Dir(), []string{git}, prefix, func(p string) bool { return gitSkipped(p) || inObjects(p) != objects })
		if err != nil {
			return held, err
		}
	}
	archives := filepath.Base(at.Archives())
	err = w.dir(ctx, at.Dir(), nil, prefix, func(p string) bool {
		top, below, _ := strings.Cut(p, "/")
		return left[top] || top == archives && strings.HasPrefix(below, ".") // incomplete, being deleted, spare
	})
	if err != nil {
		return held, err
	}
	own := []string{state.Journal(name), state.Events(name), state.Passwords(name), state.Extends(name), state.LiveUndo(name)}
	undo, err := w.fs.ReadDir(state.Undo(""))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return held, err
	}
	for _, id := range undo {
		if s.Owns(ctx, name, id) {
			own = append(own, state.Undo(id))
		}
	}
	for _, path := range own {
		rel, err := filepath.Rel(state.Path(), path)
		if err != nil {
			return held, err
		}
		if err := w.dir(ctx, state.Path(), []string{rel}, stateDir, nil); err != nil {
			return held, err
		}
	}
	w.contents.Projects = append(w.contents.Projects, Project{Name: name, Code: held.Code, Pillar: held.Pillar, Files: w.contents.Entries - entries, Bytes: w.contents.Bytes - bytes})
	return held, nil
}

// maxRemarks limits the number of files that are named.
const maxRemarks = 100

func (w *writer) remark(format string, args ...any) {
	if len(w.contents.Notes) < maxRemarks {
		w.contents.Notes = append(w.contents.Notes, printable.Text(fmt.Sprintf(format, args...)))
	}
}

func (w *writer) note(format string, args ...any) {
	if w.o.Note != nil {
		w.o.Note(fmt.Sprintf(format, args...))
	}
}

// entry writes a header and its content, which must be as long as the header says. A sparse file may be of any length: ctx ends reading it.
func (w *writer) entry(ctx context.Context, h *tar.Header, content io.Reader) error {
	w.digest.header(h)
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	if content != nil {
		n, err := io.Copy(w.tar, io.TeeReader(io.LimitReader(contextReader{ctx, content}, h.Size), w.digest.h))
		if err != nil {
			return err
		}
		if n != h.Size {
			return fmt.Errorf("%s: %d bytes of %d", h.Name, n, h.Size)
		}
	}
	w.contents.Entries++
	w.contents.Bytes += h.Size
	return nil
}

// document writes a JSON entry. The digest includes the head and not the contents, which contain it.
func (w *writer) document(name string, doc any) error {
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(b)), ModTime: w.contents.Made, Format: tar.FormatPAX}
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	if name == headName {
		_, _ = w.digest.h.Write(b) // never fails: hash.Hash
		w.contents.Entries++
	}
	_, err = io.Copy(w.tar, bytes.NewReader(b))
	return err
}

// finish writes the contents and the end.
func (w *writer) finish() error {
	w.contents.Digest = w.digest.String()
	if len(w.contents.Notes) == maxRemarks {
		w.contents.Notes = append(w.contents.Notes, "… and others")
	}
	if err := w.document(contentsName, w.contents); err != nil {
		return err
	}
	return errors.Join(w.tar.Close(), w.buffered.Flush(), w.zstd.Close())
}

// Summary returns a backup in one line.
func (c Contents) Summary() string {
	with := []string{}
	if c.Archives {
		with = append(with, "archives")
	}
	if c.Data {
		with = append(with, "data")
	}
	text := fmt.Sprintf("%s, %s, %s", humanize.Plural(len(c.Projects), "project"), humanize.Plural(c.Entries, "entry", "entries"), humanize.Bytes(c.Bytes))
	if len(with) > 0 {
		text += ", with " + strings.Join(with, " and ")
	}
	return text
}
