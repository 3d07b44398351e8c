package redact

import "unicode/utf8"

// stream is the state of redacting one text that arrives in pieces. Its output does not depend on how the text is split.
type stream struct {
	buf   string // undecided text
	sent  int    // bytes of buf that are finished: hidden, or written by idle
	cover int    // end of the hidden part that buf begins in or touches, plus 1; 0 for none
	label int    // the label that was written for it
	t     text
}

// run takes more text and appends to out what is decided; with end, everything.
//
// Every match is hidden. The first of several that overlap provides the label, as does the first of adjacent ones with the same label: a
// long value is several patterns.
func (st *stream) run(m *matcher, out []byte, more string, end bool) []byte {
	raw := st.buf + more
	hold := len(raw)
	if !end {
		hold = escapeStart(raw)
	}
	t := &st.t
	t.strip(raw[:hold])
	pos := st.sent // raw bytes before it are done
	cover := st.cover - 1
	for p := 0; p < len(t.sig); p++ {
		if p+keyLen <= len(t.sig) && !m.bloom.holds(t.key(p)) {
			continue
		}
		f := m.at(t, p)
		if f.cutOff > 0 && !end {
			hold = int(t.off[p])
			break
		}
		full, label := f.full, f.label
		if f.cutOff >= MinBytes && f.cutOff*2 >= f.whole && f.cutOff > full {
			full, label = f.cutOff, f.cutOffLab // the text ends inside a secret
		}
		if full == 0 {
			continue
		}
		from, to := int(t.off[p]), int(t.off[p+full-1])+1
		if from > cover || from == cover && label != st.label {
			if from > pos {
				out = append(out, raw[pos:from]...)
			}
			if to > pos {
				out = append(out, m.labels[label]...)
			}
			st.label = label
		}
		cover = max(cover, to)
		pos = max(pos, to)
	}
	if end {
		hold = len(raw)
	}
	if hold > pos {
		out = append(out, raw[pos:hold]...)
		pos = hold
	}
	if end {
		*st = stream{t: st.t}
		return out
	}
	st.buf, st.sent, st.cover = raw[hold:], pos-hold, max(cover-hold+1, 0)
	return out
}

// escapeStart is where an unfinished control sequence or character begins at the end of raw, otherwise its length: half of one must
// not be treated as text.
func escapeStart(raw string) int {
	for i := len(raw) - 1; i >= 0 && i >= len(raw)-2-maxParams; i-- {
		if raw[i] == 0x1b {
			if escape(raw[i:]) == 0 && unfinished(raw[i+1:]) {
				return i
			}
			break
		}
	}
	for i := len(raw) - 1; i >= 0 && i > len(raw)-utf8.UTFMax; i-- {
		if utf8.RuneStart(raw[i]) {
			if !utf8.FullRuneInString(raw[i:]) {
				return i
			}
			break
		}
	}
	return len(raw)
}

// unfinished reports whether s can still become what follows ESC in a control sequence.
func unfinished(s string) bool {
	if s == "" {
		return true
	}
	if s[0] != '[' || len(s) > 1+maxParams {
		return false
	}
	for i := 1; i < len(s); i++ {
		if s[i] < 0x20 || s[i] > 0x3f {
			return false
		}
	}
	return true
}

// idle writes what is held back if that shows less than keyLen characters of a secret.
func (st *stream) idle(m *matcher) []byte {
	if m == nil || st.sent >= len(st.buf) {
		return nil
	}
	st.t.strip(st.buf)
	if len(st.t.sig) >= keyLen {
		return nil
	}
	out := []byte(st.buf[st.sent:])
	st.sent = len(st.buf)
	return out
}
