package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/internal/py"
	"corpus-git/sls/state"
	"corpus-git/sls/state/core"
)

func TestCannotNamesWhatOnlySaltHas(t *testing.T) {
	table := state.All()
	for _, c := range []struct {
		fun, key string
		val      any
		what     string
	}{
		{"file.managed", "template", "mako", "the template engine mako of file.managed"},
		{"file.managed", "template", "jinja", ""},
		{"file.managed", "template", nil, ""},
		{"file.managed", "source", "ftp://host/x", "a source of the kind ftp:// of file.managed"},
		{"file.managed", "source", py.NewList("salt://a", "s3://b/c"), "a source of the kind s3:// of file.managed"},
		{"file.managed", "source", "https://host/x", ""},
		{"file.managed", "source_hash", "ftp://host/x.md5", "a source_hash of the kind ftp:// of file.managed"},
		{"file.managed", "encoding", "cp1255", "the encoding cp1255 of file.managed"},
		{"file.managed", "encoding", "latin-1", ""},
		{"file.replace", "encoding", "latin-1", "the encoding latin-1 of file.replace"},
		{"file.replace", "encoding", "UTF8", ""},
		{"file.managed", "encoding_errors", "namereplace", "the encoding_errors namereplace of file.managed"},
		{"file.managed", "encoding_errors", "ignore", ""},
		{"file.managed", "sig_backend", "asymmetric", ""},
		{"file.managed", "encoding", "UTF-8", ""},
		{"file.managed", "attrs", "i", ""},
		{"file.managed", "attrs", "", ""},
		{"file.replace", "pattern", "a(?=b)", ""},
		{"file.replace", "pattern", "a(b", "the regular expression in pattern, which is wrong (missing ), unterminated subpattern at position 3), of file.replace"},
		{"file.replace", "pattern", "(?P<n>a)b", ""},
		{"file.comment", "regex", `(a)\1`, ""},
		{"file.recurse", "exclude_pat", "E@(?!x)", ""},
		{"file.recurse", "exclude_pat", "E@*", "the regular expression in exclude_pat, which is wrong (nothing to repeat at position 1), of file.recurse"},
		{"file.recurse", "exclude_pat", "(?!x)", ""},
		{"file.serialize", "serializer", "toml", ""},
		{"file.serialize", "serializer", "plist", "the serializer plist of file.serialize"},
		{"file.serialize", "formatter", "Python", "the serializer python of file.serialize"},
		{"file.serialize", "serializer", "yaml", ""},
		{"archive.extracted", "options", "--strip-components=1", ""},
		{"archive.extracted", "archive_format", "rar", "the format rar of archive.extracted"},
		{"cmd.run", "output_encoding", "utf-16", "the output encoding utf-16 of cmd.run"},
		{"cmd.script", "output_encoding", "latin-1", ""},
		{"service.running", "sig", "web(?=d)", ""},
		{"service.running", "sig", "web[", "the regular expression in sig, which is wrong (unterminated character set at position 3), of service.running"},
		{"service.dead", "sig", "^web", ""},
		{"cmd.run", "root", "/chroot", "the argument root of cmd.run"},
		{"cron.present", "minute", "random", ""},
		{"cron.file", "name", "ftp://host/tab", "a source of the kind ftp:// of cron.file"},
		{"cron.file", "name", "https://host/tab", ""},
		{"cron.file", "source_hash", "s3://host/sums", "a source_hash of the kind s3:// of cron.file"},
		{"cron.file", "template", "mako", "the template engine mako of cron.file"},
		{"git.latest", "mirror", true, ""},
		{"git.latest", "bare", true, ""},
		{"git.present", "bare", true, ""},
		{"user.present", "hash_password", true, ""},
	} {
		fn, ok := table.Lookup(c.fun)
		require.True(t, ok)
		require.True(t, fn.Accepts(c.key), "%s %s", c.fun, c.key)
		require.Equal(t, c.what, state.Unsupported(fn, py.NewDict("name", "/x", c.key, c.val)))
	}
}

func TestAnArgumentThatIsLackingIsAskedForByWhatDiffersFromItsDefault(t *testing.T) {
	fn := &core.Function{Unsupported: map[string]string{"verify_ssl": "true", "signature": "", "encoding_errors": "strict"}}
	for _, c := range []struct {
		key   string
		val   any
		wants bool
	}{
		{"verify_ssl", true, false}, {"verify_ssl", false, true}, {"verify_ssl", nil, false},
		{"signature", "", false}, {"signature", false, false}, {"signature", "salt://x.sig", true},
		{"encoding_errors", "strict", false}, {"encoding_errors", "ignore", true},
	} {
		require.Equal(t, c.wants, fn.AsksUnsupported(c.key, c.val), "%s: %v", c.key, c.val)
	}
}
