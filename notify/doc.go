// Package notify tells others what happens: it keeps an outbox in the database, and delivers what is in it to the server's sinks.
//
// It owns the tables notifications and deliveries, the worker that delivers, and what each kind of sink is sent. Outbox.Add writes into
// the transaction of the record that the notification tells of, so both are durable or neither is; the worker delivers afterwards, as often
// as it takes, and gives up after notify.attempts. A receiver sees each ID once or more, and never none.
//
// It never decides what is worth telling, never changes a result, and redacts only against the server's own secrets: what comes in was
// redacted by the room that it comes from. A crash leaves deliveries that wait, which the next server takes up; an attempt that it cut off is
// made again.
package notify
