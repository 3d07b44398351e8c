package changed

import (
	"bytes"
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// seen is one event.
type seen struct {
	fs fsid
	// attrs: the inode itself may have changed; otherwise the name is new, or gone.
	attrs bool
	// dir and name are where it was seen, target is the inode; each may be unknown.
	dir    handle
	name   string
	target handle
}

// The sizes of fanotify_event_metadata, and of the headers of fanotify_event_info_fid and of the file_handle in it. Source: linux/fanotify.h.
const (
	metaSize   = 24
	infoSize   = 12
	handleSize = 8
)

// End collects everything that changed from Begin to now, and ends the watch of the file systems. Call it once, before In; after an error
// nothing is known.
func (w *Watch) End() error {
	if w.n == nil || w.ended {
		return unknown("the watch has ended")
	}
	w.ended = true
	if err := w.collect(); err != nil {
		return err
	}
	w.known = true
	return nil
}

func (w *Watch) collect() error {
	for _, s := range w.systems {
		// A mark is gone if the file system was unmounted meanwhile, even if it is mounted again.
		if err := unix.FanotifyMark(w.events, unix.FAN_MARK_REMOVE|unix.FAN_MARK_FILESYSTEM, w.mask, unix.AT_FDCWD, s.mark); err != nil {
			return unknown("end the watch at %s: %w", s.mark, err)
		}
	}
	poll := []unix.PollFd{{Fd: int32(w.mounts), Events: unix.POLLPRI}}
	switch n, err := unix.Poll(poll, 0); {
	case err != nil:
		return unknown("poll the table of mounts: %w", err)
	case n != 0:
		return unknown("something was mounted or unmounted")
	}
	buf := make([]byte, 32<<10) // dozens of events
	for {
		n, err := unix.Read(w.events, buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return nil
		case err != nil:
			return unknown("read events: %w", err)
		case n == 0:
			return nil
		}
		if err := w.parse(buf[:n]); err != nil {
			return err
		}
	}
}

// parse adds events. Anything that is not understood is an error.
func (w *Watch) parse(b []byte) error {
	for len(b) > 0 {
		if len(b) < metaSize {
			return unknown("an event of %d bytes", len(b))
		}
		size, version, head := int(binary.NativeEndian.Uint32(b)), b[4], int(binary.NativeEndian.Uint16(b[6:]))
		mask := binary.NativeEndian.Uint64(b[8:])
		switch {
		case version != unix.FANOTIFY_METADATA_VERSION || head < metaSize || size < head || size > len(b):
			return unknown("an event of an unknown form")
		case mask&unix.FAN_Q_OVERFLOW != 0:
			return unknown("more changes than the kernel keeps")
		}
		s := seen{attrs: mask&(unix.FAN_ATTRIB|unix.FAN_MODIFY|unix.FAN_CLOSE_WRITE) != 0}
		if err := s.infos(b[head:size]); err != nil {
			return err
		}
		if _, ok := w.systems[s.fs]; !ok {
			return unknown("an event of another file system")
		}
		w.seen = append(w.seen, s)
		b = b[size:]
	}
	return nil
}

// infos reads the records of an event.
func (s *seen) infos(b []byte) error {
	if len(b) == 0 {
		return unknown("an event without its place")
	}
	for len(b) > 0 {
		if len(b) < infoSize+handleSize {
			return unknown("a record of %d bytes", len(b))
		}
		kind, size := b[0], int(binary.NativeEndian.Uint16(b[2:]))
		length := int(binary.NativeEndian.Uint32(b[infoSize:]))
		end := infoSize + handleSize + length
		if size > len(b) || length < 0 || end > size {
			return unknown("a record of an unknown form")
		}
		h := handle{kind: int32(binary.NativeEndian.Uint32(b[infoSize+4:])), bytes: string(b[infoSize+handleSize : end])}
		s.fs = fsid(b[4:infoSize])
		switch kind {
		case unix.FAN_EVENT_INFO_TYPE_FID:
			s.target = h
		case unix.FAN_EVENT_INFO_TYPE_DFID:
			s.dir = h
		case unix.FAN_EVENT_INFO_TYPE_DFID_NAME:
			name, _, ended := bytes.Cut(b[end:size], []byte{0})
			if !ended {
				return unknown("a name without an end")
			}
			s.dir, s.name = h, string(name)
		default:
			return unknown("a record of type %d", kind)
		}
		b = b[size:]
	}
	return nil
}
