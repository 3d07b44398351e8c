package project

import (
	"context"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/layout"
	"corpus-git/project/keydoc"
	"corpus-git/project/permission"
	"corpus-git/project/schema"
)

var updateReference = flag.Bool("update", false, "write docs/cfg-keys.md")

// TestReference holds docs/cfg-keys.md to the code.
func TestReference(t *testing.T) {
	page := filepath.Join("..", "docs", "cfg-keys.md")
	want, err := Reference(t.Context())
	require.NoError(t, err)
	if *updateReference {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
	}
	got, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run go test ./project -run TestReference -update")
}

func documentedKeys(docs ...[]documented) []string {
	var out []string
	for _, d := range slices.Concat(docs...) {
		if d.key == "skip_PROCEDURE" {
			for _, p := range procedureKeys() {
				out = append(out, "skip_"+p)
			}
			continue
		}
		out = append(out, d.key)
	}
	slices.Sort(out)
	return out
}

// TestReferenceHasEveryKey: what cfg holds, and each key that the code of this package asks the merged layers for, is documented, and nothing else is.
func TestReferenceHasEveryKey(t *testing.T) {
	in := CfgInputs{Name: "app", Layout: layout.Root("/srv").Project("app"), Deployment: &Deployment{ID: "a", At: time.Unix(1, 0)}, Classes: &schema.Classes{}}
	c, err := BuildCfg(t.Context(), in)
	require.NoError(t, err)
	keys := map[string]bool{"redact_show": true, "outputs": true, "exports": true, "kv": true}
	for _, e := range c.Dict().Items() {
		keys[py.Str(e.Key)] = true
	}
	require.Equal(t, slices.Sorted(maps.Keys(keys)), documentedKeys(cfgKeys(), factKeys()))

	for _, key := range keysOfSource(t) {
		require.True(t, keys[key], "cfg does not have the key %s, which the code reads: it belongs to the defaults", key)
	}
	for _, key := range documentedKeys(factKeys()) {
		_, ok := facts(in).GetStr(key)
		ok = ok || slices.Contains([]string{"outputs", "exports", "kv", "env_class", "deploy_summary", "deploy_ret", "sls_default_pillar"}, key)
		require.True(t, ok, "%s is said by no deployment", key)
	}
}

// keysOfSource are the keys in  c.root.get([]string{"…"}), c.str("…"), c.strs("…"), c.flag("…") and c.boolean("…").
func keysOfSource(t *testing.T) []string {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var out []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"get", "str", "strs", "flag", "boolean"}, sel.Sel.Name) {
				return true
			}
			arg := call.Args[0]
			if list, ok := arg.(*ast.CompositeLit); ok && len(list.Elts) == 1 {
				arg = list.Elts[0]
			}
			switch arg := arg.(type) {
			case *ast.BasicLit:
				s, err := strconv.Unquote(arg.Value)
				require.NoError(t, err)
				out = append(out, s)
			case *ast.Ident:
				out = append(out, map[string][]string{"checksKey": {checksKey}, "unitsKey": {unitsKey}, "logsKey": {logsKey}, "permissionsKey": {permissionsKey}}[arg.Name]...)
			}
			return true
		})
	}
	require.Subset(t, out, []string{"submodules", checksKey, unitsKey, logsKey, "user"})
	return out
}

// TestReferenceOfChecks: each key of a check is documented, and its default is what a check has that does not name it.
func TestReferenceOfChecks(t *testing.T) {
	target := map[CheckKind]string{CheckHTTP: "http://h/", CheckTCP: "h:1", CheckUnix: "/s", CheckCommand: "true", CheckUnit: "a.service", CheckCertificate: "h:1"}
	keys := map[string]bool{}
	for _, kind := range CheckKinds() {
		for key := range checkKeys(kind) {
			if key != string(kind) {
				keys[key] = true
			}
		}
	}
	require.Equal(t, slices.Sorted(maps.Keys(keys)), documentedKeys(checkKeyDocs()))
	var kinds []string
	for _, d := range docs(keydoc.Kinds()) {
		kinds = append(kinds, d.key)
	}
	for i, kind := range CheckKinds() {
		require.Equal(t, string(kind), kinds[i])
	}
	check := func(kind CheckKind, more ...any) Check {
		d := py.NewDict(append([]any{string(kind), target[kind]}, more...)...)
		c, err := BuildCfg(t.Context(), CfgInputs{Name: "app", Layout: layout.Root("/srv").Project("app"), Sample: func(context.Context) (*py.Dict, error) {
			return py.NewDict("makina-projects.app", py.NewDict("checks", py.NewDict("a", d))), nil
		}})
		require.NoError(t, err)
		return c.Checks()[0]
	}
	for _, d := range checkKeyDocs() {
		if d.def == "" {
			continue
		}
		var value any = d.def
		switch d.def {
		case "false":
			value = false
		case "[deploy, rollback, converge]":
			value = py.NewList("deploy", "rollback", "converge")
		}
		kind := CheckHTTP
		if d.key == "days" {
			kind = CheckCertificate
		}
		require.Equal(t, check(kind), check(kind, d.key, value), d.key)
	}
}

// TestReferenceOfUnitsAndPermissions: the documented keys are those that are read, and no others.
func TestReferenceOfUnitsAndPermissions(t *testing.T) {
	require.ElementsMatch(t, permission.Keys(), documentedKeys(docs(keydoc.Permissions())))
	for _, d := range docs(keydoc.Units()) {
		entry := newTree()
		m := merger{root: entry}
		m.merge(py.NewDict(d.key, "a"), LayerSample)
		_, _, says := readUnit("a", entry)
		require.NotContains(t, says, "unknown key", d.key)
	}
	entry := newTree()
	m := merger{root: entry}
	m.merge(py.NewDict("nosuch", "a"), LayerSample)
	_, _, says := readUnit("a", entry)
	_, list, _ := strings.Cut(says, "a unit has ")
	require.ElementsMatch(t, documentedKeys(docs(keydoc.Units())), strings.FieldsFunc(strings.NewReplacer(" or ", " ", " and ", " ").Replace(list), func(r rune) bool { return r == ',' || r == ' ' }))
}
