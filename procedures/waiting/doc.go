// Package waiting lets the steps of a deployment wait for signals: what its recipe declares, including the addresses of the signals, and the
// pauses themselves.
//
// It owns how steps find the addresses (cfg.signals, CORPUS_SIGNAL_*), which of them are hidden, and what happens to the data of a signal.
// It decides nothing about signals; package signals does. A Run belongs to the goroutine of its deployment. It stores nothing: what
// is needed to go on after a crash is passed to Run.Pause.
package waiting
