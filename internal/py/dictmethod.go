package py

func dictMethod(name string) method {
	switch name {
	case "get":
		return dictGet
	case "items", "keys", "values":
		return dictViews
	case "iteritems", "iterkeys", "itervalues", "has_key":
		return nil // Python 2
	case "update":
		return dictUpdate
	case "setdefault":
		return dictSetdefault
	case "pop":
		return dictPop
	case "popitem":
		return dictPopitem
	case "copy":
		return func(o *Ops, self any, a args) (any, error) {
			if _, err := a.positional(0, 0); err != nil {
				return nil, err
			}
			d := self.(*Dict)
			return d.Copy(), o.Alloc(entryBytes * (1 + d.Len()))
		}
	case "clear":
		return func(_ *Ops, self any, a args) (any, error) {
			_, err := a.positional(0, 0)
			if err == nil {
				self.(*Dict).Clear()
			}
			return nil, err
		}
	case "fromkeys":
		return dictFromkeys
	}
	return nil
}

func dictGet(_ *Ops, self any, a args) (any, error) {
	p, err := a.positional(1, 2)
	if err != nil {
		return nil, err
	}
	v, ok, err := self.(*Dict).Lookup(p[0])
	if err != nil {
		return nil, err
	}
	if !ok {
		if p[1] == Unset {
			return nil, nil
		}
		return p[1], nil
	}
	return v, nil
}

func dictViews(_ *Ops, self any, a args) (any, error) {
	_, err := a.positional(0, 0)
	return dictView{self.(*Dict), a.fn}, err
}

func dictUpdate(o *Ops, self any, a args) (any, error) {
	d := self.(*Dict)
	if len(a.pos) > 1 {
		return nil, Errorf(TypeError, "update expected at most 1 argument, got %d", len(a.pos))
	}
	if len(a.pos) == 1 {
		if err := failing(a.pos[0]); err != nil {
			return nil, err
		}
		other, err := o.AsDict(a.pos[0])
		if err != nil {
			return nil, err
		}
		if err := o.Alloc(entryBytes * other.Len()); err != nil {
			return nil, err
		}
		d.Update(other)
	}
	d.Update(a.kw)
	return nil, o.Alloc(entryBytes * a.kw.Len())
}

func dictSetdefault(o *Ops, self any, a args) (any, error) {
	p, err := a.positional(1, 2)
	if err != nil {
		return nil, err
	}
	d := self.(*Dict)
	v, ok, err := d.Lookup(p[0])
	if ok || err != nil {
		return v, err
	}
	if p[1] == Unset {
		p[1] = nil
	}
	if err := o.Alloc(entryBytes); err != nil {
		return nil, err
	}
	return p[1], d.Set(p[0], p[1])
}

func dictPop(_ *Ops, self any, a args) (any, error) {
	p, err := a.positional(1, 2)
	if err != nil {
		return nil, err
	}
	if err := Hashable(p[0]); err != nil {
		return nil, err
	}
	if v, ok := self.(*Dict).Pop(p[0]); ok {
		return v, nil
	}
	if p[1] == Unset {
		return nil, Errorf(KeyError, "no such key")
	}
	return p[1], nil
}

func dictPopitem(_ *Ops, self any, a args) (any, error) {
	if _, err := a.positional(0, 0); err != nil {
		return nil, err
	}
	d := self.(*Dict)
	for i := len(d.entries) - 1; i >= 0; i-- {
		if e := d.entries[i]; e.norm != nil {
			d.Pop(e.key)
			return Tuple{e.key, e.val}, nil
		}
	}
	return nil, Errorf(KeyError, "'popitem(): dictionary is empty'")
}

func dictFromkeys(o *Ops, _ any, a args) (any, error) {
	p, err := a.positional(1, 2)
	if err != nil {
		return nil, err
	}
	keys, err := o.Slice(p[0])
	if err != nil {
		return nil, err
	}
	if p[1] == Unset {
		p[1] = nil
	}
	d := &Dict{}
	for _, k := range keys {
		if err := d.Set(k, p[1]); err != nil {
			return nil, err
		}
	}
	return d, o.Alloc(entryBytes * d.Len())
}
