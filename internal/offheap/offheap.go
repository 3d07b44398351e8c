// Package offheap allocates large tables outside of the garbage collector's heap (ADR 19).
//
// The collector lets a heap grow to twice what is in use before it looks again, so a table of 40 MB of numbers costs a process 80. A table without
// pointers has nothing to collect: here it costs what it holds, and only the pages that were written to.
//
// It owns anonymous mappings (mmap(2)); it never touches files. Invariants: no T has pointers, for nobody would see them; a Block
// is given back when Free is called, or when nobody refers to the Block any more. A slice of it is not valid without the Block.
//
// Concurrency: a Block's methods are for one goroutine, its elements for whoever keeps order among those who use them. A crash leaves nothing.
package offheap

import (
	"fmt"
	"reflect"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// least is the number of bytes below which a table lies in the heap after all: a mapping takes whole pages and two system calls.
const least = 64 << 10

// Block is a table of T.
type Block[T any] struct {
	s    []T
	mem  []byte // nil where s lies in the heap
	stop runtime.Cleanup
}

// Make gives a table of n zero values. It panics where T has pointers. Where the machine gives no mapping, the heap serves.
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

// Slice is the table. It is good as long as the Block is: until Free, and while the caller holds the Block.
func (b *Block[T]) Slice() []T { return b.s }

// Free gives the memory back. A second time, and on nil, it does nothing.
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
