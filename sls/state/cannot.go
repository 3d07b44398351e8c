package state

import (
	"fmt"
	"slices"
	"strings"

	"corpus-git/internal/py"
	"corpus-git/internal/pyre"
	"corpus-git/sls/state/codecs"
	"corpus-git/sls/state/core"
	"corpus-git/sls/state/fetch"
	"corpus-git/sls/state/file/formats"
)

// Unsupported names the value of an argument that only Salt supports, as a clause such as
// "the template engine mako of file.managed"; it is "" if there is none. It is checked before anything has run.
func Unsupported(f *core.Function, args *py.Dict) string {
	text := func(key string) string {
		if s, ok := args.GetStr(key); ok && s != nil && f.HasParam(key) {
			return py.Str(s)
		}
		return ""
	}
	asks := func(key string) bool { v, ok := args.GetStr(key); return ok && f.HasParam(key) && py.Truth(v) }
	say := func(format string, v ...any) string { return fmt.Sprintf(format, v...) + " of " + f.Name }
	module, fun, _ := strings.Cut(f.Name, ".")
	if f.AnyParam {
		return ""
	}
	if e := text("template"); e != "" && e != "jinja" && module != "git" {
		return say("the template engine %s", e)
	}
	if module == "file" || f.Name == "archive.extracted" || strings.HasSuffix(f.Name, "script") {
		for _, key := range []string{"source", "sources", "source_hash", "source_hashes"} {
			if kind := unsupportedScheme(args, key); kind != "" {
				return say("a %s of the kind %s://", key, kind)
			}
		}
	}
	if kind := unsupportedScheme(args, "name"); kind != "" && f.Name == "cron.file" { // its name is the source
		return say("a source of the kind %s://", kind)
	}
	if kind := unsupportedScheme(args, "source_hash"); kind != "" && f.Name == "cron.file" {
		return say("a source_hash of the kind %s://", kind)
	}
	if e := text("encoding"); e != "" && (codecs.Lookup(e) == nil || !f.HasParam("encoding_errors") && codecs.Lookup(e).Name != "") {
		return say("the encoding %s", e)
	}
	if e := text("output_encoding"); e != "" && module == "git" && !codecs.Decodable(e) {
		return say("the output_encoding %s", e)
	}
	if e := text("encoding_errors"); e == "namereplace" {
		return say("the encoding_errors %s", e)
	}
	if e := text("sig_backend"); e != "" && e != "gpg" && (asks("signature") || asks("source_hash_sig")) {
		return say("the sig_backend %s", e)
	}
	if e := text("output_encoding"); e != "" {
		if _, ok := codecs.Decoder(e); !ok {
			return say("the output encoding %s", e)
		}
	}
	if what := unsupportedRegex(f, text); what != "" {
		return say("%s", what)
	}
	for _, key := range []string{"root"} {
		if asks(key) {
			return say("the argument %s", key)
		}
	}
	switch {
	case module == "archive" && strings.EqualFold(text("archive_format"), "rar"):
		return say("the format rar")
	case fun == "serialize":
		return unsupportedFormat(f, args, strings.ToLower(text("serializer")+text("formatter")), asks("merge_if_exists"))
	}
	return ""
}

// unsupportedRegex is Unsupported for regular expressions: errors in one are reported by Salt.
func unsupportedRegex(f *core.Function, text func(key string) string) string {
	file := strings.HasPrefix(f.Name, "file.")
	for _, key := range []string{"sig", "pattern", "regex", "insert_before_match", "insert_after_match", "include_pat", "exclude_pat"} {
		e := text(key)
		switch key {
		case "sig":
		case "include_pat", "exclude_pat":
			var ok bool
			if e, ok = strings.CutPrefix(e, "E@"); !ok {
				continue
			}
		default:
			if !file {
				continue
			}
		}
		if _, err := pyre.Compile(e, 0); err != nil {
			return fmt.Sprintf("the regular expression in %s, which is wrong (%s),", key, err.Error())
		}
	}
	return ""
}

// unsupportedFormat is Unsupported for the formats of file.serialize.
func unsupportedFormat(f *core.Function, args *py.Dict, format string, merge bool) string {
	if slices.Contains([]string{"keyvalue", "plist", "python", "yamlex"}, format) {
		return "the serializer " + format + " of " + f.Name
	}
	if e, _ := args.GetStr("encoding"); format == "msgpack" && py.Truth(e) {
		return "an encoding with the serializer msgpack of " + f.Name
	}
	if format == "toml" && merge {
		return "merge_if_exists with the serializer toml of " + f.Name
	}
	known := map[string][]string{"configparser": formats.IniOptions(), "msgpack": {}, "toml": {}}
	for _, key := range []string{"serializer_opts", "deserializer_opts"} {
		v, _ := args.GetStr(key)
		l, _ := v.(*py.List)
		if l == nil || known[format] == nil {
			continue
		}
		for _, it := range l.Items() {
			d, _ := it.(*py.Dict)
			if d == nil {
				continue
			}
			for _, e := range d.Items() {
				if name := py.Str(e.Key); !slices.Contains(known[format], name) {
					return "the option " + name + " of the serializer " + format + " of " + f.Name
				}
			}
		}
	}
	return ""
}

// unsupportedScheme returns the scheme of a source that fetch does not read.
func unsupportedScheme(args *py.Dict, key string) string {
	v, _ := args.GetStr(key)
	all := []any{v}
	if l, ok := v.(*py.List); ok {
		all = l.Items()
	}
	for _, s := range all {
		if s, ok := s.(string); ok && !slices.Contains([]string{"", "salt", "file", "http", "https"}, fetch.Scheme(s)) {
			return fetch.Scheme(s)
		}
	}
	return ""
}
