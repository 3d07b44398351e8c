// Package signals lets a deployment wait for signals from outside: it tracks which ones a recipe declares, which were received, and which
// are missing.
//
// It owns the declarations (.salt/waits.yaml), the tables of waits and signals, and the addresses for senders without an account. Steps
// wait with Store.Wait; commands and HTTP pass signals to Store.Signal and Store.Accept. It deploys nothing, and checks no permissions.
//
// Invariants: an address is valid for one signal of one wait of one deployment: it ends with a MAC under a key that only this server has,
// which is compared in constant time before any lookup. A signal counts once, however often it is sent, and none counts after its wait
// has ended. It is durable before its sender is told that it was counted.
//
// A Store may be used by several goroutines. Waits and signals outlive the process: they are rows, durable before a sender is answered. A wait
// that a process left open accepts signals again after Reopen, counts those that it had, and keeps its deadline; Ended ends it.
package signals
