package archive

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpaceErrorSaysFigures(t *testing.T) {
	e := &SpaceError{Path: "/a", Need: 2_500_000_000, Free: 3_000_000_000, Reserve: 1 << 30}
	require.Equal(t, "not enough space for an archive in /a: it takes 2.5 GB, 1.9 GB of 3.0 GB free may be used (1.1 GB stay in reserve)", e.Error())
	require.Equal(t, "999 B", size(999))
	require.Equal(t, "1.0 MB", size(999_960))
}
