package salt

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// interpreters returns the commands that may be the Python that salt-call runs with, the most likely first: that of
// its first line, then those next to it. Whether it has Salt is found out when it starts.
//
// Forms of the first lines: a virtual environment's "#!/path/python3", a distribution's "#!/usr/bin/python3 -s", pip's
// shell script for long paths, and the shell script of Salt's own packages, which looks beside itself.
func interpreters(bin string, environ []string) [][]string {
	real := bin
	if r, err := filepath.EvalSymlinks(bin); err == nil {
		real = r
	}
	var out [][]string
	add := func(argv []string) {
		if len(argv) == 0 || !isProgram(argv[0]) || slices.ContainsFunc(out, func(o []string) bool { return slices.Equal(o, argv) }) {
			return
		}
		out = append(out, argv)
	}
	add(shebang(head(real), environ))
	for _, dir := range []string{filepath.Dir(real), filepath.Join(filepath.Dir(real), "bin"), filepath.Dir(bin)} {
		add([]string{filepath.Join(dir, "python3")})
		versions, _ := filepath.Glob(filepath.Join(dir, "python3.[0-9]*"))
		for _, v := range versions {
			if !strings.HasSuffix(v, "-config") {
				add([]string{v})
			}
		}
	}
	return out
}

// head returns the beginning of a file, as much as the kernel and a shell need.
func head(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	b := make([]byte, 4096)
	n, _ := f.Read(b)
	return b[:n]
}

var (
	// '''exec' "/a long/path/python3" "$0" "$@"
	pipExec = regexp.MustCompile(`^'''exec' (?:"([^"$]+)"|([^\s"$]+)) `)
	aPython = regexp.MustCompile(`^python[0-9.]*$`)
)

// shebang returns the Python of a script's first lines, nil if there is none.
func shebang(script []byte, environ []string) []string {
	first, rest, _ := bytes.Cut(script, []byte("\n"))
	line, ok := strings.CutPrefix(string(first), "#!")
	if !ok {
		return nil
	}
	f := strings.Fields(line)
	if len(f) == 0 {
		return nil
	}
	switch base := filepath.Base(f[0]); {
	case aPython.MatchString(base):
		return f
	case base == "env":
		f = f[1:]
		if len(f) > 0 && f[0] == "-S" {
			f = f[1:]
		}
		if len(f) == 0 || !aPython.MatchString(filepath.Base(f[0])) {
			return nil
		}
		return append([]string{inPath(f[0], environ)}, f[1:]...)
	case base == "sh":
		second, _, _ := bytes.Cut(rest, []byte("\n"))
		if m := pipExec.FindSubmatch(second); m != nil {
			return []string{string(m[1]) + string(m[2])}
		}
	}
	return nil
}

// inPath finds a program as env(1) does.
func inPath(name string, environ []string) string {
	if strings.Contains(name, "/") {
		return name
	}
	for _, kv := range slices.Backward(environ) {
		path, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		for _, d := range filepath.SplitList(path) {
			if p := filepath.Join(d, name); filepath.IsAbs(p) && isProgram(p) {
				return p
			}
		}
		break
	}
	return ""
}

func isProgram(path string) bool {
	st, err := os.Stat(path)
	return err == nil && filepath.IsAbs(path) && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}
