package slstest_test

import (
	"encoding/json"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/sls/state"
)

// signatures prints the arguments of every public function of Salt's state modules, read from their source: a module of
// another system can't be imported here.
const signatures = `
import ast, json, os, salt.states
out = {}
d = os.path.dirname(salt.states.__file__)
for f in os.listdir(d):
    if not f.endswith(".py"):
        continue
    tree = ast.parse(open(os.path.join(d, f)).read())
    name = f[:-3]
    for n in tree.body:
        if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "__virtualname__":
            name = n.value.value
    for n in tree.body:
        if isinstance(n, ast.FunctionDef) and not n.name.startswith("_"):
            a = n.args
            out.setdefault(name + "." + n.name.rstrip("_"), {"args": [x.arg for x in a.args + a.kwonlyargs], "any": bool(a.kwarg)})
print(json.dumps(out))
`

// differing is why a function or an argument is on one side only.
func differing() map[string]string {
	const extension = "Salt 3008 carries the module as an extension; the arguments are those of the documentation of 3007"
	const free = "it takes any argument on both sides"
	return map[string]string{
		"alternatives.auto": extension, "alternatives.install": extension, "alternatives.remove": extension, "alternatives.set": extension,
		"buildout.installed": extension, "webutil.user_absent": extension, "webutil.user_exists": extension,
		"cmd.watch": "Salt makes it of cmd.wait, as an alias without a definition of its own", "mc_proxy.hook": "it is makina-states'", "mc_apache.include_module": "it is makina-states'", "mc_apache.exclude_module": "it is makina-states'", "corpus.output": "it is corpus-git's own", "corpus.wait": "it is corpus-git's own", "corpus.file": "it is corpus-git's own", "module.run": free, "module.wait": free, "test.nop": free,
		"file.directory lacks require":         "it is the requisite, which the runner hands on",
		"file.recurse lacks require":           "it is the requisite, which the runner hands on",
		"git.latest refuses unknown arguments": "Salt's fails for them",
		"cron.file refuses unknown arguments":  "Salt's hands them on to what reads the file, which fails for some",
		"file.replace adds search_only":        "it is the module function's: Salt's state ignores it and changes the file, so it is refused",
		"user.present adds gid_from_name":      "older releases of Salt have it, and projects use it",
	}
}

// TestSignatures: each built-in function knows the arguments of Salt's function, or names them as lacking, and no other.
func TestSignatures(t *testing.T) {
	python := filepath.Join(filepath.Dir(realSalt(t)), "python3")
	raw, err := exec.Command(python, "-c", signatures).Output()
	require.NoError(t, err)
	var salt map[string]struct {
		Args []string
		Any  bool
	}
	require.NoError(t, json.Unmarshal(raw, &salt))
	require.Greater(t, len(salt), 300)
	compared := 0
	var wrong []string
	table := state.All()
	for _, n := range table.Names() {
		f, _ := table.Lookup(n)
		s, there := salt[n]
		if !there || f.AnyParam {
			wrong = append(wrong, n)
			continue
		}
		compared++
		for _, a := range s.Args {
			_, lacks := f.Unsupported[a]
			if !f.HasParam(a) && !lacks {
				wrong = append(wrong, n+" lacks "+a)
			}
		}
		if f.Ignores && !s.Any {
			wrong = append(wrong, n+" ignores unknown arguments")
		}
		if s.Any && !f.Ignores {
			wrong = append(wrong, n+" refuses unknown arguments")
		}
		for _, a := range f.Params {
			if !s.Any && !slices.Contains(s.Args, a) {
				wrong = append(wrong, n+" adds "+a)
			}
		}
		for a := range f.Unsupported {
			if !s.Any && !slices.Contains(s.Args, a) {
				wrong = append(wrong, n+" adds "+a)
			}
		}
	}
	require.Greater(t, compared, 40)
	require.ElementsMatch(t, slices.Collect(maps.Keys(differing())), wrong, "arguments differ from Salt's: build them in, name them as lacking, or tell here why")
}
