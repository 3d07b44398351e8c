package compile

import (
	"strings"

	"corpus-git/internal/fault"
	"corpus-git/internal/py"
	"corpus-git/internal/saltyaml"
	"corpus-git/sls"
)

// high is Salt's high data: the declarations of all rendered files, in order.
// Source: Salt documentation, "Highstate data structure definitions".
type high struct {
	ids   map[string]*decl
	order []string
	// warnings are remarks about what Salt ignores.
	warnings []sls.Warning
}

// decl is one ID declaration.
type decl struct {
	id           string
	sls          string
	includedFrom []string
	at           pos
	states       []*stateDecl
}

// stateDecl is one state of an ID: its module, function and arguments.
type stateDecl struct {
	module string
	funs   []argument // the function: exactly one is valid
	args   []argument
	at     pos
	// iorder is the order of definition; 0 if an extend added the state.
	iorder int
}

// argument is one key and value of a state, or a function name (key "").
type argument struct {
	key string
	val any
	fun string
	at  pos
}

// extension changes a declaration: from extend, or from an _in requisite.
type extension struct {
	id     string
	sls    string
	at     pos
	states []*stateDecl
	strict bool
}

// exclusion removes declarations.
type exclusion struct {
	sls, id string
}

// document is what one SLS file itself declares.
type document struct {
	include  []includeRef
	decls    []*decl
	extends  []extension
	excludes []exclusion
}

type includeRef struct {
	name string
	at   pos
}

func newHigh() *high { return &high{ids: map[string]*decl{}} }

func (h *high) add(d *decl) {
	if _, ok := h.ids[d.id]; !ok {
		h.order = append(h.order, d.id)
	}
	h.ids[d.id] = d
}

func (h *high) remove(id string) {
	delete(h.ids, id)
	for i, x := range h.order {
		if x == id {
			h.order = append(h.order[:i:i], h.order[i+1:]...)
			return
		}
	}
}

func (d *decl) state(module string) *stateDecl {
	for _, s := range d.states {
		if s.module == module {
			return s
		}
	}
	return nil
}

