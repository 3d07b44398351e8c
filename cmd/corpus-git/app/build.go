package app

import (
	"runtime"
	"runtime/debug"

	"corpus-git/project/status"
)

// release is the version of this source; a packager sets it with -ldflags "-X corpus-git/cmd/corpus-git/app.release=…".
var release = "0.1.0-dev" //nolint:gochecknoglobals // the linker's only way in

// Build describes this program.
func Build() status.Build {
	b := status.Build{Version: status.Version, Release: release, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 7 {
				b.Revision = s.Value[:7]
			}
		}
	}
	return b
}
