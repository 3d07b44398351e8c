package compile_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/execx"
	"corpus-git/internal/py"
	"corpus-git/sls"
	"corpus-git/sls/compile"
	"corpus-git/sls/fileroot"
	"corpus-git/sls/host"
	"corpus-git/sls/state"
	"corpus-git/sls/state/core"
)

func compileOne(t *testing.T, text string) error {
	roots := fileroot.Roots{{FS: fstest.MapFS{"t.sls": {Data: []byte(text)}}}}
	_, err := compile.SLS(t.Context(), &sls.Input{SLS: "t", Roots: roots, Host: host.New(execx.OS{}), Grains: py.NewDict(),
		Pillar: py.NewDict(), Cfg: py.NewDict("name", "t")}, nil)
	return err
}

// declare is a state with what its function must have, and more.
func declare(f *core.Function, more string) string {
	text := "x:\n  " + f.Name + ":\n    - name: /x\n"
	for _, r := range f.Required {
		text += "    - " + r + ": /y\n"
	}
	return text + more
}

// TestTypingErrorsInArguments: of every function, no argument that it does not have passes, and neither does one of its
// own that is written with a letter too many.
func TestTypingErrorsInArguments(t *testing.T) {
	table := state.All()
	free := map[string]string{
		"module.run":    "its arguments are functions to call",
		"module.wait":   "its arguments are functions to call",
		"test.nop":      "it is a stand-in for any state",
		"mc_proxy.hook": "it takes what stands there for others to read",
	}
	for _, n := range table.Names() {
		f, _ := table.Lookup(n)
		if f.AnyParam {
			require.NotEmpty(t, free[n], "%s takes any argument", n)
			continue
		}
		require.NoError(t, compileOne(t, declare(f, "")), n)
		wrong := []string{"no_such_argument"}
		if f.Ignores { // as Salt
			require.NoError(t, compileOne(t, declare(f, "    - no_such_argument: 1\n")), n)
			wrong = nil
		}
		for _, p := range f.Params {
			if typo := p + "q"; p != "name" && !(f.Ignores && table.ModuleHasParam(f.Name[:strings.Index(f.Name, ".")], typo)) {
				wrong = append(wrong, typo)
			}
		}
		for _, w := range wrong {
			err := compileOne(t, declare(f, "    - "+w+": 1\n"))
			require.ErrorContains(t, err, fmt.Sprintf("%s of state 'x' has no argument '%s'", n, w))
			_, needs := compile.NeedOf(err)
			require.False(t, needs, "a typing error is not given to Salt")
		}
		for _, r := range f.Required {
			err := compileOne(t, "x:\n  "+n+":\n    - name: /x\n")
			require.ErrorContains(t, err, "Missing parameter", "%s without %s", n, r)
		}
	}
}

// TestLackingArgumentsGoToSalt: what Salt documents and the built-in runner does not do is not a typing error.
func TestLackingArgumentsGoToSalt(t *testing.T) {
	table := state.All()
	seen := 0
	for _, n := range table.Names() {
		f, _ := table.Lookup(n)
		for l := range f.Unsupported {
			seen++
			err := compileOne(t, declare(f, "    - "+l+": something\n"))
			need, ok := compile.NeedOf(err)
			require.True(t, ok, "%s %s: %v", n, l, err)
			require.Equal(t, "the argument "+l+" of "+n, need.What)
			require.Equal(t, 4+len(f.Required), need.Line)
			nothing := "false"
			if f.Unsupported[l] == "true" {
				nothing = "true"
				_, ok = compile.NeedOf(compileOne(t, declare(f, "    - "+l+": false\n")))
				require.True(t, ok, "%s %s", n, l)
			}
			require.NoError(t, compileOne(t, declare(f, "    - "+l+": "+nothing+"\n")), "%s %s", n, l)
		}
	}
	require.Equal(t, 11, seen, "bg and quiet of the five cmd functions, search_only of file.replace, which Salt refuses; who names another argument as lacking says so here")
}

// TestLeftoverArgumentOfBuildout: the state took any keyword and did nothing with it, as the documentation of Salt 3007 says, and projects of
// the original corpus hand it a group: it is named, with its line. One that is misspelt is an error all the same.
func TestLeftoverArgumentOfBuildout(t *testing.T) {
	of := func(more string) (*compile.Program, error) {
		roots := fileroot.Roots{{FS: fstest.MapFS{"t.sls": {Data: []byte("x:\n  buildout.installed:\n    - name: /x\n" + more)}}}}
		return compile.SLS(t.Context(), &sls.Input{SLS: "t", Roots: roots, Host: host.New(execx.OS{}), Grains: py.NewDict(),
			Pillar: py.NewDict(), Cfg: py.NewDict("name", "t")}, nil)
	}
	prog, err := of("    - user: app\n    - group: app\n")
	require.NoError(t, err)
	require.Equal(t, "[t.sls:5: buildout.installed ignores the argument 'group']", fmt.Sprint(prog.Warnings))
	_, err = of("    - offlin: true\n")
	require.ErrorContains(t, err, "has no argument 'offlin'")
}

// What Salt ignores and another function takes is named, with what was meant perhaps, and is not a typing error: file.directory takes any keyword, and groups is
// user.present's.
func TestArgumentOfAnotherFunction(t *testing.T) {
	of := func(more string) (*compile.Program, error) {
		roots := fileroot.Roots{{FS: fstest.MapFS{"t.sls": {Data: []byte("x:\n  " + more)}}}}
		return compile.SLS(t.Context(), &sls.Input{SLS: "t", Roots: roots, Host: host.New(execx.OS{}), Grains: py.NewDict(),
			Pillar: py.NewDict(), Cfg: py.NewDict("name", "t")}, nil)
	}
	prog, err := of("file.directory:\n    - name: /x\n    - groups: [www-data]\n")
	require.NoError(t, err)
	require.Equal(t, "[t.sls:4: file.directory ignores the argument 'groups': did you mean 'group'?]", fmt.Sprint(prog.Warnings))
	_, err = of("file.directory:\n    - name: /x\n    - grup: www-data\n")
	require.ErrorContains(t, err, "has no argument 'grup'")
	_, err = of("user.present:\n    - name: x\n    - group: www-data\n") // which Salt refuses, too
	require.ErrorContains(t, err, "has no argument 'group'")
}