// parseDocument reads the structure of a rendered file.
func parseDocument(src *source, root *saltyaml.Node) (*document, error) {
	doc := &document{}
	if root == nil || root.Value == nil {
		return doc, nil
	}
	if root.Kind != saltyaml.Mapping {
		return nil, failf(pos{src, root.Line}, "SLS %s does not render to a dictionary", src.sls).
			WithHint("the top of an SLS file is a mapping: an ID, then its states")
	}
	for i, k := range root.Keys {
		v := root.Items[i]
		at := pos{src, k.Line}
		id, ok := k.Value.(string)
		if !ok {
			return nil, failf(at, "ID '%s' in SLS '%s' is not formed as a string, but is type %s", py.Str(k.Value), src.sls, py.TypeName(k.Value)).
				WithHint("quote the ID")
		}
		var err error
		switch {
		case id == "include":
			doc.include, err = parseInclude(src, at, v)
		case id == "extend":
			doc.extends, err = parseExtend(src, at, v)
		case id == "exclude":
			doc.excludes, err = parseExclude(src, at, v)
		case strings.HasPrefix(id, "__"):
		default:
			var d *decl
			if d, err = parseDecl(src, id, at, v); err == nil {
				doc.decls = append(doc.decls, d)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return doc, nil
}

func parseInclude(src *source, at pos, v *saltyaml.Node) ([]includeRef, error) {
	if v.Kind != saltyaml.Sequence {
		return nil, failf(at, "Include Declaration in SLS %s is not formed as a list", src.sls).
			WithHint("write each SLS on a line of its own, after '- '")
	}
	var out []includeRef
	for _, it := range v.Items {
		p := pos{src, it.Line}
		switch x := it.Value.(type) {
		case string:
			out = append(out, includeRef{x, p})
		case *py.Dict: // {saltenv: sls}
			for _, e := range x.Items() {
				s, ok := e.Value.(string)
				if !ok {
					return nil, failf(p, "an include must be the name of an SLS")
				}
				if env := py.Str(e.Key); env != "base" && env != "_xenv" {
					return nil, failf(p, "Nonexistent saltenv '%s' found in include of '%s' within SLS '%s'", env, s, src.sls).
						WithHint("there is one environment: base")
				}
				out = append(out, includeRef{s, p})
			}
		default:
			return nil, failf(p, "an include must be the name of an SLS, not a %s", py.TypeName(it.Value))
		}
	}
	return out, nil
}

func parseExclude(src *source, at pos, v *saltyaml.Node) ([]exclusion, error) {
	if v.Kind != saltyaml.Sequence {
		return nil, failf(at, "Exclude Declaration in SLS %s is not formed as a list", src.sls)
	}
	var out []exclusion
	for _, it := range v.Items {
		switch x := it.Value.(type) {
		case string:
			out = append(out, exclusion{sls: x})
		case *py.Dict:
			if s, ok := x.GetStr("sls"); ok && x.Len() == 1 {
				out = append(out, exclusion{sls: py.Str(s)})
				continue
			}
			if s, ok := x.GetStr("id"); ok && x.Len() == 1 {
				out = append(out, exclusion{id: py.Str(s)})
				continue
			}
			return nil, failf(pos{src, it.Line}, "an exclude is 'sls: NAME' or 'id: NAME'")
		default:
			return nil, failf(pos{src, it.Line}, "an exclude is 'sls: NAME' or 'id: NAME'")
		}
	}
	return out, nil
}

func parseExtend(src *source, at pos, v *saltyaml.Node) ([]extension, error) {
	if v.Kind != saltyaml.Mapping {
		return nil, failf(at, "Extension value in SLS '%s' is not a dictionary", src.sls)
	}
	var out []extension
	for i, k := range v.Keys {
		p := pos{src, k.Line}
		body := v.Items[i]
		if body.Kind != saltyaml.Mapping {
			return nil, failf(p, "Extension name '%s' in SLS '%s' is not a dictionary", py.Str(k.Value), src.sls)
		}
		states, err := parseStates(src, py.Str(k.Value), body, true)
		if err != nil {
			return nil, err
		}
		if len(states) == 0 {
			return nil, failf(p, "the extension of '%s' names no state", py.Str(k.Value))
		}
		out = append(out, extension{id: py.Str(k.Value), sls: src.sls, at: p, states: states})
	}
	return out, nil
}

func parseDecl(src *source, id string, at pos, v *saltyaml.Node) (*decl, error) {
	d := &decl{id: id, sls: src.sls, at: at}
	if s, ok := v.Value.(string); ok { // short form: vim: pkg.installed
		mod, fun, dotted := strings.Cut(s, ".")
		if !dotted {
			return nil, failf(at, "ID %s in SLS %s is not a dictionary", id, src.sls).
				WithHint("write the function as module.function")
		}
		fun, _, _ = strings.Cut(fun, ".")
		p := pos{src, v.Line}
		d.states = []*stateDecl{{module: mod, funs: []argument{{fun: fun, at: p}}, at: p}}
		return d, nil
	}
	if v.Kind != saltyaml.Mapping {
		return nil, failf(at, "ID %s in SLS %s is not a dictionary", id, src.sls).
			WithHint("below an ID stands a function such as cmd.run, with its arguments as a list")
	}
	var err error
	d.states, err = parseStates(src, id, v, false)
	return d, err
}

// parseStates reads the states of an ID. Those written as module.function come after those
// written as module, as in Salt.
func parseStates(src *source, id string, body *saltyaml.Node, ext bool) ([]*stateDecl, error) {
	var plain, dotted []*stateDecl
	seen := map[string]bool{}
	for i, k := range body.Keys {
		v := body.Items[i]
		at := pos{src, k.Line}
		key, ok := k.Value.(string)
		if !ok {
			return nil, failf(at, "in ID '%s' a state must be a string, not a %s", id, py.TypeName(k.Value))
		}
		if strings.HasPrefix(key, "_") {
			continue
		}
		if v.Value == nil {
			return nil, failf(at, "ID '%s' in SLS '%s' contains a short declaration (%s) with a trailing colon", id, src.sls, key).
				WithHint("without arguments write  %s: []", key)
		}
		if v.Kind != saltyaml.Sequence {
			return nil, failf(at, "State '%s' in SLS '%s' is not formed as a list", id, src.sls).
				WithHint("write each argument of %s as '- key: value'", key)
		}
		s := &stateDecl{at: at}
		mod, fun, hasDot := strings.Cut(key, ".")
		s.module = mod
		if seen[mod] {
			return nil, failf(at, "ID '%s' in SLS '%s' contains multiple state declarations of the same type", id, src.sls).
				WithHint("give the second %s state an ID of its own", mod)
		}
		seen[mod] = true
		if err := parseArgs(src, id, s, v); err != nil {
			return nil, err
		}
		if hasDot {
			fun, _, _ = strings.Cut(fun, ".")
			s.funs = append(s.funs, argument{fun: fun, at: at})
			dotted = append(dotted, s)
		} else {
			plain = append(plain, s)
		}
		if ext {
			continue
		}
		if len(s.funs) == 0 {
			return nil, failf(at, "No function declared in state '%s' in SLS '%s'", id, src.sls).
				WithHint("write module.function, such as cmd.run")
		}
		if len(s.funs) > 1 {
			return nil, failf(at, "Too many functions declared in state '%s' in SLS '%s'", id, src.sls)
		}
	}
	return append(plain, dotted...), nil
}

func parseArgs(src *source, id string, s *stateDecl, list *saltyaml.Node) error {
	for _, it := range list.Items {
		p := pos{src, it.Line}
		if fun, ok := it.Value.(string); ok {
			if strings.Contains(strings.TrimSpace(fun), " ") {
				return failf(p, "The function \"%s\" in state \"%s\" in SLS \"%s\" has whitespace", firstWord(fun), id, src.sls).
					WithHint("perhaps this is an argument that is missing a \":\"")
			}
			s.funs = append(s.funs, argument{fun: fun, at: p})
			continue
		}
		if it.Kind != saltyaml.Mapping {
			return failf(p, "an argument of state '%s' must be '- key: value', not a %s", id, py.TypeName(it.Value))
		}
		for j, k := range it.Keys {
			key, ok := k.Value.(string)
			if !ok {
				return failf(pos{src, k.Line}, "the name of an argument must be a string, not a %s", py.TypeName(k.Value))
			}
			a := argument{key: key, val: it.Items[j].Value, at: pos{src, k.Line}}
			if j == 0 && len(it.Keys) > 1 {
				if _, isReq := parseReqType(key); isReq {
					return failf(a.at, "Multiple dictionaries defined in argument of state '%s' in SLS '%s'", id, src.sls)
				}
			}
			if err := checkArg(src, id, a); err != nil {
				return err
			}
			s.args = append(s.args, a)
		}
	}
	return nil
}

// firstWord returns the first word of a rendered text, whose rest must not appear in an error.
func firstWord(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.IndexAny(s, " \t\n"); i > 0 {
		return s[:i] + " …"
	}
	return s
}

// checkArg verifies names and requisites as soon as they are read.
func checkArg(src *source, id string, a argument) error {
	if a.key == "names" {
		if _, ok := a.val.(*py.List); !ok {
			return failf(a.at, "The 'names' argument in state '%s' in SLS '%s' needs to be formed as a list", id, src.sls)
		}
	}
	if _, ok := parseReqType(a.key); !ok {
		return nil
	}
	l, ok := a.val.(*py.List)
	if !ok {
		return failf(a.at, "The %s statement in state '%s' in SLS '%s' needs to be formed as a list", a.key, id, src.sls)
	}
	for _, r := range l.Items() {
		if _, err := parseReq(a, r); err != nil {
			return err
		}
	}
	return nil
}

// ReqRef points at states: module (or "id", "sls") and an ID, a name or a pattern.
type ReqRef struct {
	Module, Target string
	at             pos
}

func parseReq(a argument, v any) (ReqRef, *fault.Error) {
	switch x := v.(type) {
	case string:
		return ReqRef{"id", x, a.at}, nil
	case *py.Dict:
		if x.Len() != 1 {
			return ReqRef{}, failf(a.at, "a requisite of %s is not formed as a single key dictionary", a.key)
		}
		e := x.Items()[0]
		mod, ok := e.Key.(string)
		if !ok {
			return ReqRef{}, failf(a.at, "a requisite of %s must begin with the name of a state module", a.key)
		}
		if i := strings.IndexByte(mod, '.'); i >= 0 {
			return ReqRef{}, failf(a.at, "Invalid requisite type '%s' in %s", mod, a.key).
				WithHint("requisite types must not contain dots, did you mean '%s'?", mod[:i])
		}
		if e.Value == nil {
			return ReqRef{}, nil
		}
		s, ok := e.Value.(string)
		if !ok {
			return ReqRef{}, failf(a.at, "Requisite [%s: %s] must have a string as the value, not a %s", a.key, mod, py.TypeName(e.Value)).
				WithHint("quote it")
		}
		return ReqRef{mod, s, a.at}, nil
	}
	return ReqRef{}, failf(a.at, "a requisite of %s must be '- module: ID', not a %s", a.key, py.TypeName(v))
}
