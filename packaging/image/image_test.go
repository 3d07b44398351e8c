package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/require"
)

// made runs make image with the program built at bin, and gives the image's file.
func made(t *testing.T, bin string, args ...string) string {
	t.Helper()
	top, err := filepath.Abs("../..")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "out", "image.tar")
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"-C", top, "image", "VERSION=1.2.3", "BIN=" + bin, "IMAGE=" + file}, args...)...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return file
}

// unpack extracts a tar, with modes.
func unpack(t *testing.T, from io.Reader, dir string) {
	t.Helper()
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		path := filepath.Join(dir, filepath.Clean("/"+h.Name))
		if h.Typeflag == tar.TypeDir {
			require.NoError(t, os.MkdirAll(path, 0o755))
		} else {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			data, err := io.ReadAll(r)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, data, 0o644))
		}
		require.NoError(t, os.Chmod(path, h.FileInfo().Mode()))
	}
}

// read gives the one image of an OCI layout in a tar, every digest of which is compared with what is there.
func read(t *testing.T, file string) v1.Image {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	dir := t.TempDir()
	unpack(t, f, dir)
	index, err := layout.ImageIndexFromPath(dir)
	require.NoError(t, err)
	require.NoError(t, validate.Index(index))
	m, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, m.Manifests, 1)
	require.Equal(t, "corpus-git:1.2.3", m.Manifests[0].Annotations["org.opencontainers.image.ref.name"])
	img, err := index.Image(m.Manifests[0].Digest)
	require.NoError(t, err)
	return img
}

// The image is the same bytes each time, is valid for who reads OCI's and who reads Docker's format, and the program in it runs without anything of this machine.
func TestImage(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "corpus-git")
	file := made(t, bin)
	first, err := os.ReadFile(file)
	require.NoError(t, err)
	again, err := os.ReadFile(made(t, filepath.Join(t.TempDir(), "corpus-git")))
	require.NoError(t, err)
	require.True(t, bytes.Equal(first, again), "two images of one commit differ")

	img := read(t, file)
	cf, err := img.ConfigFile()
	require.NoError(t, err)
	require.Equal(t, []string{"/usr/bin/corpus-git"}, cf.Config.Entrypoint)
	require.Equal(t, "1.2.3", cf.Config.Labels["org.opencontainers.image.version"])
	docker, err := tarball.ImageFromPath(file, nil)
	require.NoError(t, err)
	require.NoError(t, validate.Image(docker))

	root := t.TempDir()
	unpack(t, mutate.Extract(img), root)
	runs(t, root, cf)
	if skopeo, err := exec.LookPath("skopeo"); err == nil {
		out, err := exec.CommandContext(t.Context(), skopeo, "inspect", "--config", "oci-archive:"+file).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "/usr/bin/corpus-git")
	} else {
		t.Log("skopeo is not here to read it, too")
	}
	aboveRootFileSystem(t, bin)
}

// runs starts the server with this folder as its root file system, as a container engine does; who is not root sees the program start only.
func runs(t *testing.T, root string, cf *v1.ConfigFile) {
	t.Helper()
	if os.Getuid() != 0 {
		out, err := exec.CommandContext(t.Context(), filepath.Join(root, "usr/bin/corpus-git"), "version").CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "1.2.3")
		return
	}
	require.NoError(t, os.Mkdir(filepath.Join(root, "proc"), 0o555))
	inside := func(ctx context.Context, args ...string) *exec.Cmd {
		args = append([]string{"-m", "sh", "-c", `mount -t proc proc "$1/proc" && exec chroot "$@"`, "sh", root, cf.Config.Entrypoint[0]}, args...)
		cmd := exec.CommandContext(ctx, "unshare", args...)
		cmd.Env = cf.Config.Env
		return cmd
	}
	out, err := inside(t.Context(), "version").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "1.2.3")
	var log bytes.Buffer
	server := inside(t.Context(), append(cf.Config.Cmd, "--listen", "127.0.0.1:0")...)
	server.Stdout, server.Stderr = &log, &log
	require.NoError(t, server.Start())
	defer func() { _ = server.Process.Kill() }()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		out, _ = inside(t.Context(), "doctor").CombinedOutput()
		if strings.Contains(string(out), "listens on 127.0.0.1") {
			break
		}
		require.True(t, time.Now().Before(deadline), "%s\n%s", out, &log)
	}
	out, err = inside(t.Context(), "project", "create", "app", "--env", "prod").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.DirExists(t, filepath.Join(root, "srv/projects/app/git/project.git"))
	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	require.NoError(t, server.Wait(), "%s", &log)
}

// A root file system that lies below keeps what it has: no account, link or certificate of it is replaced.
func aboveRootFileSystem(t *testing.T, bin string) {
	t.Helper()
	base := filepath.Join(t.TempDir(), "base.tar")
	f, err := os.Create(base)
	require.NoError(t, err)
	w := tar.NewWriter(f)
	passwd := "root:x:0:0::/root:/bin/sh\n"
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "etc/passwd", Mode: 0o644, Size: int64(len(passwd)), Typeflag: tar.TypeReg}))
	_, err = io.WriteString(w, passwd)
	require.NoError(t, err)
	require.NoError(t, errors.Join(w.Close(), f.Close()))

	img := read(t, made(t, bin, "-o", "build", "BASE="+base))
	layers, err := img.Layers()
	require.NoError(t, err)
	require.Len(t, layers, 2)
	root := t.TempDir()
	unpack(t, mutate.Extract(img), root)
	got, err := os.ReadFile(filepath.Join(root, "etc/passwd"))
	require.NoError(t, err)
	require.Equal(t, passwd, string(got))
	config, err := os.ReadFile(filepath.Join(root, "etc/corpus-git/corpus-git.yaml"))
	require.NoError(t, err)
	require.NotContains(t, string(config), "accounts")
	require.NoDirExists(t, filepath.Join(root, "etc/ssl"))
}

// A tag that no engine takes, and a base that is no tar, are refused, and nothing is written.
func TestImageRefused(t *testing.T) {
	dir := t.TempDir()
	program, out := filepath.Join(dir, "program"), filepath.Join(dir, "out.tar")
	require.NoError(t, os.WriteFile(program, []byte("x"), 0o755))
	s := settings{program: program, config: "corpus-git.yaml", out: out, version: "1.0+dirty", arch: "amd64", at: time.Unix(1, 0)}
	require.ErrorContains(t, s.write(), "tag")
	s.version, s.base = "1.0", filepath.Join(dir, "none.tar")
	require.ErrorContains(t, s.write(), "none.tar")
	s.base = program
	require.ErrorContains(t, s.write(), "no tar")
	require.NoFileExists(t, out)
}
