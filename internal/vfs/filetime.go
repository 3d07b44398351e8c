package vfs

import (
	"time"

	"golang.org/x/sys/unix"
)

// FileTime returns the kernel's clock for the times of files (clock_getres(2), CLOCK_REALTIME_COARSE), which is up to a tick of 1 to 10 ms behind
// time.Now. A change that begins after the call gets no earlier time, unless the clock is set back. It has no monotonic part.
func FileTime() time.Time {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &ts); err != nil {
		return time.Now().Add(-LongestTick).Round(0)
	}
	return time.Unix(ts.Unix())
}

// LongestTick is more than any tick of a kernel: how far FileTime may be behind time.Now.
const LongestTick = 50 * time.Millisecond
