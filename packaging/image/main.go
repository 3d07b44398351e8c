package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// settings are the command line's.
type settings struct {
	program, config, base, out string
	version, revision, arch    string
	at                         time.Time
}

func main() {
	var s settings
	flag.StringVar(&s.program, "program", "bin/corpus-git", "the static binary")
	flag.StringVar(&s.config, "config", "packaging/image/corpus-git.yaml", "what becomes /etc/corpus-git/corpus-git.yaml")
	flag.StringVar(&s.base, "base", "", "a tar of a root file system that lies below, plain or in gzip")
	flag.StringVar(&s.out, "out", "", "the file to write")
	flag.StringVar(&s.version, "version", "", "the tag")
	flag.StringVar(&s.revision, "revision", "", "the commit")
	flag.StringVar(&s.arch, "arch", runtime.GOARCH, "the architecture of the binary, as Go names it")
	flag.Parse()
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	switch {
	case err != nil:
		err = fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	case s.out == "" || flag.NArg() != 0:
		err = errors.New("usage: image -version VERSION -out FILE [-program FILE] [-config FILE] [-base FILE]")
	default:
		s.at = time.Unix(seconds, 0).UTC()
		err = s.write()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// tag is what a reference may have after its colon: https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pulling-manifests
var tag = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

// write makes the image and gives it its name when all of it is on the disk.
func (s settings) write() error {
	if !tag.MatchString(s.version) {
		return fmt.Errorf("%q cannot be the tag of an image: letters, digits, '.', '_' and '-' only, at most 128", s.version)
	}
	img, err := s.image()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := to.AppendImage(img, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: s.arch}),
		layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "corpus-git:" + s.version})); err != nil {
		return err
	}
	if err := s.forDocker(dir, img); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(s.out), ".image-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	defer tmp.Close()
	if err := s.pack(tmp, dir); err != nil {
		return err
	}
	if err := errors.Join(tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), s.out)
}

// image has the layers and what says how they run.
func (s settings) image() (v1.Image, error) {
	own, err := s.files()
	if err != nil {
		return nil, err
	}
	var layers []mutate.Addendum
	add := func(by string, open tarball.Opener) error {
		l, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
		if err == nil {
			layers = append(layers, mutate.Addendum{Layer: l, MediaType: types.OCILayer, History: v1.History{CreatedBy: by, Created: v1.Time{Time: s.at}}})
		}
		return err
	}
	if s.base != "" {
		if err := readable(s.base); err != nil {
			return nil, fmt.Errorf("%s: no tar of a root file system: %w", s.base, err)
		}
		if err := add("make image BASE", func() (io.ReadCloser, error) { return os.Open(s.base) }); err != nil {
			return nil, fmt.Errorf("%s: %w", s.base, err)
		}
	}
	if err := add("make image", func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(own)), nil }); err != nil {
		return nil, err
	}
	img, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layers...)
	if err != nil {
		return nil, err
	}
	cf, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	cf = cf.DeepCopy()
	cf.Created, cf.OS, cf.Architecture = v1.Time{Time: s.at}, "linux", s.arch
	cf.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/corpus-git"}, Cmd: []string{"serve"}, WorkingDir: "/", StopSignal: "SIGTERM",
		Env:          []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		ExposedPorts: map[string]struct{}{"2222/tcp": {}},
		Volumes:      map[string]struct{}{"/srv": {}, "/var/lib/corpus-git": {}},
		Labels: map[string]string{"org.opencontainers.image.title": "corpus-git", "org.opencontainers.image.version": s.version,
			"org.opencontainers.image.revision": s.revision, "org.opencontainers.image.licenses": "Apache-2.0"},
	}
	return mutate.ConfigFile(img, cf)
}

// readable reads a tar to its end.
func readable(file string) error {
	l, err := tarball.LayerFromFile(file)
	if err != nil {
		return err
	}
	in, err := l.Uncompressed()
	if err != nil {
		return err
	}
	defer in.Close()
	for r, n := tar.NewReader(in), 0; ; n++ {
		if _, err := r.Next(); errors.Is(err, io.EOF) && n > 0 {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// files returns the tar of what corpus-git brings.
func (s settings) files() ([]byte, error) {
	program, err := os.ReadFile(s.program)
	if err != nil {
		return nil, err
	}
	config, err := os.ReadFile(s.config)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	put := func(name string, mode fs.FileMode, content []byte) error {
		h := &tar.Header{Name: name, Mode: int64(mode), ModTime: s.at, Typeflag: tar.TypeReg, Size: int64(len(content)), Format: tar.FormatPAX}
		if content == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err := w.Write(content)
		return err
	}
	if s.base == "" {
		config = append(config, "# Below this image lies no other, and nothing that makes users and groups.\naccounts: \"off\"\n"...)
	}
	// A root file system that lies below has these, perhaps as links (bin to usr/bin), which a folder in a layer would replace.
	if s.base == "" {
		for _, f := range []struct {
			name    string
			mode    fs.FileMode
			content []byte
		}{
			{"etc/", 0o755, nil}, {"etc/group", 0o644, []byte("root:x:0:\nnogroup:x:65534:\n")},
			{"etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n")},
			{"etc/ssl/", 0o755, nil}, {"etc/ssl/certs/", 0o755, nil}, {"etc/ssl/certs/ca-certificates.crt", 0o644, authorities()},
			{"root/", 0o700, nil}, {"srv/", 0o755, nil}, {"tmp/", 0o1777, nil}, {"usr/", 0o755, nil}, {"usr/bin/", 0o755, nil}, {"var/", 0o755, nil}, {"var/lib/", 0o755, nil},
		} {
			if err := put(f.name, f.mode, f.content); err != nil {
				return nil, err
			}
		}
	}
	if err := errors.Join(put("etc/corpus-git/", 0o750, nil), put("etc/corpus-git/corpus-git.yaml", 0o640, config),
		put("usr/bin/corpus-git", 0o755, program), put("var/lib/corpus-git/", 0o700, nil), w.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// authorities are Mozilla's, as the module golang.org/x/crypto/x509roots/fallback has them. Those that are trusted with further conditions are left out: a
// file of certificates cannot state them.
func authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a bytes.Buffer takes all
		}
	}
	return out.Bytes()
}

// forDocker writes manifest.json, the table of contents of Docker's own format, beside the layout.
func (s settings) forDocker(dir string, img v1.Image) error {
	name, err := img.ConfigName()
	if err != nil {
		return err
	}
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	blob := func(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }
	var paths []string
	for _, l := range layers {
		digest, err := l.Digest()
		if err != nil {
			return err
		}
		paths = append(paths, blob(digest))
	}
	data, err := json.Marshal([]map[string]any{{"Config": blob(name), "RepoTags": []string{"corpus-git:" + s.version}, "Layers": paths}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "manifest.json"), data, 0o644)
}

// pack writes the folder as a tar, in the order of names.
func (s settings) pack(to io.Writer, dir string) error {
	w := tar.NewWriter(to)
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		h := &tar.Header{Name: name, Mode: 0o644, ModTime: s.at, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if e.IsDir() {
			h.Name, h.Mode, h.Typeflag = name+"/", 0o755, tar.TypeDir
			return w.WriteHeader(h)
		}
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		defer f.Close()
		fi, err := f.Stat()
		if err != nil {
			return err
		}
		h.Size = fi.Size()
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = io.Copy(w, f)
		return err
	})
	return errors.Join(err, w.Close())
}
