package replica_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"corpus-git/cluster/replica"
)

func TestText(t *testing.T) {
	for name, want := range map[string]string{
		"refs/heads/master": "refs/heads/master", "refs/tags/größe": "refs/tags/größe", "a%b": "a%25b", "%41": "%2541", "\xff\xfe": "%FF%FE", "ü\xc3": "ü%C3", "": "",
	} {
		for _, v := range []any{replica.Text(name), replica.Item{Name: replica.Text(name), Target: replica.Text(name)}} {
			text, err := json.Marshal(v)
			require.NoError(t, err)
			require.Contains(t, string(text), `"`+want+`"`)
			require.True(t, utf8.Valid(text))
			back := reflect.New(reflect.TypeOf(v))
			require.NoError(t, json.Unmarshal(text, back.Interface()))
			require.Equal(t, v, back.Elem().Interface())
		}
	}
	for _, earlier := range []string{"%", "%zz"} {
		var got replica.Text
		require.NoError(t, json.Unmarshal([]byte(`"`+earlier+`"`), &got))
		require.Equal(t, replica.Text(earlier), got, "from an earlier release")
	}
}
