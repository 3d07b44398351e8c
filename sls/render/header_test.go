package render_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/sls/render"
)

func TestOwnOptions(t *testing.T) {
	for src, line := range map[string]int{
		"": 0, "a\n": 0, "#jinja2:\n": 0, "#jinja2: nonsense\n": 0, "#jinja2: [1]\n": 0, " #jinja2: {}\n": 0, "a\n#jinja2: {}\n": 0,
		"#!/bin/sh\n#jinja2: {}\n": 0, "#!jinja|yaml\n": 0, "#jinja2: {}": 1, "#!x\r#jinja2: {}": 2, "#jinja2:{\"trim_blocks\": true}\r\nx": 1, "#!jinja|yaml\n#jinja2: {\"trim_blocks\": true}\n": 2,
	} {
		got, text := render.OwnOptions(src)
		require.Equal(t, line, got, "%q", src)
		require.Equal(t, line > 0, strings.HasPrefix(text, "#jinja2:"))
	}
}
