// Package offheap allocates large tables outside of the garbage collector's heap (ADR 19).
//
// The collector lets a heap grow to twice what is in use before it collects, so a table of 40 MB of numbers costs a process 80. A table
// without pointers needs no collecting: here it costs its size, and only for pages that were written to.
//
// It owns anonymous mappings (mmap(2)); it never touches files. Invariants: T must not contain pointers, which the collector would not see;
// a Block is freed by Free, or when the Block becomes unreachable. A slice of it must not be used without the Block.
//
// Concurrency: a Block's methods are for one goroutine, access to its elements is the callers' to synchronise. A crash leaves nothing.
package offheap

import (
	"fmt"
	"reflect"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// least is the number of bytes below which a table is in the heap after all: a mapping takes whole pages and two system calls.
const least = 64 << 10

// Block is a table of T.
type Block[T any] struct {
	s    []T
	mem  []byte // nil if s is in the heap
	stop runtime.Cleanup
}

// Make returns a table of n zero values. It panics if T has pointers. If mapping fails, it uses the heap.
func Make[T any](n int) *Block[T] {
	t := reflect.TypeFor[T]()
	if pointers(t) {
		panic(fmt.Sprintf("offheap: %s has pointers", t))
	}
	b := &Block[T]{}
	if bytes := n * int(t.Size()); bytes >= least {
		mem, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err == nil {
			b.mem, b.s = mem, unsafe.Slice((*T)(unsafe.Pointer(&mem[0])), n)
			b.stop = runtime.AddCleanup(b, func(m []byte) { _ = unix.Munmap(m) }, mem)
			return b
		}
	}
	b.s = make([]T, n)
	return b
}

// Slice returns the table. It is valid until Free, and while the caller holds the Block.
func (b *Block[T]) Slice() []T { return b.s }

// Free frees the memory. A second call does nothing, nor does a call on nil.
func (b *Block[T]) Free() {
	if b == nil {
		return
	}
	b.s = nil
	if b.mem != nil {
		b.stop.Stop()
		_ = unix.Munmap(b.mem)
		b.mem = nil
	}
}

func pointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return pointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if pointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16,
		reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return false
	default:
		return true
	}
}
