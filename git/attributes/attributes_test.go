package attributes

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMayNote(t *testing.T) {
	type file struct{ dir, text string }
	for name, tt := range map[string]struct {
		files   []file
		yes, no []string
	}{
		"nothing":       {[]file{{"", "* text eol=crlf\n*.bin binary"}}, nil, []string{"a", "d/"}},
		"everywhere":    {[]file{{"", "*.psd filter=lfs"}}, []string{"a", "d/", "d/e/f"}, nil},
		"one folder":    {[]file{{"po/", "*.po -filter"}}, []string{"po/", "po/a", "po/sub/"}, []string{"p/", "poem/", "a", "lib/po/"}},
		"above it":      {[]file{{"a/b/", "x working-tree-encoding=UTF-16"}}, []string{"a/", "a/b/", "a/b/c/"}, []string{"a/c/", "b/"}},
		"with a slash":  {[]file{{"", "/art/*.psd filter=lfs"}}, []string{"art/", "art/a.psd", "art/deep/"}, []string{"src/", "a"}},
		"whole name":    {[]file{{"d/", "e/f filter=x"}}, []string{"d/", "d/e/", "d/e/f"}, []string{"d/g/", "d/e/g"}},
		"stars first":   {[]file{{"", "**/x filter=lfs"}}, []string{"a/", "x"}, nil},
		"through macro": {[]file{{"", "[attr]big filter=lfs\n"}, {"d/", "* big"}}, []string{"d/a", "e/"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var texts []Text
			for _, f := range tt.files {
				texts = append(texts, Text{Dir: f.dir, Data: []byte(f.text)})
			}
			a := Parse(texts)
			for _, p := range tt.yes {
				require.True(t, a.MayNote(p), p)
			}
			for _, p := range tt.no {
				require.False(t, a.MayNote(p), p)
			}
		})
	}
	require.False(t, (*Attributes)(nil).MayNote("a"))
}
