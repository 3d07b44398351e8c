package jinja

import "corpus-git/internal/py"

// kind is the type of a token; the names are those that Jinja2's messages use.
type kind uint8

const (
	tEOF kind = iota
	tData
	tVarBegin
	tVarEnd
	tBlockBegin
	tBlockEnd
	tName
	tString
	tInteger
	tFloat
	tAdd
	tAssign
	tColon
	tComma
	tDiv
	tDot
	tEq
	tFloorDiv
	tGt
	tGtEq
	tLBrace
	tLBracket
	tLParen
	tLt
	tLtEq
	tMod
	tMul
	tNe
	tPipe
	tPow
	tRBrace
	tRBracket
	tRParen
	tSemicolon
	tSub
	tTilde
)

// describeKind names a kind as Jinja2's messages do.
func describeKind(k kind) string {
	switch k {
	case tEOF:
		return "end of template"
	case tData:
		return "template data / text"
	case tVarBegin:
		return "begin of print statement"
	case tVarEnd:
		return "end of print statement"
	case tBlockBegin:
		return "begin of statement block"
	case tBlockEnd:
		return "end of statement block"
	case tName:
		return "name"
	case tString:
		return "string"
	case tInteger:
		return "integer"
	case tFloat:
		return "float"
	}
	for _, op := range operatorTable {
		if op.kind == k {
			return op.text
		}
	}
	return "token"
}

// operatorTable lists the operators, longest first.
var operatorTable = [...]struct {
	text string
	kind kind
}{
	{"//", tFloorDiv}, {"**", tPow}, {"==", tEq}, {"!=", tNe}, {">=", tGtEq}, {"<=", tLtEq},
	{"+", tAdd}, {"-", tSub}, {"/", tDiv}, {"*", tMul}, {"%", tMod}, {"~", tTilde}, {"[", tLBracket},
	{"]", tRBracket}, {"(", tLParen}, {")", tRParen}, {"{", tLBrace}, {"}", tRBrace}, {">", tGt}, {"<", tLt},
	{"=", tAssign}, {".", tDot}, {":", tColon}, {"|", tPipe}, {",", tComma}, {";", tSemicolon},
}

// token is one token; val is a string for data, names and strings, a number for numbers.
type token struct {
	kind kind
	line int
	str  string
	val  any
}

// describe returns the token as an error message names it.
func (t token) describe() string {
	if t.kind == tName {
		return t.str
	}
	return describeKind(t.kind)
}

// isName reports whether the token is that very name.
func (t token) isName(name string) bool { return t.kind == tName && t.str == name }

// quote is Python's repr of a string: how Jinja2 quotes names in messages.
func quote(s string) string { return py.Repr(s) }
