package pack

// feed passes the stream to the decoder byte by byte, so that it reads none too many.
type feed struct {
	s    *scanner
	win  []byte
	used int
	err  error
}

func (f *feed) more() error {
	if f.err == nil {
		if f.err = f.flush(); f.err == nil {
			f.win, f.err = f.s.window()
		}
	}
	return f.err
}

// flush consumes what the decoder used.
func (f *feed) flush() error {
	n := f.used
	f.win, f.used = nil, 0
	return f.s.take(n)
}

func (f *feed) ReadByte() (byte, error) {
	if f.used == len(f.win) {
		if err := f.more(); err != nil {
			return 0, err
		}
	}
	f.used++
	return f.win[f.used-1], nil
}

func (f *feed) Read(p []byte) (int, error) {
	if f.used == len(f.win) {
		if err := f.more(); err != nil {
			return 0, err
		}
	}
	n := copy(p, f.win[f.used:])
	f.used += n
	return n, nil
}

// error prefers the stream's own error to the decoder's.
func (f *feed) error(err error) error {
	if f.err != nil {
		return f.err
	}
	if err = inflateError(err); err == errShort {
		return corrupt("zlib stream gives less than its object's size")
	}
	return err
}
