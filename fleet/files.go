package fleet

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/strictyaml"
	"corpus-git/layout"
)

// The files of a project that has nodes.
const (
	NodesFile  = "nodes.yaml"                         // in the pillar
	StagesFile = layout.SaltDir + "/" + "stages.yaml" // in the code
)

// Limits of what a project may configure.
const (
	maxFile  = 1 << 20
	maxNodes = 10_000
)

// Member is a node as listed in the pillar.
type Member struct {
	Name  string   `json:"name"`
	Roles []string `json:"roles,omitempty"`
	// Line is its line in nodes.yaml, for messages; 0 if it has none.
	Line int `json:"-"`
}

type nodesFile struct {
	Nodes map[string]struct {
		Roles []string `yaml:"roles"`
	} `yaml:"nodes"`
}

var (
	validRole = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
	validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,62}[a-z0-9])?$`)
	ranged    = regexp.MustCompile(`^([^\[\]]*)\[(\d+)-(\d+)\]([^\[\]]*)$`)
)

// ReadNodes reads nodes.yaml of a pillar. Without that file there are no nodes, and ok is false. Errors name file and
// line.
func ReadNodes(pillar fs.FS) (list []Member, ok bool, err error) {
	if pillar == nil {
		return nil, false, nil
	}
	var f nodesFile
	text, err := read(pillar, NodesFile, &f)
	if err != nil || text == nil {
		return nil, false, err
	}
	lines := strictyaml.Parse(text)
	seen := map[string]int{} // their lines
	for _, pattern := range sorted(f.Nodes) {
		line := lines.Of("nodes", pattern)
		for i, role := range f.Nodes[pattern].Roles {
			if !validRole.MatchString(role) {
				return nil, false, fault.New(fault.Usage, At(NodesFile, lines.Of("nodes", pattern, "roles", i)), "%q is not a valid role name", role)
			}
		}
		names, err := expand(pattern)
		if err != nil {
			return nil, false, fault.New(fault.Usage, At(NodesFile, line), "%w", err).WithHint("%s", fault.HintOf(err))
		}
		for _, name := range names {
			if was, twice := seen[name]; twice {
				return nil, false, fault.New(fault.Usage, At(NodesFile, max(line, was)), "the node %s is named twice: in line %d, too", name, min(line, was))
			}
			if seen[name] = line; len(seen) > maxNodes {
				return nil, false, fault.New(fault.Usage, At(NodesFile, line), "more than %d nodes", maxNodes)
			}
			list = append(list, Member{Name: name, Roles: f.Nodes[pattern].Roles, Line: line})
		}
	}
	if len(list) == 0 {
		return nil, false, fault.New(fault.Usage, At(NodesFile, lines.Of("nodes")), "it names no node").WithHint("remove the file to deploy on this machine only")
	}
	return list, true, nil
}

// Gone returns the names of nodes that a pillar lists and that are not among the given ones. A pillar that cannot be read lists none.
func Gone(pillar fs.FS, now []Member) (names []string) {
	before, _, err := ReadNodes(pillar)
	if err != nil {
		return nil
	}
	still := map[string]bool{}
	for _, m := range now {
		still[m.Name] = true
	}
	for _, m := range before {
		if !still[m.Name] {
			names = append(names, m.Name)
		}
	}
	return names
}

// sorted returns the keys in the order of their names, web2 before web10.
func sorted[T any](m map[string]T) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.SortFunc(out, natural)
	return out
}

// natural compares names by the numbers in them.
func natural(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x > 0 && y > 0 {
			n, m := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
			if len(n) != len(m) {
				return len(n) - len(m)
			}
			if c := strings.Compare(n, m); c != 0 {
				return c
			}
			a, b = a[x:], b[y:]
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// At names a line of a file in a message; line 0 is not known.
func At(file string, line int) string {
	if line == 0 {
		return file
	}
	return file + ":" + strconv.Itoa(line)
}

// expand returns the names that web[1-12] stands for.
func expand(pattern string) ([]string, error) {
	m := ranged.FindStringSubmatch(pattern)
	if m == nil {
		if !validName.MatchString(pattern) {
			return nil, fault.New(fault.Usage, "", "%q is not a valid node name", pattern).WithHint("lower-case letters, digits, dots and dashes; web[1-12] stands for twelve")
		}
		return []string{pattern}, nil
	}
	from, err1 := strconv.Atoi(m[2])
	to, err2 := strconv.Atoi(m[3])
	if err1 != nil || err2 != nil || from > to || to-from >= maxNodes {
		return nil, fault.New(fault.Usage, "", "%q is not a range of nodes", pattern).WithHint("as in web[1-12]; %d at most", maxNodes)
	}
	var out []string
	for n := from; n <= to; n++ {
		name := fmt.Sprintf("%s%0*d%s", m[1], width(m[2]), n, m[4])
		if !validName.MatchString(name) {
			return nil, fault.New(fault.Usage, "", "%q is not a valid node name", name)
		}
		out = append(out, name)
	}
	return out, nil
}

// width returns how many digits a number has if it is written with leading zeros, otherwise 0.
func width(s string) int {
	if len(s) > 1 && s[0] == '0' {
		return len(s)
	}
	return 0
}

// read decodes a file of the tree, and returns its text; nil if there is none.
func read(tree fs.FS, name string, into any) ([]byte, error) {
	f, err := tree.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fault.New(fault.Usage, name, "it is longer than %d bytes", maxFile)
	}
	if err := strictyaml.Decode(text, into); err != nil {
		return nil, fault.New(fault.Usage, name, "%w", err)
	}
	return append([]byte{}, text...), nil
}
