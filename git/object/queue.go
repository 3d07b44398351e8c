package object

import "container/heap"

// Queue is a priority queue of commits, newest first, the order in which walks through history read them. The zero Queue is empty and ready
// for use. It is not safe for concurrent use.
type Queue[T any] struct{ h dateHeap[T] }

// Len returns the number of commits in the queue.
func (q *Queue[T]) Len() int { return len(q.h) }

// Push adds a commit whose committer's date is date, in seconds since 1970.
func (q *Queue[T]) Push(date int64, c T) { heap.Push(&q.h, item[T]{date, c}) }

// Pop removes and returns the newest commit. The queue must not be empty.
func (q *Queue[T]) Pop() T { return heap.Pop(&q.h).(item[T]).c }

type item[T any] struct {
	date int64
	c    T
}

type dateHeap[T any] []item[T]

func (d dateHeap[T]) Len() int           { return len(d) }
func (d dateHeap[T]) Less(i, j int) bool { return d[i].date > d[j].date }
func (d dateHeap[T]) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }

// Push implements heap.Interface.
func (d *dateHeap[T]) Push(x any) { *d = append(*d, x.(item[T])) }

// Pop implements heap.Interface.
func (d *dateHeap[T]) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	(*d)[last] = item[T]{}
	*d = (*d)[:last]
	return x
}
