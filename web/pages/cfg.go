package pages

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// cfgDocument is a configuration as  cfg --json  prints it: values of the pillar are hidden.
type cfgDocument struct {
	Cfg     any
	Origins map[string]string
}

type cfgRow struct{ Key, Value, Origin string }

// rows are its values with their keys, those that have a text in them; cut reports that there are more than most bytes of them.
func (d cfgDocument) rows(search string, most int) (out []cfgRow, cut bool) {
	var walk func(key string, v any)
	walk = func(key string, v any) {
		if m, ok := v.(map[string]any); ok && len(m) > 0 {
			for _, k := range slices.Sorted(maps.Keys(m)) {
				at := k
				if key != "" {
					at = key + ":" + k
				}
				walk(at, m[k])
			}
			return
		}
		row := cfgRow{Key: key, Value: cfgValue(v), Origin: d.origin(key)}
		if !strings.Contains(row.Key, search) && !strings.Contains(row.Value, search) {
			return
		}
		// What a row of the table takes beside its text.
		if most -= len(row.Key) + len(row.Value) + len(row.Origin) + 70; most < 0 {
			cut = true
			return
		}
		out = append(out, row)
	}
	walk("", d.Cfg)
	return out, cut
}

// origin returns the layer of a value: its own, or that of what it is in.
func (d cfgDocument) origin(key string) string {
	for {
		if o, ok := d.Origins[key]; ok {
			return o
		}
		i := strings.LastIndexByte(key, ':')
		if i < 0 {
			return ""
		}
		key = key[:i]
	}
}

func cfgValue(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case nil:
		return "null"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
