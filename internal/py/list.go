package py

// List is a Python list: mutable, and shared by everyone who holds the pointer.
type List struct{ items []any }

// Tuple is a Python tuple. It must not be written to once it is shared.
type Tuple []any

// NewList returns a list of its arguments.
func NewList(items ...any) *List { return &List{items: items} }

// ListOf returns a list that takes ownership of the slice; the caller must not use it any more.
func ListOf(items []any) *List { return &List{items: items} }

// Len returns the number of items.
func (l *List) Len() int { return len(l.items) }

// At returns the item at index i, which must be in range (no negative indexes).
func (l *List) At(i int) any { return l.items[i] }

// SetAt replaces the item at index i, which must be in range.
func (l *List) SetAt(i int, v any) { l.items[i] = v }

// Append adds items at the end.
func (l *List) Append(v ...any) { l.items = append(l.items, v...) }

// Items returns the list's own slice: read only, and valid until the list is next written to.
func (l *List) Items() []any { return l.items }

// Copy returns a shallow copy.
func (l *List) Copy() *List { return &List{items: append([]any(nil), l.items...)} }
