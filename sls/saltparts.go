package sls

// What every runner that works through Salt shares with SaltCall, so that they cannot come to differ.

// Configure writes the configuration directory of one deployment below Dir: conf/minion, the pillar, the links of
// the file roots, which all lie on disk (see OnDisk). It may be called again; only what changed is new to a Salt process that starts afterwards.
func (s *SaltCall) Configure(in *Input) error { return s.configure(in) }

// Results turns what `state.sls` answered, as `--out=json` has it, into results in the order they ran. A file that
// Salt could not compile is the error, with Salt's own message and without its excerpts.
func (s *SaltCall) Results(in *Input, out []byte) ([]StateResult, error) { return s.parse(in, out) }

// HasModules reports whether the file roots hold custom modules, which Salt must sync before it can use them.
func HasModules(in *Input) bool { return hasModules(in) }

// SaltLogLine is what a reader of a push wants of one line of Salt's log, "" where that is nothing.
func SaltLogLine(line string) string { return saltLog(line) }

// Locate is where a state is declared, as far as the text of its file tells; line is 0 where it does not.
func Locate(in *Input, sls, id string) (file string, line int) { return findID(in, sls, id) }
