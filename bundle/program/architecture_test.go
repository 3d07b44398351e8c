package program_test

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"corpus-git/bundle/program"
)

func TestArchitecture(t *testing.T) {
	elf := func(class, data byte, machine string) string {
		return "\x7fELF" + string([]byte{class, data}) + strings.Repeat("\x00", 12) + machine
	}
	for in, want := range map[string]string{
		elf(2, 1, "\x3e\x00"): "amd64", elf(2, 1, "\xb7\x00"): "arm64", elf(1, 1, "\x03\x00"): "386", elf(1, 1, "\x28\x00"): "arm",
		elf(2, 2, "\x00\x15"): "ppc64", elf(2, 1, "\x15\x00"): "ppc64le", elf(2, 2, "\x00\x16"): "s390x",
		elf(2, 1, "\xff\xff"): "", elf(1, 1, "\x3e\x00"): "", "#!/bin/sh\necho something longer than that\n": "", "": "", "\x7fELF": "",
	} {
		got, err := program.Architecture(strings.NewReader(in))
		require.NoError(t, err)
		require.Equal(t, want, got, "%q", in)
	}
	f, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer f.Close()
	got, err := program.Architecture(f)
	require.NoError(t, err)
	require.Equal(t, runtime.GOARCH, got)
}
