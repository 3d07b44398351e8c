package changed

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// handle is a file handle: what identifies an inode, and no later one with the same number. Source: open_by_handle_at(2).
type handle struct {
	kind  int32
	bytes string
}

func (h handle) unix() unix.FileHandle { return unix.NewFileHandle(h.kind, []byte(h.bytes)) }

// handleOf returns the handle of an open folder.
func handleOf(fd int) (handle, error) {
	h, _, err := unix.NameToHandleAt(fd, "", unix.AT_EMPTY_PATH)
	if err != nil {
		return handle{}, unknown("name_to_handle_at: %w", err)
	}
	return handle{kind: h.Type(), bytes: string(h.Bytes())}, nil
}

func fsidOf(in *unix.Statfs_t) (id fsid) {
	binary.NativeEndian.PutUint32(id[:4], uint32(in.Fsid.Val[0]))
	binary.NativeEndian.PutUint32(id[4:], uint32(in.Fsid.Val[1]))
	return id
}

// decoder returns how the number of an inode is found in the handles of a file system, of which one is known with its number; nil if it is not
// found in that one. A handle of another kind has no number.
// Source: FILEID_INO32_GEN of enum fid_type, and shmem_encode_fh in mm/shmem.c, both of Linux.
func decoder(known handle, ino uint64) func(handle) (uint64, bool) {
	plain := func(h handle) (uint64, bool) {
		if h.kind != known.kind || len(h.bytes) != 8 {
			return 0, false
		}
		return uint64(binary.NativeEndian.Uint32([]byte(h.bytes))), true
	}
	memory := func(h handle) (uint64, bool) {
		if h.kind != known.kind || len(h.bytes) != 12 {
			return 0, false
		}
		b := []byte(h.bytes)
		return uint64(binary.NativeEndian.Uint32(b[4:])) | uint64(binary.NativeEndian.Uint32(b[8:]))<<32, true
	}
	for _, d := range []func(handle) (uint64, bool){plain, memory} {
		if n, ok := d(known); ok && n == ino {
			return d
		}
	}
	return nil
}
